//! Custom checks, of pods and of workloads.

use palisade_gate::check;
use palisade_kube_json::{pod, workload::WORKLOADS};
use serde_json::{Value as Json, json};

use crate::updates::{BoundPolicies, CREATED, OTHER_ANNOTATION, OTHER_LABEL, compiled, neutral, set};

const LABEL: (&str, &str) = ("/metadata/labels/debug", "\"on\"");

/// A custom check, what complies with it, what an update makes of that, and what the update leaves alone.
struct Case {
    expression: &'static str,
    /// JSON pointers and values: what a complying object has, what violates it, and what an update may change.
    complies: &'static [(&'static str, &'static str)],
    violates: &'static [(&'static str, &'static str)],
    neutral: &'static [(&'static str, &'static str)],
}

fn metadata_cases() -> Vec<Case> {
    let labels = |expression, neutral| Case { expression, complies: &[], violates: &[LABEL], neutral };
    let one = |expression| labels(expression, &[OTHER_LABEL, OTHER_ANNOTATION]);
    let all = |expression| labels(expression, &[OTHER_ANNOTATION]);
    vec![
        one("object.metadata.?labels[?'debug'].orValue('') == ''"),
        one("object.metadata.?labels.orValue({})[?'debug'].orValue('') == ''"),
        one("!has(object.metadata.labels) || !('debug' in object.metadata.labels)"),
        one("!has(object.metadata.labels) || !has(object.metadata.labels.debug)"),
        one("dyn(object).metadata.?labels[?'debug'].optMap(value, value == '').orValue(true)"),
        one(
            "variables.containers.all(object, object.name != '') && object.metadata.?labels[?'debug'] == optional.none()",
        ),
        all("object.metadata.?labels.orValue({}).all(key, key != 'debug')"),
        all("['debug'].all(key, !(key in object.metadata.?labels.orValue({})))"),
        all("['debug'].all(key, object.metadata.?labels[?key].orValue('') == '')"),
        labels("[object].all(o, o.metadata.?labels[?'debug'].orValue('') == '')", &[]),
        labels("[object.metadata].all(o, o.?labels[?'debug'].orValue('') == '')", &[]),
        labels("['metadata'].all(field, dyn(object)[field].?labels[?'debug'].orValue('') == '')", &[]),
        Case {
            expression: "object.metadata.?annotations[?'team'].orValue('') == 'a'",
            complies: &[("/metadata/annotations/team", "\"a\"")],
            violates: &[
                ("/metadata/annotations/team", "\"b\""),
                ("/metadata/annotations/team", "null"),
                ("/metadata/annotations", "null"),
            ],
            neutral: &[OTHER_LABEL, OTHER_ANNOTATION],
        },
        Case {
            expression: "object.metadata.?ownerReferences.orValue([]).size() == 0",
            complies: &[],
            violates: &[(
                "/metadata/ownerReferences",
                r#"[{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}]"#,
            )],
            neutral: &[OTHER_LABEL, OTHER_ANNOTATION],
        },
        Case {
            expression: "object.metadata.?generateName.orValue('') != 'bad-'",
            complies: &[],
            violates: &[("/metadata/generateName", "\"bad-\"")],
            neutral: &[OTHER_LABEL, OTHER_ANNOTATION],
        },
        Case {
            expression: "object.metadata.?finalizers.orValue([]).all(one, one != 'example.com/bad')",
            complies: &[("/metadata/finalizers", r#"["example.com/a", "example.com/b"]"#)],
            violates: &[
                ("/metadata/finalizers", r#"["example.com/a", "example.com/bad"]"#),
                ("/metadata/finalizers", r#"["example.com/bad"]"#),
            ],
            neutral: &[OTHER_LABEL, OTHER_ANNOTATION],
        },
        Case {
            expression: "request.operation != 'UPDATE' || object.metadata.?labels[?'tier'] == oldObject.metadata.?labels[?'tier']",
            complies: &[("/metadata/labels/tier", "\"low\"")],
            violates: &[("/metadata/labels/tier", "\"high\"")],
            neutral: &[],
        },
        Case {
            expression: "request.operation == 'CREATE' || request.userInfo.username != 'alice'",
            complies: &[],
            violates: &[OTHER_LABEL, OTHER_ANNOTATION],
            neutral: &[],
        },
    ]
}

/// Of pods alone, and of their templates in workloads.
const ANNOTATION: Case = Case {
    expression: "variables.annotations[?'team'].orValue('') == 'a'",
    complies: &[("/metadata/annotations/team", "\"a\"")],
    violates: &[("/metadata/annotations/team", "\"b\""), ("/metadata/annotations", "null")],
    neutral: &[OTHER_LABEL, OTHER_ANNOTATION],
};

/// Beside the custom check stands one of the catalogue, which an object that is older than the profile violates.
fn with_custom(case: &Case) -> BoundPolicies {
    let compiled = compiled(&json!({
        "privileges": {"privileged": false},
        "customChecks": [{"id": "own", "expression": case.expression, "message": "no"}],
    }));
    check(compiled.clone()).unwrap_or_else(|rejected| panic!("{}: {rejected}", case.expression));
    BoundPolicies::new(&compiled, &[])
}

fn tries(judge: &BoundPolicies, case: &Case, object: &Json) {
    let mut old = object.clone();
    set(&mut old, case.complies);
    let what = case.expression;
    assert!(judge.creates(&old), "{what} {old}");
    let mut older = old.clone();
    let template = WORKLOADS.iter().find(|one| one.kind == old["kind"]).map_or("", |one| one.template);
    older.pointer_mut(&format!("{template}/spec/containers/0")).unwrap()["securityContext"] =
        json!({"privileged": true});
    assert!(!judge.creates(&older), "{what} {older}");
    for object in [&old, &older] {
        for change in case.violates {
            let mut new = object.clone();
            set(&mut new, &[*change]);
            judge.updates(object, &new, "alice", false, what);
        }
        for change in case.neutral {
            let mut new = object.clone();
            set(&mut new, &[*change]);
            judge.updates(object, &new, "alice", true, what);
            judge.updates(&new, object, "alice", true, what);
        }
        // Whatever checks read, finalizers can be removed, also those of an object that is being deleted.
        for deleted in [false, true] {
            let mut held = object.clone();
            set(&mut held, &[("/metadata/finalizers", r#"["example.com/a", "example.com/b"]"#)]);
            if deleted {
                held["metadata"]["deletionTimestamp"] = CREATED.into();
            }
            let mut fewer = held.clone();
            set(&mut fewer, &[("/metadata/finalizers", r#"["example.com/b"]"#)]);
            let mut released = fewer.clone();
            set(&mut released, &[("/metadata/finalizers", "null"), ("/metadata/resourceVersion", "\"7\"")]);
            released["metadata"]["managedFields"] = json!([{"manager": "x", "operation": "Update"}]);
            judge.updates(&held, &fewer, "alice", true, what);
            judge.updates(&fewer, &released, "alice", true, what);
        }
    }
}

#[test]
fn an_update_to_what_a_custom_check_of_metadata_forbids_is_denied() {
    let pod = pod::minimal("x");
    for case in metadata_cases() {
        let judge = with_custom(&case);
        tries(&judge, &case, &pod);
        for workload in &WORKLOADS {
            tries(&judge, &case, &workload.around("x", &pod));
        }
    }
    let judge = with_custom(&ANNOTATION);
    tries(&judge, &ANNOTATION, &pod);
    for workload in &WORKLOADS {
        let mut annotated = pod.clone();
        set(&mut annotated, ANNOTATION.complies);
        let old = workload.around("x", &annotated);
        judge.updates(&old, &workload.around("x", &pod), "alice", false, workload.kind);
        for new in neutral(&old) {
            judge.updates(&old, &new, "alice", true, workload.kind);
        }
    }
}

#[test]
fn an_update_to_what_a_custom_check_of_a_workload_forbids_is_denied() {
    let of = |kind: &str| WORKLOADS.iter().find(|one| one.kind == kind).unwrap().around("x", &pod::minimal("x"));
    let cases = [
        (
            "Deployment",
            Case {
                expression: "request.kind.kind != 'Deployment' || dyn(object).spec.?replicas.orValue(1) <= 3",
                complies: &[("/spec/replicas", "3")],
                violates: &[("/spec/replicas", "4")],
                neutral: &[("/spec/paused", "true"), ("/spec/replicas", "2"), OTHER_LABEL],
            },
        ),
        (
            "Deployment",
            Case {
                expression: "request.kind.kind != 'Deployment' || dyn(object)['spec'].?strategy.?type.orValue('') != 'Recreate'",
                complies: &[],
                violates: &[("/spec/strategy", r#"{"type": "Recreate"}"#)],
                neutral: &[("/spec/replicas", "2")],
            },
        ),
        (
            "Deployment",
            Case {
                expression: "[dyn(object)].all(o, !has(o.spec) || o.spec.?replicas.orValue(1) <= 3)",
                complies: &[],
                violates: &[("/spec/replicas", "4")],
                neutral: &[],
            },
        ),
        (
            "CronJob",
            Case {
                expression: "request.kind.kind != 'CronJob' || !dyn(object).spec.schedule.startsWith('*')",
                complies: &[],
                violates: &[("/spec/schedule", "\"* * * * *\"")],
                neutral: &[("/spec/suspend", "true"), ("/spec/jobTemplate/metadata", r#"{"labels": {"a": "b"}}"#)],
            },
        ),
        (
            "CronJob",
            Case {
                expression: "request.kind.kind != 'CronJob' || !has(dyn(object).spec.jobTemplate.metadata)",
                complies: &[],
                violates: &[("/spec/jobTemplate/metadata", r#"{"labels": {"a": "b"}}"#)],
                neutral: &[("/spec/suspend", "true")],
            },
        ),
    ];
    for (kind, case) in cases {
        tries(&with_custom(&case), &case, &of(kind));
    }
}
