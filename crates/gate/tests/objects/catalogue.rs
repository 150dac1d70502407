//! The fixtures of the checks of objects.

use palisade_api::{ToolSecurityParamsSpec, objects};
use palisade_checks::{ObjectFixture, WRITES};

use super::{access::request, *};

#[test]
fn fixtures_of_objects_get_their_verdicts() {
    let (mut count, mut wrong) = (0, Vec::new());
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
                let denial = server.denial_in(&fixture.user, &fixture.request(check, "tool-weather").unwrap());
                let mut rest = denial.as_str();
                let says_all = fixture
                    .violations
                    .iter()
                    .all(|violation| rest.split_once(violation.as_str()).map(|(_, after)| rest = after).is_some());
                // An object that the API server rejects for another reason shows nothing.
                let is_answered = fixture.violations.is_empty() == denial.is_empty();
                if !says_all
                    || !is_answered
                    || denial.matches(&format!("[{}]", check.id)).count() != fixture.violations.len()
                {
                    wrong.push(format!("{}, {}, {minor}: {denial}", check.id, fixture.name));
                }
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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

/// Objects that are older than the profile can be labelled, and their finalizers removed.
#[test]
fn updates_that_leave_the_fields_of_a_check_alone_are_admitted() {
    for check in objects::ALL {
        for fixture in serde_saphyr::from_str::<Vec<ObjectFixture>>(check.fixtures).unwrap() {
            if fixture.request(check, "tool-weather").unwrap().operations != WRITES {
                continue;
            }
            let compiled = compiled(&fixture.spec(&json!({"tenancy": "tool"})));
            let params = compiled.is_parameterized().then(|| json!(ToolSecurityParamsSpec::of(&fixture.values())));
            let old =
                with(&fixture.object("tool-weather"), "/metadata/creationTimestamp", json!("2026-01-01T00:00:00Z"));
            let old = with(&old, "/metadata/finalizers", json!(["example.com/a", "example.com/b"]));
            for server in [params.as_ref(), None].map(|params| Enforced::new(Minor::OLDEST, &compiled, params)) {
                for (field, value) in [
                    // The rules of `metadata` restrict labels.
                    (
                        if check.fields.contains(&"metadata.labels") { "/status" } else { "/metadata/labels" },
                        json!({"team": "a"}),
                    ),
                    ("/metadata/finalizers", json!(["example.com/b"])),
                    ("/metadata/finalizers", json!([])),
                ] {
                    // A label decides which Service has the addresses of an EndpointSlice.
                    if (check.id, field) == ("networkEndpoints", "/metadata/labels") {
                        continue;
                    }
                    let found = server.update(&with(&old, field, value), &old);
                    assert_eq!(found, "", "{}: {}: {field}", check.id, fixture.name);
                }
            }
        }
    }
}

/// The longest lists that are evaluated, with the longest settings, are within the API server's budget.
#[test]
fn the_largest_objects_are_evaluated_in_full() {
    let all = |of: &dyn Fn(usize) -> String| (0..64).map(of).collect::<Vec<_>>();
    let compiled = compiled(&json!({
        "network": {
            "allowedExternalIPs": all(&|n| format!("10.{n}.0.0/16")),
            "allowedLoadBalancerSourceRanges": all(&|n| format!("2001:db8:{n}::/48")),
            "allowedNodePorts": (0..16).map(|n| json!({"min": n, "max": n})).collect::<Vec<_>>(),
        },
        "access": {
            "allowedSubjects": all(&|n| format!("User/{n}{}*", "x".repeat(200))),
            "allowRoleWildcards": false, "allowedRoleVerbs": all(&|n| format!("{n}{}", "x".repeat(200))),
            "allowedTokenAudiences": all(&|n| format!("{n}{}", "x".repeat(200))),
            "allowedConnections": (0..8).map(|entry| json!({
                "resources": ["pods/exec"],
                "groups": (0..16).map(|n| format!("{entry}-{n}{}", "x".repeat(100))).collect::<Vec<_>>(),
                "commands": (0..16).map(|n| format!("{entry}-{n}{}", "x".repeat(100))).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        },
    }));
    let service = object(
        "v1",
        "Service",
        &json!({"spec": {
            "type": "LoadBalancer", "selector": {"app": "web"},
            "externalIPs": (0..64).map(|n| format!("192.0.2.{n}")).collect::<Vec<_>>(),
            "loadBalancerSourceRanges": (0..128).map(|n| format!("2001:db9:{n}::/48")).collect::<Vec<_>>(),
            "ports": (0..256).map(|n| json!({
                "name": format!("p{n}"), "port": 1000 + n, "protocol": "TCP", "targetPort": 80, "nodePort": 30000 + n,
            })).collect::<Vec<_>>(),
        }}),
    );
    let subjects: Vec<_> = (0..256)
        .map(|n| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": format!("{n}{}", "y".repeat(200))}))
        .collect();
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "own"});
    let binding =
        object("rbac.authorization.k8s.io/v1", "RoleBinding", &json!({"roleRef": role, "subjects": subjects}));
    let verbs: Vec<_> = (0..32).map(|n| format!("{n}{}*", "y".repeat(20))).collect();
    let resources: Vec<_> = (0..64).map(|n| format!("resource{n}*")).collect();
    let rules: Vec<_> = (0..64).map(|_| json!({"apiGroups": [""], "resources": resources, "verbs": verbs})).collect();
    let role = object("rbac.authorization.k8s.io/v1", "Role", &json!({"rules": rules}));
    let audiences: Vec<_> = (0..64).map(|n| format!("{n}{}", "y".repeat(200))).collect();
    let token =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": audiences}});
    let words: Vec<_> = (0..256).map(|n| format!("{n} {}", "y".repeat(200))).collect();
    let exec = json!({"apiVersion": "v1", "kind": "PodExecOptions", "command": words});
    let member = FixtureUser {
        username: "tenant".to_owned(),
        groups: (0..512)
            .map(|n| format!("group-{n}"))
            .chain((0..8).map(|n| format!("{n}-15{}", "x".repeat(100))))
            .collect(),
    };
    for minor in Minor::ALL {
        let server = Enforced::new(minor, &compiled, None);
        for (kind, object, expected) in [
            ("Role", &role, "2 violations of ToolSecurityProfile test: [accessRoles]"),
            ("TokenRequest", &token, "1 violation of ToolSecurityProfile test: [accessTokens]"),
            ("PodExecOptions", &exec, "1 violation of ToolSecurityProfile test: [accessConnect]"),
        ] {
            let found = server.denial_in(&member, &request(kind, "x", object.clone()));
            assert!(
                found.starts_with(expected),
                "{minor} {kind}: {}",
                palisade_kube_json::text::truncated(&found, 200)
            );
        }
        let found = server.create(&service);
        assert!(found.starts_with("3 violations of ToolSecurityProfile test: "), "{found}");
        let found = server.create(&binding);
        assert!(found.starts_with("1 violation of ToolSecurityProfile test: [accessBindings]"), "{found}");
    }
}

#[test]
fn malformed_settings_are_rejected_with_their_place() {
    for (spec, expected) in [
        (
            json!({"network": {"allowedExternalIPs": ["10.0.0.0/8", "10.0.0.1"]}}),
            "spec.network.allowedExternalIPs[1]: \"10.0.0.1\" is not a CIDR",
        ),
        (
            json!({"network": {"allowedLoadBalancerSourceRanges": ["::ffff:10.0.0.0/104"]}}),
            "spec.network.allowedLoadBalancerSourceRanges[0]: \"::ffff:10.0.0.0/104\" is not a CIDR",
        ),
        (
            json!({"network": {"allowedNodePorts": [{"min": 2, "max": 1}]}}),
            "spec.network.allowedNodePorts[0]: min 2 is greater than max 1",
        ),
        (json!({"storage": {"maxRequest": "10GB"}}), "spec.storage.maxRequest: \"10GB\" is not a quantity"),
        (
            json!({"access": {"allowedConnections": [{"resources": ["pods/exec"], "commands": ["ps", "cat  /etc"]}]}}),
            "spec.access.allowedConnections[0].commands[1]: \"cat  /etc\" has spaces",
        ),
        (
            json!({"access": {"allowedConnections": [{"resources": ["pods/exec", "pods/attach"], "commands": ["ps"]}]}}),
            "spec.access.allowedConnections[0].commands: is only allowed with pods/exec",
        ),
        (
            json!({"access": {"allowedConnections": [{"resources": ["pods/portforward"], "ports": ["80"]}]}}),
            "spec.access.allowedConnections[0].ports: is only allowed with pods/proxy and services/proxy",
        ),
        (
            json!({"access": {"allowedSubjects": ["User/$who"]}}),
            "spec.access.allowedSubjects[0]: $who is not a declared",
        ),
    ] {
        let found = rejected(&spec);
        assert!(found.contains(expected), "{spec}: {found}");
    }
}
