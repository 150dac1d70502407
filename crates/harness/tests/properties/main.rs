//! What holds whatever a profile says: random profiles, judged by the policies that they become.
//!
//! A run in `cargo test` is short and always the same. `make properties` runs many more cases, each time others:
//! `PROPTEST_CASES` says how many. What it finds is worth a fixture.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod pods;
mod settings;
mod tighten;

use std::{cell::Cell, env};

use palisade_api::{Level, Settings, ToolSecurityProfile};
use palisade_checks::{Resolved, Values};
use palisade_compiler::Compiled;
use palisade_harness::{Decision, Operation, Policy, Request};
use proptest::{
    prelude::*,
    sample::Index,
    test_runner::{Config, RngSeed, TestRunner},
};
use serde_json::{Value as Json, json};

/// A runner of `cases`, always the same ones, or of as many random ones as the environment says.
fn runner(cases: u32) -> TestRunner {
    let config = Config { failure_persistence: None, ..Config::default() };
    TestRunner::new(match env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => Config { cases, rng_seed: RngSeed::Fixed(1), ..config },
    })
}

/// The parameters that settings refer to: name, type, and the value that they have.
const PARAMETERS: [(&str, &str, &str); 14] = [
    ("uid", "Integer", "1000"),
    ("on", "Boolean", "true"),
    ("off", "Boolean", "false"),
    ("text", "String", "text"),
    ("texts", "StringList", "text,system_u"),
    ("cap", "String", "NET_RAW"),
    ("caps", "StringList", "MKNOD,CHOWN"),
    ("kind", "String", "RuntimeDefault"),
    ("kinds", "StringList", "Localhost,RuntimeDefault"),
    ("sysctls", "StringList", "kernel.msg*,net.core.somaxconn"),
    ("volume", "String", "hostPath"),
    ("volumes", "StringList", "csi,nfs"),
    ("registries", "StringList", "registry.example/team,own.example"),
    ("unused", "String", "x"),
];

fn profile(settings: &Settings, level: Level) -> Json {
    let parameters = PARAMETERS.map(|(name, kind, value)| {
        let value = value.parse::<i64>().map_or_else(|_| json!(value), Json::from);
        json!({"name": name, "type": kind, "default": value})
    });
    let mut spec = json!({
        "namespaceSelector": {"matchLabels": {"a": "b"}}, "parameters": parameters, "baseline": level,
    });
    for (group, value) in json!(settings).as_object().unwrap() {
        spec[group] = value.clone();
    }
    json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "random"},
        "spec": spec,
    })
}

fn values() -> Values {
    let value = |kind: &str, text: &str| match kind {
        "Integer" => Resolved::Integer(text.parse().unwrap()),
        "Boolean" => Resolved::Boolean(text == "true"),
        "StringList" => Resolved::StringList(text.split(',').map(str::to_owned).collect()),
        _ => Resolved::String(text.to_owned()),
    };
    PARAMETERS.map(|(name, kind, text)| (name.to_owned(), value(kind, text))).into()
}

fn compile(settings: &Settings, level: Level) -> Compiled {
    let profile: ToolSecurityProfile = serde_json::from_value(profile(settings, level)).unwrap();
    palisade_compiler::compile(&profile).unwrap_or_else(|error| panic!("{error:?}\n{settings:?}"))
}

/// What a profile becomes, with the parameters that it is judged with.
struct Judge {
    policy: Policy,
    params: Json,
}

impl Judge {
    fn new(compiled: &Compiled) -> Self {
        let policy = Policy::new(&compiled.bundle.policy).unwrap_or_else(|error| panic!("{error:?}"));
        Self { policy, params: json!({"spec": compiled.probes.params}) }
    }

    /// The message of the denial, if it is denied. That an expression fails on a pod is a mistake, too.
    fn denial(&self, pod: &Json) -> Option<String> {
        let request = Request {
            namespace: "tenant",
            operation: Operation::Create,
            subresource: "",
            object: pod,
            old_object: &Json::Null,
            params: Some(&self.params),
        };
        match self.policy.evaluate(&request) {
            Ok(Decision::Admit) => None,
            Ok(Decision::Deny { message, .. }) => Some(message),
            Err(error) => panic!("{error}\n{pod}"),
        }
    }
}

fn yaml(settings: &Settings) -> String {
    serde_saphyr::to_string(settings).unwrap_or_default()
}

#[test]
fn a_stricter_profile_admits_nothing_that_a_weaker_one_denies() {
    let (admitted, denied, between) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let count = |cell: &Cell<u32>| cell.set(cell.get() + 1);
    let steps = prop::collection::vec((0..tighten::STEPS.len(), any::<Index>()), 1..12);
    let cases = (settings::settings(), steps, prop::collection::vec(pods::draft(), 12));
    let outcome = runner(150).run(&cases, |(weak, steps, drafts)| {
        let mut strict = weak.clone();
        steps.iter().for_each(|(step, at)| tighten::STEPS[*step](&mut strict, *at));
        let of_weak = Judge::new(&compile(&weak, Level::Privileged));
        let of_strict = Judge::new(&compile(&strict, Level::Privileged));
        for draft in &drafts {
            let pod = draft.pod(&strict, &values());
            match (of_weak.denial(&pod), of_strict.denial(&pod)) {
                (None, None) => count(&admitted),
                (Some(_), Some(_)) => count(&denied),
                (None, Some(_)) => count(&between),
                (Some(message), None) => prop_assert!(
                    false,
                    "admitted by the stricter one, and denied by the weaker one: {message}\n{pod}\nweak:\n{}strict:\n{}",
                    yaml(&weak),
                    yaml(&strict)
                ),
            }
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let counts = [admitted, denied, between].map(Cell::into_inner);
    println!("admitted by both, denied by both, denied by the stricter one: {counts:?}");
    let all: u32 = counts.iter().sum();
    assert!(counts.iter().all(|count| count * 20 > all), "each happens in one of twenty cases at least: {counts:?}");
}
