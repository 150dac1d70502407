//! Tests of `string.format`.

use serde_json::{Value, json};

use super::*;
use crate::library::truth::{bytes, check, double, string as text_of, texts, uint};

/// A value of the tables, or one that only an expression makes.
#[derive(Clone)]
enum Sample {
    Json(Value),
    Made(Kind<'static>, Vec<Sample>, Vec<(Sample, Sample)>),
}

fn made(kind: Kind<'static>) -> Sample {
    Sample::Made(kind, Vec::new(), Vec::new())
}

fn list(items: Vec<Sample>) -> Sample {
    Sample::Made(Kind::List, items, Vec::new())
}

fn map(entries: Vec<(&str, Sample)>) -> Sample {
    let entries = entries.into_iter().map(|(key, value)| (Sample::Json(json!(key)), value));
    Sample::Made(Kind::Map, Vec::new(), entries.collect())
}

impl Argument for Sample {
    fn kind(&self) -> Kind<'_> {
        let value = match self {
            Sample::Made(kind, ..) => return kind.clone(),
            Sample::Json(value) => value,
        };
        if let Some(value) = double(value) {
            return Kind::Double(value);
        }
        if let Some(value) = uint(value) {
            return Kind::Uint(value);
        }
        if let Some(value) = bytes(value) {
            return Kind::Bytes(value.into());
        }
        match value {
            Value::Null => Kind::Null,
            Value::Bool(value) => Kind::Bool(*value),
            Value::Number(value) => Kind::Int(value.as_i64().unwrap()),
            Value::String(value) => Kind::String(value.into()),
            Value::Array(_) => Kind::List,
            Value::Object(_) => Kind::Map,
        }
    }

    fn items(&self) -> Vec<Self> {
        match self {
            Sample::Made(_, items, _) => items.clone(),
            Sample::Json(value) => value.as_array().unwrap().iter().cloned().map(Sample::Json).collect(),
        }
    }

    fn entries(&self) -> Vec<(Self, Self)> {
        match self {
            Sample::Made(_, _, entries) => entries.clone(),
            Sample::Json(value) => {
                let entries = value["map"].as_array().unwrap().iter();
                entries.map(|entry| (Sample::Json(entry[0].clone()), Sample::Json(entry[1].clone()))).collect()
            }
        }
    }
}

fn argument(expression: &str) -> Sample {
    let name = |name: &'static str| made(Kind::Type(name.into()));
    let timestamp = |text: &str| made(Kind::Timestamp(text.to_owned()));
    let duration = |text: &str| made(Kind::Duration(text.to_owned()));
    let other = |name: &'static str| made(Kind::Other(name.into()));
    match expression {
        "type(x1)" => name("int"),
        "duration('90.5s')" => duration("90.5s"),
        "timestamp('2023-01-02T03:04:05.6Z')" => timestamp("2023-01-02T03:04:05.6Z"),
        "timestamp('2023-01-02T03:04:05+01:00')" => timestamp("2023-01-02T03:04:05+01:00"),
        "[duration('1s'), timestamp('2023-01-02T03:04:05Z')]" => {
            list(vec![duration("1s"), timestamp("2023-01-02T03:04:05Z")])
        }
        "[type(1), type('s')]" => list(vec![name("int"), name("string")]),
        "{'d': duration('1h'), 't': string}" => map(vec![("d", duration("3600s")), ("t", name("string"))]),
        "quantity('1')" => other("kubernetes.Quantity"),
        "ip('1.2.3.4')" => other("net.IP"),
        "[quantity('1')]" => list(vec![other("kubernetes.Quantity")]),
        "{'q': quantity('1')}" => map(vec![("q", other("kubernetes.Quantity"))]),
        "optional.of(1)" => other("optional_type"),
        expression => panic!("{expression}"),
    }
}

#[test]
fn results_match_the_api_server() {
    check(include_str!("testdata/printf.jsonl"), |call, args| {
        let arguments = match call {
            "x0.format([x1])" => vec![Sample::Json(args[1].clone())],
            "x0.format(x1)" => Sample::Json(args[1].clone()).items(),
            call => vec![argument(call.strip_prefix("x0.format([").unwrap().strip_suffix("])").unwrap())],
        };
        Ok(json!(format(text_of(&args[0]), &arguments, Style::Close)?))
    });
}

#[test]
fn format_literals_are_checked_like_the_api_server() {
    // The arguments are the types; the place of an error is the number of its argument.
    check(include_str!("testdata/printf_check.jsonl"), |_, args| {
        let types: Vec<&str> = args[1..].iter().map(text_of).collect();
        let refused = |index: usize, clause: Clause| {
            (!clause.accepts().contains(&types[index])).then(|| (index, types[index].to_owned()))
        };
        Ok(match check_literal(text_of(&args[0]), types.len(), refused) {
            Ok(()) => Value::Null,
            Err(error) => json!([error.text, error.place]),
        })
    });
}

#[test]
fn any_format_string_is_applied_or_rejected() {
    let pieces = ["%", "s", "d", "f", "e", "x", ".", "3", "99", "1000000", "é", " "];
    for format in texts(&pieces, 3_000) {
        let arguments = vec![Sample::Json(json!({"double": "1234.5"})); 3];
        let _ = super::format(&format, &arguments, Style::Close);
        let _ = check_literal(&format, 3, |_, _| None::<((), String)>);
    }
}
