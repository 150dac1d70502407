//! Updates that no check of objects evaluates: those that change nothing that a check reads, whatever the object
//! violates. Also deletion.

use super::*;

/// Fields that an update can change.
const FIELDS: [&str; 5] = ["/spec/size", "/spec/other", "/data/a", "/metadata/labels/team", "/metadata/labels/other"];
/// Expressions that no object complies with, and the fields with whose change an update is evaluated. Those of the last
/// three are not known, so they are all.
const EXPRESSIONS: [(&str, &[&str]); 6] = [
    ("object.spec.size < 0", &["/spec/size", "/spec/other"]),
    ("object.?data.orValue({}).size() < 0", &["/spec/size", "/spec/other", "/data/a"]),
    ("object.metadata.?labels[?'team'].orValue('') == 'x'", &["/spec/size", "/spec/other", "/metadata/labels/team"]),
    ("object == null", &FIELDS),
    ("oldObject == object", &FIELDS),
    ("request.userInfo.username == 'admin'", &FIELDS),
];

#[test]
fn updates_are_evaluated_only_if_they_change_what_a_check_reads() {
    let content = json!({"spec": {"size": 1, "other": 1}, "data": {"a": "b"}});
    let old = object("example.org/v1", "Widget", &content);
    let old = with(&old, "/metadata/labels", json!({"team": "a", "other": "a"}));
    let finalized = with(&old, "/metadata/finalizers", json!(["example.com/a", "example.com/b"]));
    for (expression, evaluated) in EXPRESSIONS {
        let compiled = compiled(&json!({"customChecks": [{
            "id": "never", "target": "Object", "message": "never", "expression": expression,
            "kinds": [{"group": "example.org", "versions": ["v1"], "resource": "widgets"}],
        }]}));
        for minor in Minor::ALL {
            let server = Enforced::complete(minor, &compiled);
            assert!(server.create(&old).contains("[never]"), "{expression}");
            for field in FIELDS {
                let value = if field.starts_with("/spec") { json!(2) } else { json!("changed") };
                let found = server.update(&with(&old, field, value), &old);
                assert_eq!(found.contains("[never]"), evaluated.contains(&field), "{expression}: {field}: {found}");
            }
            // Fields that none of the expressions can name are removed and added.
            for (object, old) in [(&with(&old, "/more", json!(1)), &old), (&old, &with(&old, "/more", json!(1)))] {
                assert_eq!(server.update(object, old).contains("[never]"), evaluated == FIELDS, "{expression}");
            }
            let released = with(&finalized, "/metadata/finalizers", json!(["example.com/b"]));
            for (object, old) in [(&released, &finalized), (&old, &released), (&old, &old)] {
                assert_eq!(server.update(object, old), "", "{expression}");
            }
            assert_eq!(server.denial(Operation::Delete, "", &old, None), "", "{expression}");
        }
    }
}

#[test]
fn the_policy_matches_no_deletion() {
    let compiled = compiled(&json!({"customChecks": [{
        "id": "never", "target": "Object", "message": "never", "expression": "false",
        "kinds": [
            {"versions": ["v1"], "resource": "services"},
            {"group": "networking.k8s.io", "versions": ["v1"], "resource": "ingresses", "operations": ["UPDATE"]},
        ],
    }]}));
    let policy = compiled.bundle.objects.unwrap().policy.spec.unwrap();
    let rules = policy.match_constraints.unwrap().resource_rules.unwrap();
    let found: Vec<_> = rules.into_iter().flat_map(|rule| rule.operations.unwrap()).collect();
    assert_eq!(found, ["CREATE", "UPDATE", "UPDATE", "CREATE"]);
}
