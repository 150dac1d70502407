//! The evaluator against the crate `cel`, an evaluator that knows nothing of this one: on generated expressions, and on
//! those of `tests/oracle`. Where that crate knows a function and both give a value, it must be the same.
#![allow(clippy::disallowed_methods, reason = "expressions are in files")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
};

use cel::{
    Context, Env,
    objects::{Key, Map},
};
use palisade_cel::{
    Minor,
    environment::{Environment, Mode},
    eval::{Activation, PER_CALL_LIMIT, Program},
    schema::Admission,
    types::Type,
    value::Value,
};
use serde_json::{Value as Json, json};

/// Known errors of the crate `cel`, by a part of the source.
const KNOWN: &[(&str, &str)] = &[
    ("matches(", "its regular expressions are not RE2"),
    ("string(", "doubles are not written as Go writes them"),
    ("format(", "version 1 of the format"),
    ("ndexOf('',", "cel-go 0.26 finds nothing behind the end"),
];

fn convert(json: &Json) -> cel::Value {
    match json {
        Json::Null => cel::Value::Null,
        Json::Bool(value) => cel::Value::Bool(*value),
        Json::Number(number) => {
            number.as_i64().map_or_else(|| cel::Value::Float(number.as_f64().unwrap()), cel::Value::Int)
        }
        Json::String(text) => cel::Value::String(Arc::new(text.clone())),
        Json::Array(items) => cel::Value::List(Arc::new(items.iter().map(convert).collect())),
        Json::Object(fields) => {
            let map = fields.iter().map(|(key, value)| (Key::from(key.as_str()), convert(value))).collect();
            cel::Value::Map(Map { map: Arc::new(map) })
        }
    }
}

/// As the golden files write values; nothing for types that differ.
fn canonical(value: &cel::Value) -> Option<String> {
    Some(match value {
        cel::Value::Null => Value::Null.canonical(),
        cel::Value::Bool(value) => Value::Bool(*value).canonical(),
        cel::Value::Int(value) => Value::Int(*value).canonical(),
        cel::Value::UInt(value) => Value::Uint(*value).canonical(),
        cel::Value::Float(value) => Value::Double(*value).canonical(),
        cel::Value::String(text) => Value::from((**text).clone()).canonical(),
        cel::Value::Bytes(bytes) => Value::Bytes(bytes.as_slice().into()).canonical(),
        cel::Value::List(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Option<Vec<_>>>()?.join(","))
        }
        cel::Value::Map(map) => {
            let key = |key: &Key| match key {
                Key::Int(value) => Value::Int(*value).canonical(),
                Key::Uint(value) => Value::Uint(*value).canonical(),
                Key::Bool(value) => Value::Bool(*value).canonical(),
                Key::String(text) => Value::from((**text).clone()).canonical(),
            };
            let entry = |(name, value): (&Key, &cel::Value)| Some(format!("{}={}", key(name), canonical(value)?));
            let mut entries = map.map.iter().map(entry).collect::<Option<Vec<_>>>()?;
            entries.sort();
            format!("{{{}}}", entries.join(","))
        }
        _ => return None,
    })
}

struct Opinions {
    first: Environment,
    second: Arc<Env>,
    fixture: Json,
}

impl Opinions {
    fn new(fixture: Json) -> Self {
        let mut second = Env::stdlib();
        // The API server keeps the last of two equal keys.
        second.set_error_on_duplicate_map_keys(false);
        second.add_extension(cel::extensions::strings).unwrap();
        let admission = Admission { params: Some(Type::Dyn), ..Admission::default() };
        let first = Environment::kubernetes(Minor::DEFAULT, Mode::Stored).with_admission(&admission);
        Self { first, second: Arc::new(second), fixture }
    }

    fn first(&self, source: &str) -> Option<Result<String, String>> {
        let checked = self.first.check(source).ok()?;
        let program = Program::new(&checked, &self.first).ok()?;
        let mut activation = Activation::new().with_variables();
        for name in ["object", "oldObject", "params", "request", "namespaceObject"] {
            activation = activation.bind(name, self.fixture.get(name).map_or(Value::Null, Value::from_json));
        }
        let result = program.evaluate(&activation, PER_CALL_LIMIT).result;
        Some(result.map(|value| value.canonical()).map_err(|error| error.to_string()))
    }

    fn second(&self, source: &str) -> Option<Result<String, String>> {
        let program = self.second.compile(source).ok()?;
        let mut context = Context::with_env(Arc::clone(&self.second));
        for name in ["object", "oldObject", "params", "request", "namespaceObject"] {
            let value = self.fixture.get(name).map_or(cel::Value::Null, convert);
            context.add_variable_from_value(name, value);
        }
        match program.execute(&context) {
            Ok(value) => canonical(&value).map(Ok),
            Err(error) => Some(Err(error.to_string())),
        }
    }
}

/// The same numbers in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn pick(&mut self, of: &[&str]) -> String {
        of[self.below(of.len())].to_owned()
    }

    fn int(&mut self, depth: usize) -> String {
        match (depth, self.below(9)) {
            (0, _) | (_, 0) => {
                self.pick(&["0", "1", "-3", "7", "9223372036854775807", "object.spec.n", "object.spec.list[1]"])
            }
            (_, 1..=4) => {
                let operator = self.pick(&["+", "-", "*", "/", "%"]);
                format!("({} {operator} {})", self.int(depth - 1), self.int(depth - 1))
            }
            (_, 5) => format!("size({})", self.list(depth - 1)),
            (_, 6) => format!("{}.size()", self.text(depth - 1)),
            (_, 7) => format!("{}[{}]", self.list(depth - 1), self.int(0)),
            _ => format!("({} ? {} : {})", self.boolean(depth - 1), self.int(depth - 1), self.int(depth - 1)),
        }
    }

    fn text(&mut self, depth: usize) -> String {
        match (depth, self.below(5)) {
            (0, _) | (_, 0) => {
                self.pick(&["''", "'abc'", "'é b'", "object.metadata.name", "object.spec.list[0]", "object.no"])
            }
            (_, 1 | 2) => format!("({} + {})", self.text(depth - 1), self.text(depth - 1)),
            (_, 3) => format!("{}.lowerAscii()", self.text(depth - 1)),
            _ => format!("({} ? {} : {})", self.boolean(depth - 1), self.text(depth - 1), self.text(depth - 1)),
        }
    }

    fn list(&mut self, depth: usize) -> String {
        match (depth, self.below(5)) {
            (0, _) | (_, 0) => self.pick(&["[]", "[1, 2, 3]", "[0, -1]", "object.spec.ints"]),
            (_, 1) => format!("[{}, {}]", self.int(depth - 1), self.int(depth - 1)),
            (_, 2) => format!("({} + {})", self.list(depth - 1), self.list(depth - 1)),
            (_, 3) => format!("{}.map(x, x + {})", self.list(depth - 1), self.int(depth - 1)),
            _ => format!("{}.filter(x, {})", self.list(depth - 1), self.boolean(depth - 1)),
        }
    }

    fn boolean(&mut self, depth: usize) -> String {
        match (depth, self.below(10)) {
            (0, _) | (_, 0) => self.pick(&["true", "false", "object.spec.yes", "object.spec.no == 1", "1 / 0 == 0"]),
            (_, 1 | 2) => {
                let operator = self.pick(&["&&", "||"]);
                format!("({} {operator} {})", self.boolean(depth - 1), self.boolean(depth - 1))
            }
            (_, 3) => format!("!{}", self.boolean(depth - 1)),
            (_, 4 | 5) => {
                let operator = self.pick(&["==", "!=", "<", "<=", ">", ">="]);
                format!("({} {operator} {})", self.int(depth - 1), self.int(depth - 1))
            }
            (_, 6) => format!("{}.startsWith({})", self.text(depth - 1), self.text(depth - 1)),
            (_, 7) => format!("({} in {})", self.int(depth - 1), self.list(depth - 1)),
            (_, 8) => format!("{}.exists(x, x > {} || {})", self.list(depth - 1), self.int(0), self.boolean(depth - 1)),
            _ => format!("{}.all(x, x != {} && {})", self.list(depth - 1), self.int(0), self.boolean(depth - 1)),
        }
    }
}

#[test]
fn random_expressions_evaluate_alike_in_both_evaluators() {
    let opinions = Opinions::new(json!({"object": {
        "metadata": {"name": "web"},
        "spec": {"n": 3, "yes": true, "list": ["a", 1], "ints": [4, 5, 6]},
    }}));
    let mut random = Random(7);
    let (mut values, mut errors, mut differences) = (0, 0, Vec::new());
    for round in 0..3000 {
        let source = match round % 4 {
            0 => random.int(3),
            1 => random.text(3),
            2 => random.list(3),
            _ => random.boolean(4),
        };
        let (Some(first), Some(second)) = (opinions.first(&source), opinions.second(&source)) else { continue };
        match (&first, &second) {
            (Ok(first), Ok(second)) if first == second => values += 1,
            (Err(_), Err(_)) => errors += 1,
            // cel-go does not evaluate what is looked for in nothing.
            _ if source.contains("in [])") => {}
            _ => differences.push(format!("{source}\n   {first:?}\n   {second:?}")),
        }
    }
    println!("{values} values, {errors} errors");
    assert!(differences.is_empty(), "{}\n{} differ", differences.join("\n"), differences.len());
    assert!(values > 1000, "{values}");
}

#[test]
fn golden_expressions_evaluate_alike_in_both_evaluators() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle");
    let mut opinions: BTreeMap<String, Opinions> = BTreeMap::new();
    let (mut same, mut known, mut differences) = (0, BTreeSet::new(), Vec::new());
    for file in fs::read_dir(root.join("golden/1.36")).unwrap().map(|file| file.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        for line in fs::read_to_string(file).unwrap().lines() {
            let line: Json = serde_json::from_str(line).unwrap();
            let source = line["expr"].as_str().unwrap();
            let fixture = line["fixture"].as_str().unwrap_or("mixed");
            if line.get("variables").is_some() || line["fixture"].is_object() || line["answer"].get("varies").is_some()
            {
                continue;
            }
            let opinions = opinions.entry(fixture.to_owned()).or_insert_with(|| {
                let text = fs::read_to_string(root.join("fixtures").join(format!("{fixture}.json"))).unwrap();
                Opinions::new(serde_json::from_str(&text).unwrap())
            });
            let Some(Ok(first)) = opinions.first(source) else { continue };
            let Some(Ok(second)) = opinions.second(source) else { continue };
            if first.contains("type:") {
                // A type is its name there.
            } else if first == second {
                same += 1;
            } else if let Some((part, _)) = KNOWN.iter().find(|(part, _)| source.contains(part)) {
                known.insert(*part);
            } else {
                differences.push(format!("{source}\n   {first}\n   {second}"));
            }
        }
    }
    println!("{same} the same");
    assert!(differences.is_empty(), "{}\n{} differ", differences.join("\n"), differences.len());
    assert!(same > 1000, "{same}");
    assert_eq!(known.len(), KNOWN.len(), "{known:?} are all that differs");
}
