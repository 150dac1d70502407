//! Any expression that is accepted, on any object: within the limit of one expression, without a panic, a stack
//! overflow or a long run.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use palisade_cel::{
    Environment, ResultType,
    eval::{Activation, PER_CALL_LIMIT},
    value::Value,
};
use palisade_fuzz::{json, split};

static ENVIRONMENTS: LazyLock<[Environment; 2]> = LazyLock::new(palisade_fuzz::environments);

const WORDS: &[&str] = &[
    "metadata",
    "name",
    "labels",
    "spec",
    "containers",
    "image",
    "app",
    "a",
    "b",
    "num",
    "mm",
    "s1",
    "li10",
    "1Gi",
    "10.0.0.1",
    "10.0.0.0/8",
    "https://a.b:80/c?d=e",
    "1h",
    "2024-02-29T12:34:56Z",
    "1.2.3",
    "^[a-z]+$",
    "%s",
    "é😀",
];

fuzz_target!(|input: &[u8]| {
    let Some((source, rest)) = split(input) else { return };
    let object = json(rest, WORDS);
    for environment in ENVIRONMENTS.iter() {
        let Ok(program) = environment.compile(source, ResultType::Any) else { continue };
        let activation = Activation::new()
            .bind("object", Value::from_json(&object))
            .bind("oldObject", Value::Null)
            .bind("params", Value::from_json(&object["spec"]))
            .with_variables();
        let evaluation = program.evaluate(&activation, PER_CALL_LIMIT);
        match evaluation.result {
            Ok(value) => {
                assert!(evaluation.cost <= PER_CALL_LIMIT, "{}", evaluation.cost);
                let _ = value.canonical();
            }
            Err(error) => drop(error.to_string()),
        }
    }
});
