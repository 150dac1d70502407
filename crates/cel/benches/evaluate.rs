//! How long compiling and evaluating takes: `cargo bench -p palisade-cel`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "this measures time")]

use std::{hint::black_box, time::Instant};

use palisade_cel::{
    Minor,
    environment::{Environment, Mode},
    eval::{Activation, PER_CALL_LIMIT, Program},
    schema::Admission,
    types::Type,
    value::Value,
};
use serde_json::json;

const EXPRESSIONS: &[&str] = &[
    "1 + 2 == 3",
    "object.spec.replicas <= params.maxReplicas",
    "object.spec.containers.all(c, has(c.securityContext) && c.securityContext.privileged == false)",
    "object.spec.containers.filter(c, c.image.startsWith('registry.example/')).map(c, c.name).size() == 5",
    "object.spec.?hostNetwork.orValue(false) == false && object.metadata.?labels['app'].orValue('') in ['a', 'b', 'web']",
    "quantity('1Gi').isLessThan(quantity('2Gi')) && object.metadata.name.matches('^[a-z]+$')",
];

/// Nanoseconds per call, the best of several rounds.
fn measure<T>(mut call: impl FnMut() -> T) -> u128 {
    (0..20)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..500 {
                black_box(call());
            }
            start.elapsed().as_nanos() / 500
        })
        .min()
        .unwrap_or_default()
}

fn main() {
    let container = |name: &str| json!({"name": name, "image": format!("registry.example/{name}:1"), "securityContext": {"privileged": false}});
    let containers: Vec<_> = ["a", "b", "c", "d", "e"].map(container).into();
    let object = json!({
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"replicas": 3, "containers": containers},
    });
    let params = json!({"maxReplicas": 5});
    let admission = Admission { params: Some(Type::Dyn), ..Admission::default() };
    let environment = Environment::kubernetes(Minor::DEFAULT, Mode::Stored).with_admission(&admission);
    println!("{:>10} {:>10}  cost", "compile ns", "eval ns");
    for source in EXPRESSIONS {
        let compile = || Program::new(&environment.check(source).unwrap(), &environment).unwrap();
        let program = compile();
        let activation =
            Activation::new().bind("object", Value::from_json(&object)).bind("params", Value::from_json(&params));
        let evaluate = || program.evaluate(&activation, PER_CALL_LIMIT);
        let evaluation = evaluate();
        let result = evaluation.result.map(|value| value.canonical());
        println!("{:>10} {:>10}  {:>4} {source} = {result:?}", measure(compile), measure(evaluate), evaluation.cost);
    }
}
