//! The outcomes of the parts of an expression.

use palisade_cel::{
    Admission, Environment, Minor, Mode, ResultType,
    eval::{Activation, PER_CALL_LIMIT, Program, WatchKind},
    value::Value,
};
use serde_json::{Value as Json, json};

fn environment() -> Environment {
    Environment::kubernetes(Minor::DEFAULT, Mode::New).with_admission(&Admission::default())
}

fn run(program: &Program, object: &Json) -> (String, u64) {
    let activation = Activation::new().bind("object", Value::from_json(object));
    let evaluation = program.evaluate(&activation, PER_CALL_LIMIT);
    let result = evaluation.result.map_or_else(|error| format!("error: {error}"), |value| value.to_string());
    (result, evaluation.cost)
}

/// Each watch as `position kind seen`.
fn seen(program: &Program) -> Vec<String> {
    let each = program.watches().iter().map(|watch| {
        let seen = watch.seen();
        let outcomes = [(seen.yes, "yes"), (seen.no, "no"), (seen.error, "error")];
        let outcomes: Vec<_> = outcomes.into_iter().filter(|(seen, _)| *seen).map(|(_, name)| name).collect();
        let kind = match watch.kind {
            WatchKind::Whole => "whole",
            WatchKind::And => "and",
            WatchKind::Or => "or",
            WatchKind::Condition => "condition",
        };
        format!("{} {kind} {}", watch.position, outcomes.join("+"))
    });
    each.collect()
}

#[test]
fn watched_outcomes_accumulate_over_runs() {
    let source = "!has(object.a) || (object.a > 1 &&\n  object.b.all(x, x != 'c')) ? object.d : 1 < 2";
    let program = environment().watching().compile(source, ResultType::Any).unwrap();
    assert_eq!(seen(&program), ["1:1 whole ", "1:1 or ", "1:20 and ", "2:3 and ", "2:19 and ", "2:30 condition ",]);
    assert_eq!(run(&program, &json!({"d": "x"})).0, "x");
    assert_eq!(
        seen(&program),
        ["1:1 whole yes", "1:1 or yes", "1:20 and ", "2:3 and ", "2:19 and ", "2:30 condition yes",]
    );
    assert_eq!(run(&program, &json!({"a": 1})).0, "true");
    assert_eq!(run(&program, &json!({"a": 2, "b": ["c"]})).0, "true");
    assert!(run(&program, &json!({"a": 2, "b": 1})).0.starts_with("error: "));
    assert_eq!(
        seen(&program),
        [
            "1:1 whole yes+error",
            "1:1 or yes+no",
            "1:20 and yes+no",
            "2:3 and no+error",
            "2:19 and no",
            "2:30 condition yes+no+error",
        ]
    );
}

#[test]
fn watching_changes_neither_values_nor_costs() {
    let objects = [
        json!({}),
        json!({"a": 1, "b": [1, 2, 3], "c": {"x": "y"}}),
        json!({"a": "text", "b": [], "c": 1}),
        json!({"a": true, "b": [{"c": "d"}, {}], "c": null}),
    ];
    for source in [
        "object.a",
        "object.a == 1 && object.b.exists(x, x == 2) || has(object.c.x)",
        "(object.a == 1 ? object.b : object.c).size() > 0 ? 'a' : 'b'",
        "[1 < 2 && true, object.a == 1 || false].all(x, x)",
        "object.b.filter(x, has(x.c) && x.c == 'd').map(x, x.c, x.c + 'e')",
        "object.b.exists_one(x, x == 1)",
        "object.?c.x.optMap(x, x + 'z').orValue('none')",
        "{'k': object.a ? 1 : 2}.k == 1",
        "has((object.a == 1 ? object.c : object).x)",
        "(object.a == 1 ? object.b : object.c)[object.a == 1 || object.a == 2 ? 0 : 1]",
        "true",
    ] {
        let plain = environment().compile(source, ResultType::Any).unwrap();
        let watched = environment().watching().compile(source, ResultType::Any).unwrap();
        assert!(plain.watches().is_empty() && !watched.watches().is_empty());
        for object in &objects {
            assert_eq!(run(&plain, object), run(&watched, object), "{source} of {object}");
        }
    }
}
