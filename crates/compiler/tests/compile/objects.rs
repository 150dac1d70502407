//! The policy for objects other than pods and workloads, and its bindings.

use palisade_api::names::{self, Part, Shape};
use palisade_compiler::PolicyWithBindings;
use serde_json::{Value as Json, json};

use super::{compile, compiled, profile};

/// The policy of a profile with one check of these kinds, whose expression reads parameters.
fn pair(kinds: &Json, more: &Json) -> PolicyWithBindings {
    let mut spec = json!({
        "parameters": [{"name": "team", "type": "String"}],
        "customChecks": [{
            "id": "own", "target": "Object", "message": "m", "kinds": kinds,
            "expression": "object.metadata.name == params.spec.strings['team']",
        }],
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    *compiled(&spec).bundle.objects.unwrap()
}

/// The rule about probes.
const PROBES: &str = "CREATE /v1 podtemplates palisade-probe-compliant,palisade-probe-violating";

/// The operations, resources and names of rules, in words.
fn words(rules: &Json) -> Vec<String> {
    let list = |value: &Json| {
        let all: Vec<_> = value.as_array().unwrap().iter().filter_map(Json::as_str).collect();
        all.join(",")
    };
    let rules = rules.as_array().unwrap().iter();
    let word = |rule: &Json| {
        let group = list(&rule["apiGroups"]);
        let names = if rule["resourceNames"].is_array() { list(&rule["resourceNames"]) } else { String::new() };
        let [operations, versions, resources] = ["operations", "apiVersions", "resources"].map(|key| list(&rule[key]));
        format!("{operations} {group}/{versions} {resources} {names}").trim_end().to_owned()
    };
    rules.map(word).collect()
}

/// For each binding, in order: its name, its action without parameters, and its rules.
fn bindings(pair: &PolicyWithBindings) -> Vec<(String, String, Vec<String>)> {
    let of = |binding| {
        let json = json!(binding);
        let text = |pointer: &str| json.pointer(pointer).and_then(Json::as_str).unwrap_or_default().to_owned();
        let rules = json.pointer("/spec/matchResources/resourceRules").map(words).unwrap_or_default();
        (text("/metadata/name"), text("/spec/paramRef/parameterNotFoundAction"), rules)
    };
    pair.bindings().map(of).collect()
}

#[test]
fn updates_that_can_remove_a_finalizer_have_a_separate_binding() {
    let kinds = json!([
        {"versions": ["v1"], "resource": "services"},
        {"versions": ["v1"], "resource": "configmaps", "operations": ["CREATE"]},
        {"group": "example.org", "versions": ["v1", "v2"], "resource": "widgets", "subresources": ["status"]},
    ]);
    let both = pair(&kinds, &json!({}));
    let policy = json!(both.policy.spec);
    assert_eq!(
        words(&policy["matchConstraints"]["resourceRules"]),
        [
            "CREATE /v1 configmaps",
            "CREATE,UPDATE /v1 services",
            "CREATE,UPDATE example.org/v1,v2 widgets/status",
            PROBES
        ]
    );
    let name = |name: &str| format!("palisade-test-objects{name}");
    let others = ["CREATE /v1 configmaps,services", "CREATE,UPDATE example.org/v1,v2 widgets/status", PROBES];
    assert_eq!(
        bindings(&both),
        [
            (name(""), "Deny".to_owned(), others.map(str::to_owned).to_vec()),
            (name("-updates"), "Allow".to_owned(), vec!["UPDATE /v1 services".to_owned()]),
        ]
    );
    // A binding without rules would match all requests of the policy.
    let of = |operation| {
        bindings(&pair(&json!([{"versions": ["v1"], "resource": "services", "operations": [operation]}]), &json!({})))
    };
    let all = |rules: &[&str]| rules.iter().map(|&rule| rule.to_owned()).collect::<Vec<_>>();
    assert_eq!(of("CREATE"), [(name(""), "Deny".to_owned(), all(&["CREATE /v1 services", PROBES]))]);
    assert_eq!(
        of("UPDATE"),
        [
            (name(""), "Deny".to_owned(), all(&[PROBES])),
            (name("-updates"), "Allow".to_owned(), all(&["UPDATE /v1 services"])),
        ]
    );
}

#[test]
fn names_of_bindings_are_those_that_the_controller_expects() {
    let kinds = json!([{"versions": ["v1"], "resource": "services"}]);
    let by_label = pair(&kinds, &json!({"enforcement": {"namespaceStages": "ByLabel"}}));
    let part = Part::Judge(Shape::Objects);
    let known: Vec<_> = names::bindings("test", part).collect();
    let found = bindings(&by_label);
    assert_eq!(found.len(), 8);
    assert!(found.iter().all(|(name, ..)| known.contains(name)), "{found:?}");
    assert_eq!(names::profile_of_policy(&names::policy("test", part)), Some("test"));
    assert_eq!(names::profile_of_policy(&names::policy("test", Part::Checks(Shape::Objects))), Some("test"));
}

/// Checks that read no parameters evaluate updates where parameters are missing, in the stage Deny alone: other stages
/// deny nothing.
#[test]
fn updates_are_bound_without_parameters_where_a_check_reads_none() {
    let names_of = |constant: bool, enforcement: Json| -> Vec<String> {
        let mut checks = vec![json!({
            "id": "own", "target": "Object", "message": "m", "kinds": [{"versions": ["v1"], "resource": "services"}],
            "expression": "object.metadata.name == params.spec.strings['team']",
        })];
        if constant {
            checks.push(json!({
                "id": "same", "target": "Object", "message": "m", "kinds": [{"versions": ["v1"], "resource": "secrets"}],
                "expression": "object.type != 'a'",
            }));
        }
        let spec = json!({
            "parameters": [{"name": "team", "type": "String"}], "customChecks": checks, "enforcement": enforcement,
        });
        let pair = *compiled(&spec).bundle.objects.unwrap();
        let known: Vec<_> = names::bindings("test", Part::Judge(Shape::Objects)).collect();
        let without = pair.bindings().filter(|binding| binding.spec.param_ref.is_none());
        let names = without.map(|binding| {
            let spec = &binding.spec;
            assert_eq!(spec.validation_actions, ["Deny"]);
            assert_eq!(
                words(&json!(spec.match_resources)["resourceRules"]),
                ["UPDATE /v1 secrets,services"],
                "deletion and creation are not matched"
            );
            let name = binding.metadata.name.clone().unwrap();
            assert!(known.contains(&name), "{name}");
            name.trim_start_matches("palisade-test-objects").to_owned()
        });
        names.collect()
    };
    assert_eq!(names_of(true, json!({})), ["-unparameterized"]);
    assert_eq!(names_of(false, json!({})), [""; 0]);
    assert_eq!(names_of(true, json!({"objects": "Warn"})), [""; 0]);
    let by_label = json!({"pods": "Audit", "workloads": "Audit", "namespaceStages": "ByLabel"});
    assert_eq!(names_of(true, by_label), ["-unparameterized-deny"]);
}

#[test]
fn requests_about_workloads_do_not_waive_checks_of_objects() {
    let spec = json!({
        "exceptionRequests": {"checks": ["own", "privileged"]}, "privileges": {"privileged": false},
        "customChecks": [{
            "id": "own", "target": "Object", "message": "m", "expression": "false",
            "kinds": [{"versions": ["v1"], "resource": "services"}],
        }],
    });
    let compiled = compile(&profile(&spec)).unwrap();
    let standing = |check: &str, scope: Json| {
        let request = palisade_compiler::Request {
            profile: "test".to_owned(),
            checks: vec![check.to_owned()],
            scope: serde_json::from_value(scope).unwrap(),
            expires: "2030-01-01T00:00:00Z".parse().unwrap(),
            approval: palisade_api::ApprovalState::Current,
        };
        compiled.exceptions.standing(&request, "2029-01-01T00:00:00Z".parse().unwrap()).1
    };
    let workload = json!({"kind": "Deployment", "name": "web"});
    assert_eq!(
        standing("own", workload.clone()),
        "check own does not evaluate pods or workloads; set scope to {kind: Object, resource: ..., name: ...}, or to \
         {kind: Namespace}"
    );
    let object = json!({"kind": "Object", "resource": "services", "name": "web"});
    assert!(standing("own", object.clone()).starts_with("active until"));
    assert_eq!(
        standing("privileged", object),
        "check privileged evaluates only pods and workloads; set scope to a workload, or to {kind: Namespace}"
    );
    let container = json!({"kind": "Object", "resource": "services", "name": "web", "container": "a"});
    assert_eq!(standing("own", container), "an object has no containers; remove container and imagePrefix");
    assert!(standing("own", json!({"kind": "Namespace"})).starts_with("active until"));
    assert!(standing("privileged", workload).starts_with("active until"));
}
