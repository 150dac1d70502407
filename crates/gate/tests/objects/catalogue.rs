//! The fixtures of the checks of objects.

use palisade_api::{ToolSecurityParamsSpec, objects};
use palisade_checks::ObjectFixture;

use super::*;

#[test]
fn fixtures_of_objects_get_their_verdicts() {
    let mut count = 0;
    for check in objects::ALL {
        let fixtures: Vec<ObjectFixture> = serde_saphyr::from_str(check.fixtures).unwrap();
        for passes in [true, false] {
            let examples = fixtures.iter().filter(|one| one.example && one.violations.is_empty() == passes);
            assert_eq!(examples.count(), 1, "{}: examples", check.id);
        }
        for fixture in &fixtures {
            let compiled = compiled(&fixture.spec(&json!({"tenancy": "tool"})));
            let params = compiled.is_parameterized().then(|| json!(ToolSecurityParamsSpec::of(&fixture.values())));
            for minor in Minor::ALL {
                let server = Enforced::new(minor, &compiled, params.as_ref());
                let denial = server.create(&fixture.object("tool-weather"));
                let name = format!("{}, {}, {minor}: {denial}", check.id, fixture.name);
                let mut rest = denial.as_str();
                for violation in &fixture.violations {
                    rest = rest.split_once(violation.as_str()).unwrap_or_else(|| panic!("{name}")).1;
                }
                let violated = usize::from(!fixture.violations.is_empty());
                assert_eq!(denial.matches(&format!("[{}]", check.id)).count().min(1), violated, "{name}");
                if !fixture.violations.is_empty() {
                    assert_eq!(denial.matches(&format!("[{}]", check.id)).count(), fixture.violations.len(), "{name}");
                }
            }
            count += 1;
        }
    }
    assert!(count > 5);
}

/// The namespace's own values are compared as they are.
#[test]
fn hosts_of_a_tool_are_those_of_its_parameter() {
    let spec = json!({
        "parameters": [{"name": "tool", "type": "String", "sources": [{"namespaceNameTrimPrefix": "tool-"}]}],
        "network": {"allowedHosts": ["$tool.toolforge.org"]},
    });
    let compiled = compiled(&spec);
    let ingress = |host: &str| object("networking.k8s.io/v1", "Ingress", &json!({"spec": {"rules": [{"host": host}]}}));
    let namespace = |name: &str| palisade_compiler::Namespace { name: name.to_owned(), ..Default::default() };
    let params = compiled.resolver.params(&namespace("tool-weather"));
    for minor in Minor::ALL {
        let server = Enforced::new(minor, &compiled, Some(&json!(params)));
        assert_eq!(server.create(&ingress("weather.toolforge.org")), "");
        for host in ["other.toolforge.org", "toolforge.org", "a.weather.toolforge.org", "weather.toolforge.org.evil"] {
            assert!(server.create(&ingress(host)).contains("[networkHosts] Ingress: spec.rules[*].host"), "{host}");
        }
        // An Ingress that is older than the profile can be labelled and released, and not published elsewhere.
        let old = with(&ingress("other.toolforge.org"), "/metadata/finalizers", json!(["example.com/a"]));
        assert_eq!(server.update(&ingress("other.toolforge.org"), &old), "");
        assert_eq!(server.update(&with(&old, "/metadata/annotations", json!({"a": "b"})), &old), "");
        assert!(server.update(&with(&old, "/spec/ingressClassName", json!("x")), &old).contains("[networkHosts]"));
    }
    let rules: Vec<_> = (0..257).map(|_| json!({"host": "weather.toolforge.org"})).collect();
    let long = object("networking.k8s.io/v1", "Ingress", &json!({"spec": {"rules": rules}}));
    let server = Enforced::new(Minor::OLDEST, &compiled, Some(&json!(params)));
    assert_eq!(
        server.create(&long),
        "1 violation of ToolSecurityProfile test: [networkHosts] Ingress: spec.rules must have at most 256 elements"
    );
}
