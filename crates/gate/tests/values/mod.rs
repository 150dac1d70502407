//! What values at the ends of their types, and values that somebody else writes, make of a profile: random ones, against
//! what they mean in Rust.

mod images;
mod numbers;
mod parameters;

use palisade_api::{ToolSecurityParamsSpec, ToolSecurityProfile};
use palisade_compiler::{Compiled, compile};
use palisade_gate::{Decision, ValidationRequest, Validator};
use palisade_kube_json::pod;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::{Value as Json, json};

/// Always the same cases, or as many others as the environment says.
fn runner(cases: u32) -> TestRunner {
    let config = Config { failure_persistence: None, max_shrink_iters: 1000, ..Config::default() };
    TestRunner::new(match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => Config { cases, rng_seed: RngSeed::Fixed(1), ..config },
    })
}

fn compiled(spec: &Json) -> Compiled {
    let mut profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "test"},
        "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged"},
    });
    pod::merge(&mut profile["spec"], spec);
    let profile: ToolSecurityProfile = serde_json::from_value(profile).unwrap();
    compile(&profile).unwrap_or_else(|error| panic!("{error:?}\n{spec}"))
}

/// The policy of pods. That an expression fails on a pod is a mistake.
struct PodPolicy(Validator);

impl PodPolicy {
    fn new(compiled: &Compiled) -> Self {
        Self(Validator::new(&compiled.bundle.pods.policy).unwrap_or_else(|error| panic!("{error:?}")))
    }

    fn denial(&self, pod: &Json, params: Option<&ToolSecurityParamsSpec>) -> Option<String> {
        let params = params.map(|spec| json!({"spec": spec}));
        let request = ValidationRequest { params: params.as_ref(), ..ValidationRequest::create("Pod", pod) };
        match self.0.evaluate(&request) {
            Ok(Decision::Admit) => None,
            Ok(Decision::Deny { message, .. }) => Some(message),
            Err(error) => panic!("{error}\n{pod}"),
        }
    }
}
