//! Checks of the catalogue, each with its fixtures.

use std::collections::BTreeMap;

use palisade_api::catalogue;
use palisade_checks::{Field, fixture::Fixture};
use palisade_compiler::VIOLATIONS;
use palisade_kube_json::workload::WORKLOADS;
use serde_json::{Value as Json, json};

use crate::updates::{BoundPolicies, compiled, neutral};

/// Fields of a pod's spec that updates can change: `palisade_checks` says so to the policies, and this again.
const OF_SPEC: [&str; 6] = [
    "activeDeadlineSeconds",
    "affinity",
    "nodeSelector",
    "schedulingGates",
    "terminationGracePeriodSeconds",
    "tolerations",
];

/// What an update can make of a pod to be like another one: the fields of its spec, the images, and the metadata.
fn updates_towards(old: &Json, other: &Json) -> Vec<Json> {
    let with = |pointer: &str| {
        let value = other.pointer(pointer).filter(|value| !value.is_null())?;
        let mut new = old.clone();
        let (parent, field) = pointer.rsplit_once('/')?;
        new.pointer_mut(parent)?[field] = value.clone();
        Some(new)
    };
    let mut places: Vec<_> = OF_SPEC.map(|field| format!("/spec/{field}")).into();
    for list in ["containers", "initContainers"] {
        places.extend((0..3).map(|index| format!("/spec/{list}/{index}/image")));
    }
    places.extend(["annotations", "labels"].map(|field| format!("/metadata/{field}")));
    places.iter().filter_map(|place| with(place)).filter(|new| new != old).collect()
}

/// For each fixture of the catalogue that violates its check: the compliant pod is changed towards it.
#[test]
fn an_update_to_what_a_check_of_the_catalogue_forbids_is_denied() {
    let (mut denied, mut admitted) = (BTreeMap::<&str, usize>::new(), 0);
    for check in catalogue::ALL {
        let fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures).unwrap();
        for fixture in fixtures.iter().filter(|fixture| !fixture.violations.is_empty() && fixture.invalid.is_none()) {
            let compiled = compiled(&fixture.spec(&json!({"a": "b"})));
            let judge = BoundPolicies::new(&compiled, &[]);
            let mut old = compiled.probes.compliant.pod.clone();
            // Not what makes it a probe.
            old["metadata"]["labels"] = json!({});
            let bad = fixture.pod();
            for new in updates_towards(&old, &bad) {
                let complies = judge.creates(&new);
                judge.updates(&old, &new, "alice", complies, &format!("{}: {}", check.id, fixture.name));
                *denied.entry(check.id).or_default() += usize::from(!complies);
            }
            let mut workloads: Vec<_> = WORKLOADS.iter().map(|workload| workload.around("x", &bad)).collect();
            for (workload, new) in WORKLOADS.iter().zip(&workloads).filter(|(_, new)| !judge.creates(new)) {
                judge.updates(
                    &workload.around("x", &old),
                    new,
                    "alice",
                    false,
                    &format!("{}: {}", check.id, fixture.name),
                );
            }
            // What violates already: the fixture.
            workloads.push(bad);
            for object in &workloads {
                for new in neutral(object) {
                    judge.updates(object, &new, "alice", true, "neutral metadata");
                    judge.updates(&new, object, "alice", true, "neutral metadata removed");
                    admitted += 2;
                }
            }
        }
    }
    assert!(admitted > 5_000, "{admitted}");
    let by_updates = ["appArmorProfile", "imageRegistries", "nodeSelector", "seccompProfile", "tolerations"];
    assert_eq!(denied.iter().filter(|(_, count)| **count > 0).map(|(id, _)| *id).collect::<Vec<_>>(), by_updates);
}

/// The text of a check that reads annotations says so in its fields, and no rule reads other metadata.
#[test]
fn checks_of_the_catalogue_read_no_metadata_but_their_annotations() {
    for check in catalogue::ALL {
        let declared = check.fields.iter().any(|field| matches!(field, Field::Annotation(_)));
        let fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures).unwrap();
        let mut reads = false;
        for fixture in fixtures {
            let compiled = compiled(&fixture.spec(&json!({"a": "b"})));
            let spec = compiled.bundle.pods.policy.spec.unwrap();
            // The last one has the name of a probe, if no pod is known to violate the check.
            let policy_itself = [
                "exempt",
                "unchanged",
                "sameAnnotations",
                "annotations",
                "spec",
                "withinBounds",
                "overBounds",
                VIOLATIONS,
            ];
            for variable in spec.variables.unwrap().iter().filter(|one| !policy_itself.contains(&one.name.as_str())) {
                assert!(!variable.expression.contains("object."), "{}", variable.expression);
                reads |= variable.expression.contains("variables.annotations");
            }
        }
        assert_eq!(reads, declared, "{}", check.id);
    }
}
