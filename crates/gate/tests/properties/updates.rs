//! Updates, whatever a profile says: what an update may do, a creation may.

use std::cell::Cell;

use palisade_admission::requests::Operation;
use palisade_api::{Level, ToolSecurityProfile, catalogue, names::Shape};
use palisade_gate::{Decision, ValidationRequest, Validator, Violation};
use palisade_kube_json::workload::WORKLOADS;
use proptest::{prelude::*, sample};
use serde_json::{Value as Json, json};

use crate::properties::{
    pods::{self, Change, Place},
    profile, runner, settings, values, yaml,
};

/// How many pairs of objects are judged by a profile.
const PAIRS: usize = 60;

/// Custom checks, which read all kinds of places.
const CUSTOM: [&str; 14] = [
    "object.metadata.?labels[?'debug'].orValue('') == ''",
    "!('debug' in object.metadata.?labels.orValue({})) || variables.spec.?hostname.orValue('') == ''",
    "object.metadata.?labels.orValue({}).all(key, !key.startsWith('deb'))",
    "variables.annotations[?'team'].orValue('a') == 'a'",
    "variables.annotations.all(key, variables.annotations[key] != 'unconfined')",
    "object.metadata.?annotations[?'team'].optMap(team, team == 'a').orValue(true)",
    "['labels', 'annotations'].all(field, dyn(object).metadata[?field].orValue({})[?'team'].orValue('a') == 'a')",
    "[object].all(o, o.metadata.?labels[?'debug'].orValue('') != 'on')",
    "object.metadata.?ownerReferences.orValue([]).all(owner, owner.kind != 'Pod')",
    "object.metadata.?finalizers.orValue([]).size() < 2",
    "dyn(object).?spec.?replicas.orValue(1) < 4",
    "variables.containers.all(object, object.image != 'evil.example/x')",
    "variables.spec.?tolerations.orValue([]).size() + object.metadata.?labels.orValue({}).size() < 3",
    "request.namespace != object.metadata.?labels[?'debug'].orValue('')",
];

/// Changes that no change of the spec is.
fn metadata() -> impl Strategy<Value = (&'static str, Json)> {
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "1"}]);
    sample::select(vec![
        ("/metadata/labels", json!({"debug": "on"})),
        ("/metadata/labels", json!({"debug": "tenant", "team": "b"})),
        ("/metadata/labels", json!({"other": "x", "more": "y"})),
        ("/metadata/annotations", json!({"team": "b"})),
        ("/metadata/annotations", json!({"team": "a", "other": "unconfined"})),
        ("/metadata/annotations", json!({"container.apparmor.security.beta.kubernetes.io/main": "unconfined"})),
        ("/metadata/annotations", json!({"seccomp.security.alpha.kubernetes.io/pod": "unconfined"})),
        ("/metadata/annotations", json!({})),
        ("/metadata/ownerReferences", owner),
        ("/metadata/ownerReferences", json!([])),
        ("/metadata/finalizers", json!(["example.com/a", "example.com/b"])),
        ("/metadata/finalizers", json!(["example.com/a"])),
        ("/spec/replicas", json!(2)),
        ("/spec/replicas", json!(4)),
    ])
}

/// Whether an update of a pod can change this: the API server keeps the other fields of a spec.
fn can_be_updated(change: &Change) -> bool {
    let fields = ["tolerations", "nodeSelector", "affinity", "activeDeadlineSeconds", "schedulingGates"];
    match change {
        Change::Field { place: Place::Pod, path, .. } => fields.contains(&path.split('.').next().unwrap_or_default()),
        Change::Field { place: Place::Container(list), path, .. } => *path == "image" && *list != "ephemeralContainers",
        Change::Field { place: Place::Annotation, .. } => true,
        Change::Volume { .. } => false,
    }
}

fn set(object: &mut Json, pointer: &str, value: &Json) {
    let Some((parent, field)) = pointer.rsplit_once('/') else { return };
    if let Some(parent) = object.pointer_mut(parent).and_then(Json::as_object_mut) {
        parent.insert(field.to_owned(), value.clone());
    }
}

/// An object is changed as an update can. If the policy admits that, then a creation of the same object finds nothing that it
/// does not find in the old one: no update brings in a violation. And one that touches nothing but the metadata of what is
/// admitted is denied for nothing that a creation would not be denied for.
#[test]
fn no_update_brings_in_a_violation() {
    // Most changes are of fields that no update can change.
    let changes = (prop::collection::vec(pods::change(catalogue::ALL), 0..16), prop::collection::vec(metadata(), 0..3));
    let before = prop::collection::vec(pods::change(catalogue::ALL), 0..3);
    let pair = (pods::shape(), before, changes, prop::option::of(sample::select(&WORKLOADS[..])));
    let customs = sample::subsequence(CUSTOM.to_vec(), 0..4);
    let asked = sample::subsequence(vec!["privileged", "seccompProfile", "own0"], 0..3);
    let cases = (settings::settings(), customs, asked, prop::collection::vec(pair, PAIRS));
    let [admitted, denied, exempt] = [(); 3].map(|()| Cell::new(0));
    let count = |cell: &Cell<usize>, one: bool| cell.set(cell.get() + usize::from(one));
    let outcome = runner(20).run(&cases, |(settings, customs, asked, pairs)| {
        let mut profile = profile(&settings, Level::Privileged);
        let own = customs.iter().enumerate();
        profile["spec"]["customChecks"] = own
            .map(|(index, expression)| json!({"id": format!("own{index}"), "expression": expression, "message": "no"}))
            .collect();
        let asked: Vec<_> = asked.into_iter().filter(|id| *id != "own0" || !customs.is_empty()).collect();
        if !asked.is_empty() {
            profile["spec"]["exceptionRequests"] = json!({"checks": asked});
        }
        let profile: ToolSecurityProfile = serde_json::from_value(profile).unwrap();
        let compiled = palisade_compiler::compile(&profile).unwrap_or_else(|error| panic!("{error:?}\n{settings:?}"));
        let params = compiled.probes.params.as_ref().map(|params| json!({"spec": params}));
        let policies =
            Shape::OF_PODS.map(|shape| Validator::new(&compiled.bundle.pair(shape).unwrap().policy).unwrap());
        let updates = compiled.bundle.pods.updates.as_ref();
        let with = updates.is_none_or(|updates| updates.spec.param_ref.is_some());
        for (shape, before, (of_spec, of_metadata), workload) in pairs {
            let mut pod = shape.complying(&settings, &values());
            for change in &before {
                change.apply(&mut pod);
            }
            let shown = |pod: &Json| workload.map_or_else(|| pod.clone(), |one| one.around("random", pod));
            let old = shown(&pod);
            for change in of_spec.iter().filter(|change| can_be_updated(change)) {
                change.apply(&mut pod);
            }
            let mut new = shown(&pod);
            for (pointer, value) in &of_metadata {
                if workload.is_some() || pointer.starts_with("/metadata") {
                    set(&mut new, pointer, value);
                }
            }
            let kind = workload.map_or("Pod", |one| one.kind);
            let policy = &policies[usize::from(workload.is_some())];
            let violations = |request: &ValidationRequest<'_>| -> Result<Vec<Violation>, TestCaseError> {
                match policy.evaluate(request) {
                    Ok(Decision::Admit) => Ok(vec![]),
                    Ok(Decision::Deny { violations, .. }) => Ok(violations),
                    Err(error) => Err(TestCaseError::fail(format!("{error}\n{request:?}"))),
                }
            };
            let [mut old, mut new] = [old, new];
            for object in [&mut old, &mut new] {
                object["metadata"]["creationTimestamp"] = "2026-06-01T00:00:00Z".into();
            }
            let create = |object| {
                let mut found = violations(&ValidationRequest {
                    params: params.as_ref(),
                    ..ValidationRequest::create(kind, object)
                })?;
                // An update of a pod cannot set it, but the scheduler does.
                found.retain(|one| kind != "Pod" || one.check != "nodeName");
                Ok::<_, TestCaseError>(found)
            };
            let (of_old, of_new) = (create(&old)?, create(&new)?);
            let update = ValidationRequest {
                operation: Operation::Update,
                old_object: &old,
                params: params.as_ref().filter(|_| with || kind != "Pod"),
                ..ValidationRequest::create(kind, &new)
            };
            let of_update = violations(&update)?;
            let context =
                || format!("{of_update:?}\nold: {old}\nnew: {new}\n{customs:?} {asked:?}\n{}", yaml(&settings));
            for one in &of_new {
                prop_assert!(!of_update.is_empty() || of_old.contains(one), "admitted: {one:?}\n{}", context());
            }
            for one in &of_update {
                prop_assert!(of_new.contains(one), "denied for {one:?}, and a creation is not\n{}", context());
            }
            let same_spec = ["/spec", "/template"].iter().all(|at| old.pointer(at) == new.pointer(at));
            let brings = of_new.iter().any(|one| !of_old.contains(one));
            count(&admitted, of_update.is_empty());
            count(&denied, !of_update.is_empty() && brings);
            count(&exempt, of_update.is_empty() && same_spec && !of_new.is_empty());
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let counts = (admitted.get(), denied.get(), exempt.get());
    println!("updates admitted, denied for what they bring in, and admitted of what violates: {counts:?}");
    assert!(counts.0 > 100 && counts.1 > 20 && counts.2 > 10, "too few of a kind: {counts:?}");
}
