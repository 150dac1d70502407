//! The fast path over many pods by each profile, which takes much longer to compile than a pod to judge.

use std::cell::Cell;

use palisade_admission::requests::Operation;
use palisade_api::{Level, catalogue, names::Shape};
use palisade_gate::{Decision, ValidationRequest, Validator};
use palisade_kube_json::workload::WORKLOADS;
use proptest::{prelude::*, sample};
use serde_json::{Value as Json, json};

use crate::properties::{compile, pods, random::Random, runner, settings, unusual, values, yaml};

/// How many pods are judged by a profile.
const PODS: usize = 100;

/// The pod before the first one.
fn pod_of_nothing() -> Json {
    palisade_kube_json::pod::minimal("older")
}

/// What the match condition excludes violates nothing, and it never fails: [`Validator::judge`] returns an error
/// otherwise. Each pod is created and updated, by itself and in a workload of any kind.
#[test]
fn fast_path_never_admits_violation() {
    let changes = prop::collection::vec(pods::change(catalogue::ALL), 0..4);
    let unusual = prop::option::of(any::<u64>());
    let pod = (pods::shape(), prop::bool::weighted(0.8), changes, unusual, sample::select(&WORKLOADS[..]));
    let cases = (settings::settings(), prop::collection::vec(pod, PODS), prop::bool::weighted(0.2));
    let [early, denied, judged] = [(); 3].map(|()| Cell::new(0));
    let outcome = runner(5).run(&cases, |(settings, pods, restricted)| {
        let level = if restricted { Level::Restricted } else { Level::Privileged };
        let compiled = compile(&settings, level);
        let params = compiled.probes.params.as_ref().map(|params| json!({"spec": params}));
        let policies =
            Shape::OF_PODS.map(|shape| Validator::new(&compiled.bundle.pair(shape).unwrap().policy).unwrap());
        let mut before: Option<Json> = None;
        for (shape, complying, changes, unusual, workload) in pods {
            let mut pod = if complying { shape.complying(&settings, &values()) } else { shape.bare() };
            for change in &changes {
                change.apply(&mut pod);
            }
            if let Some(seed) = unusual {
                unusual::change(&mut Random::new(seed), &mut pod);
            }
            for (shape, policy) in Shape::OF_PODS.into_iter().zip(&policies) {
                let (kind, object) = match shape {
                    Shape::Pods => ("Pod", pod.clone()),
                    Shape::Workloads | Shape::Objects => (workload.kind, workload.around("random", &pod)),
                };
                // Another pod, which shares nothing with this one.
                let older = before.as_ref().map_or_else(pod_of_nothing, Clone::clone);
                let older = if shape == Shape::Pods { older } else { workload.around("random", &older) };
                let create = ValidationRequest { params: params.as_ref(), ..ValidationRequest::create(kind, &object) };
                let update = ValidationRequest { operation: Operation::Update, old_object: &older, ..create.clone() };
                for request in [create, update] {
                    let judgement = policy.judge(&request);
                    let judgement = judgement
                        .map_err(|error| TestCaseError::fail(format!("{error:?}\n{object}\n{}", yaml(&settings))))?;
                    judged.set(judged.get() + 1);
                    early.set(early.get() + usize::from(!judgement.matched));
                    denied.set(denied.get() + usize::from(judgement.decision != Decision::Admit));
                }
            }
            before = Some(pod);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let [early, denied, judged] = [early, denied, judged].map(Cell::into_inner);
    println!("{judged} requests: {early} left early, {denied} denied");
    assert!(early > 0 && denied > 0, "{judged} requests: {early} left early, {denied} denied");
}
