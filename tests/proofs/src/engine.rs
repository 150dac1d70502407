//! The formulas of expressions against the evaluator of CEL, of the expressions that profiles compile to, on pods near
//! their constants.

use std::collections::BTreeMap;

use palisade_api::{catalogue, names::Shape};
use palisade_cel::{
    Admission, Environment, Minor, Mode, ResultType,
    eval::{Activation, PER_CALL_LIMIT, Program},
    types::Type,
    value::Value,
};
use palisade_checks::fixture::Fixture;
use palisade_prove::{
    Operation,
    concrete::Concrete,
    question::{Encoded, expression},
};
use serde_json::{Value as Json, json};

use crate::support::{self, Types};

/// A sequence of numbers that look random (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// The pods of all fixtures of the catalogue.
fn pods() -> Vec<Json> {
    let fixtures =
        catalogue::ALL.iter().flat_map(|check| serde_saphyr::from_str::<Vec<Fixture>>(check.fixtures).unwrap());
    fixtures.map(|fixture| fixture.pod()).collect()
}

/// Changes an object a little: fields of others, fewer fields, other scalars.
fn change(random: &mut Random, of: &mut Json, other: &Json) {
    match (of, other) {
        (Json::Object(of), Json::Object(other)) => {
            for (key, value) in other {
                match of.get_mut(key) {
                    Some(of) if random.below(2) == 0 => change(random, of, value),
                    None if random.below(2) == 0 => {
                        of.insert(key.clone(), value.clone());
                    }
                    _ => {}
                }
            }
            let optional: Vec<_> = of.keys().filter(|key| !REQUIRED.contains(&key.as_str())).cloned().collect();
            if !optional.is_empty() && random.below(8) == 0 {
                of.remove(&optional[random.below(optional.len())]);
            }
        }
        (Json::Array(of), Json::Array(other)) => {
            for value in other {
                if of.is_empty() || random.below(3) == 0 {
                    of.push(value.clone());
                } else {
                    let index = random.below(of.len());
                    change(random, &mut of[index], value);
                }
            }
            if of.len() > 1 && random.below(6) == 0 {
                let index = random.below(of.len());
                of.remove(index);
            }
        }
        (of, other) if random.below(2) == 0 => *of = other.clone(),
        (Json::Bool(of), _) => *of = !*of,
        (Json::Number(of), _) => *of = json!(random.below(3)).as_number().unwrap().clone(),
        _ => {}
    }
}

/// The fields that each object has.
const REQUIRED: &[&str] = &[
    "name",
    "containers",
    "metadata",
    "spec",
    "apiVersion",
    "kind",
    "path",
    "type",
    "mountPath",
    "driver",
    "value",
    "containerPort",
    "port",
    "topologyKey",
    "key",
    "operator",
    "secretName",
    "claimName",
    "nodeSelectorTerms",
    "sources",
    "resource",
    "server",
    "image",
    "volumeID",
    "lun",
    "targetPortal",
    "iqn",
    "devicePath",
    "ip",
    "conditionType",
];

/// The programs of a policy.
struct Programs {
    variables: Vec<(String, Program)>,
    expressions: Vec<Program>,
}

fn programs(variables: &[(String, String)], expressions: &[String], params: bool) -> Programs {
    let admission = Admission { params: params.then_some(Type::Dyn), ..Admission::default() };
    let mut environment = Environment::kubernetes(Minor::DEFAULT, Mode::Stored).with_admission(&admission);
    let mut compiled = Vec::new();
    for (name, text) in variables {
        let output = environment.check(text).unwrap().output_type().clone();
        compiled.push((name.clone(), environment.compile(text, ResultType::Any).unwrap()));
        environment = environment.compose(name, Some(&output));
    }
    let expressions = expressions.iter().map(|text| environment.compile(text, ResultType::Any).unwrap()).collect();
    Programs { variables: compiled, expressions }
}

/// The expressions to compare: each variable, condition and validation, as far as it is a bool or a list.
fn expressions(variables: &[(String, String)], others: &[String]) -> Vec<String> {
    let admission = Admission { params: Some(Type::Dyn), ..Admission::default() };
    let mut environment = Environment::kubernetes(Minor::DEFAULT, Mode::Stored).with_admission(&admission);
    let mut all = others.to_vec();
    for (name, text) in variables {
        let output = environment.check(text).unwrap().output_type().clone();
        match &output {
            Type::Bool => all.push(format!("variables.{name}")),
            Type::List(_) => all.push(format!("variables.{name}.size() == 0")),
            _ => {}
        }
        environment = environment.compose(name, Some(&output));
    }
    all
}

/// A request for a pod near those of the fixtures.
fn bound(random: &mut Random, pods: &[Json], operation: Operation, params: Json) -> BTreeMap<String, Json> {
    let mut pod = pods[random.below(pods.len())].clone();
    for _ in 0..random.below(4) {
        let other = random.below(pods.len());
        change(random, &mut pod, &pods[other]);
    }
    let mut old = pod.clone();
    if random.below(2) == 0 {
        let other = random.below(pods.len());
        change(random, &mut old, &pods[other]);
    }
    let (operation, old) = match operation {
        Operation::Create => ("CREATE", Json::Null),
        Operation::Update => ("UPDATE", old),
    };
    let node = random.below(4) == 0;
    let request = json!({
        "operation": operation, "namespace": if random.below(6) == 0 { "palisade-probe" } else { "tenant" },
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "userInfo": {
            "username": if node { "system:node:n" } else { "alice" },
            "groups": if node { json!(["system:nodes"]) } else { json!([]) },
        },
    });
    [("object", pod), ("request", request), ("oldObject", old), ("params", params)]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

/// Counts of comparisons.
#[derive(Debug, Default)]
struct Tally {
    compared: u64,
    failed: u64,
    undecided: u64,
}

/// Compares all expressions on one request.
fn compare(
    tally: &mut Tally,
    programs: &Programs,
    texts: &[String],
    encoded: &Encoded,
    bound: &BTreeMap<String, Json>,
) {
    let mut activation = Activation::new().with_variables();
    for (name, value) in bound {
        activation = activation.bind(name.as_str(), Value::from_json(value));
    }
    for (name, program) in &programs.variables {
        activation = activation.variable(name.as_str(), program, PER_CALL_LIMIT);
    }
    let concrete = Concrete { variables: bound, keys: &encoded.keys };
    for ((program, text), truth) in programs.expressions.iter().zip(texts).zip(&encoded.truths) {
        let result = program.evaluate(&activation, PER_CALL_LIMIT).result.ok();
        let result = result.map(|value| value.as_bool().unwrap());
        let found = [truth.yes, truth.no, truth.error].map(|of| concrete.holds(&encoded.formulas, of));
        let expected = [result == Some(true), result == Some(false), result.is_none()];
        for (found, expected) in found.into_iter().zip(expected) {
            match found {
                Some(one) => assert_eq!(one, expected, "{result:?}\n{text}\n{bound:?}"),
                None => tally.undecided += 1,
            }
        }
        tally.failed += u64::from(result.is_none());
        tally.compared += 1;
    }
}

#[test]
fn formulas_agree_with_evaluator() {
    let types = Types::of(Minor::DEFAULT);
    let object = types.kind("v1/Pod");
    let pods = pods();
    let mut random = Random(42);
    let mut tally = Tally::default();
    for (_, profile) in support::examples() {
        let compiled = support::compile(&profile);
        let spec = compiled.bundle.pair(Shape::Pods).unwrap().policy.spec.clone().unwrap();
        let policy = support::policy(&compiled, Shape::Pods).unwrap();
        let variables: Vec<_> =
            spec.variables.iter().flatten().map(|one| (one.name.clone(), one.expression.clone())).collect();
        let conditions = spec.match_conditions.iter().flatten().map(|one| one.expression.clone());
        let others: Vec<_> =
            conditions.chain(spec.validations.iter().flatten().map(|one| one.expression.clone())).collect();
        let texts = expressions(&variables, &others);
        let programs = programs(&variables, &texts, spec.param_kind.is_some());
        let nodes: Vec<_> = texts.iter().map(|text| expression(text).unwrap()).collect();
        let params = compiled.probes.params.as_ref().map(|spec| json!({"metadata": {"name": "p"}, "spec": spec}));
        for operation in [Operation::Create, Operation::Update] {
            let encoded = support::requests(&object, "Pod", operation, &types.params).encoded(&policy, &nodes).unwrap();
            for round in 0..ROUNDS {
                let params = params.clone().filter(|_| round % 9 != 8).unwrap_or_default();
                let bound = bound(&mut random, &pods, operation, params);
                compare(&mut tally, &programs, &texts, &encoded, &bound);
            }
        }
    }
    println!("{tally:?}");
    assert!(tally.compared > 10_000 && tally.failed > 0 && tally.undecided < tally.compared / 4, "{tally:?}");
}

/// How many requests each policy gets of each operation.
const ROUNDS: usize = 60;
