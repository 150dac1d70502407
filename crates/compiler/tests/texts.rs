//! Strings with parameters: the CEL of lists and patterns, compared with a plain implementation.

use std::{cell::Cell, collections::BTreeMap};

use palisade_api::ToolSecurityParamsSpec;
use palisade_cel::{
    Admission, Environment, Minor, Mode, ResultType,
    eval::{Activation, PER_CALL_LIMIT, Program},
    types::Type,
    value::Value,
};
use palisade_checks::{Lowering, Meaning, ParameterType, Resolve as _, Resolved, Text, Values, Wildcard, matches};
use proptest::{prelude::*, sample::select, test_runner::TestRunner};
use serde_json::json;

/// A part of a string as a profile has it.
#[derive(Clone, Debug)]
enum Part {
    Literal(String),
    Parameter(&'static str),
}

const PIECES: [&str; 22] = [
    "a", "b", "a.b", ".", "*", "*.", "-", "/", "$", "", "'", "\\", "\n", "é", "😀", "^", "(.*)", "[a-z]+", "?", "%2e",
    "0", "-7",
];

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(select(PIECES.to_vec()), 0..4).prop_map(|parts| parts.concat())
}

fn pattern() -> impl Strategy<Value = Vec<Part>> {
    let literal = text().prop_map(Part::Literal);
    let part = prop_oneof![3 => literal, 2 => select(vec!["one", "two", "number"]).prop_map(Part::Parameter)];
    prop_oneof![
        8 => prop::collection::vec(part.clone(), 0..4),
        2 => prop::collection::vec(part.clone(), 0..3)
            .prop_map(|rest| [vec![Part::Literal("*.".to_owned())], rest].concat()),
        2 => prop::collection::vec(part, 0..3).prop_map(|start| [start, vec![Part::Literal("*".to_owned())]].concat()),
        1 => Just(vec![Part::Parameter("list")]),
    ]
}

fn values() -> impl Strategy<Value = Values> {
    let list = prop::collection::vec(text().prop_filter("as the resolver", |text| !text.is_empty()), 0..3);
    (text(), text(), -20..20_i64, list).prop_map(|(one, two, number, list)| {
        let named = |(name, value): (&str, Resolved)| (name.to_owned(), value);
        [
            ("one", Resolved::String(one)),
            ("two", Resolved::String(two)),
            ("number", Resolved::Integer(number)),
            ("list", Resolved::StringList(list)),
        ]
        .map(named)
        .into()
    })
}

/// The pattern as a profile has it. Braces keep a name from a letter that follows.
fn written(pattern: &[Part]) -> Text {
    let part = |part: &Part| match part {
        Part::Literal(text) => text.replace('$', "$$"),
        Part::Parameter(name) => format!("${{{name}}}"),
    };
    Text(pattern.iter().map(part).collect())
}

/// The strings that the parts are: more than one only for a list, and none with an empty value.
fn strings(parts: &[Part], values: &Values) -> Vec<String> {
    let mut whole = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => whole += text,
            Part::Parameter(name) => match &values[*name] {
                Resolved::StringList(list) => return list.clone(),
                Resolved::Integer(number) => whole += &number.to_string(),
                Resolved::String(value) if value.is_empty() => return vec![],
                Resolved::String(value) => whole += value,
                Resolved::Boolean(_) => panic!("no pattern has one"),
            },
        }
    }
    vec![whole]
}

/// Whether a string matches a pattern.
fn expected(pattern: &[Part], wildcard: Option<Wildcard>, values: &Values, text: &str) -> bool {
    // Parts that follow each other are one literal.
    let mut parts: Vec<Part> = Vec::new();
    for part in pattern {
        match (parts.last_mut(), part) {
            (_, Part::Literal(text)) if text.is_empty() => {}
            (Some(Part::Literal(before)), Part::Literal(text)) => before.push_str(text),
            _ => parts.push(part.clone()),
        }
    }
    let first = parts.first().cloned();
    match (wildcard, parts.last_mut()) {
        (Some(Wildcard::End), Some(Part::Literal(last))) if last.ends_with('*') => {
            last.pop();
            return strings(&parts, values).iter().any(|start| text.starts_with(start));
        }
        _ => {}
    }
    match (wildcard, first) {
        (Some(Wildcard::Host), Some(Part::Literal(first))) if first == "*" && parts.len() == 1 => true,
        (Some(Wildcard::Host), Some(Part::Literal(first))) if first.starts_with("*.") => {
            parts[0] = Part::Literal(first[1..].to_owned());
            strings(&parts, values).iter().any(|end| text.ends_with(end))
        }
        _ => strings(&parts, values).iter().any(|whole| whole == text),
    }
}

fn declared() -> BTreeMap<String, ParameterType> {
    [
        ("one", ParameterType::String),
        ("two", ParameterType::String),
        ("number", ParameterType::Integer),
        ("list", ParameterType::StringList),
        ("flag", ParameterType::Boolean),
    ]
    .map(|(name, kind)| (name.to_owned(), kind))
    .into()
}

fn program(expression: &str) -> Program {
    let environment = Environment::kubernetes(Minor::OLDEST, Mode::New)
        .with_admission(&Admission { params: Some(Type::Dyn), ..Admission::default() });
    let compiled = environment.compile(expression, ResultType::Bool);
    compiled.unwrap_or_else(|error| panic!("{expression}: {error:?}"))
}

/// The value of an expression of type bool over a string.
fn evaluated(program: &Program, values: &Values, text: &str) -> bool {
    let (object, params) = (json!({"text": text}), json!({"spec": ToolSecurityParamsSpec::of(values)}));
    let activation =
        Activation::new().bind("object", Value::from_json(&object)).bind("params", Value::from_json(&params));
    program.evaluate(&activation, PER_CALL_LIMIT).result.unwrap().as_bool().unwrap()
}

#[test]
fn no_value_is_a_wildcard_and_an_empty_one_matches_nothing() {
    let declared = declared();
    let wildcards = select(vec![None, Some(Wildcard::End), Some(Wildcard::Host)]);
    let cases =
        (prop::collection::vec(pattern(), 0..4), wildcards, values(), text(), text(), any::<prop::sample::Index>());
    let (matched, differed) = (Cell::new(0), Cell::new(0));
    let outcome =
        TestRunner::new(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() }).run(
            &cases,
            |(patterns, wildcard, values, before, after, at)| {
                let texts: Vec<_> = patterns.iter().map(|pattern| written(pattern)).collect();
                let mut cx = Lowering::new(&declared);
                let expression = match wildcard {
                    None => format!("object.text in {}", cx.texts("p", &texts, Meaning::Word).cel()),
                    Some(wildcard) => cx.patterns("p", &texts, Meaning::Word, wildcard).matches("object.text"),
                };
                prop_assert!(cx.finish().is_empty(), "{texts:?}");
                let compiled = program(&expression);
                // What is near the patterns, and other text.
                let near = texts.resolve(&values);
                let near = if near.is_empty() { String::new() } else { at.get(&near).clone() };
                let rest = near.trim_matches('*').to_owned();
                for text in [&near, &rest, &format!("{before}{rest}"), &format!("{rest}{after}"), &before] {
                    let wanted = patterns.iter().any(|pattern| expected(pattern, wildcard, &values, text));
                    let found = evaluated(&compiled, &values, text);
                    prop_assert_eq!(found, wanted, "{:?} of {:?} in {}", text, &texts, &expression);
                    let in_rust = match wildcard {
                        None => texts.resolve(&values).contains(text),
                        Some(wildcard) => matches(&texts, wildcard, &values, text),
                    };
                    prop_assert_eq!(in_rust, wanted, "{:?} of {:?}", text, &texts);
                    let counter = if wanted { &matched } else { &differed };
                    counter.set(counter.get() + 1);
                }
                Ok(())
            },
        );
    outcome.unwrap_or_else(|error| panic!("{error}"));
    println!("{} texts match, {} do not", matched.get(), differed.get());
    assert!(matched.get() > 2000 && differed.get() > 2000, "{} {}", matched.get(), differed.get());
}

#[test]
fn host_patterns_are_anchored() {
    let declared = declared();
    let patterns = ["$one.toolforge.org", "*.$one.apps.example.org", "fixed.example", "*.fixed.example", "$list"];
    let texts: Vec<_> = patterns.into_iter().map(Text::from).collect();
    let hosts = Lowering::new(&declared).patterns("p", &texts, Meaning::Host, Wildcard::Host);
    assert_eq!(
        hosts.matches("h"),
        "(h in (['fixed.example'] + (params.spec.strings['one'] != '' \
         ? [string(params.spec.strings['one'] + '.toolforge.org')] : []) + params.spec.stringLists['list']) \
         || (['.fixed.example'] + (params.spec.strings['one'] != '' \
         ? [string('.' + params.spec.strings['one'] + '.apps.example.org')] : [])).exists(w, h.endsWith(w)))"
    );
    let named = |one: &str| {
        let one = Resolved::String(one.to_owned());
        let list = Resolved::StringList(vec!["own.example".to_owned()]);
        Values::from([("one".to_owned(), one), ("list".to_owned(), list)])
    };
    let compiled = program(&hosts.matches("object.text"));
    for (one, host, allowed) in [
        ("weather", "weather.toolforge.org", true),
        ("weather", "weatherxtoolforge.org", false),
        ("weather", "weather.toolforge.org.evil.example", false),
        ("weather", "x.weather.toolforge.org", false),
        ("weather", "x.weather.apps.example.org", true),
        ("weather", "y.x.weather.apps.example.org", true),
        ("weather", "*.weather.apps.example.org", true),
        ("weather", "weather.apps.example.org", false),
        ("weather", "xweather.apps.example.org", false),
        ("", ".toolforge.org", false),
        ("", "x..apps.example.org", false),
        ("*", "weather.toolforge.org", false),
        ("*", "x.weather.apps.example.org", false),
        ("weather", "fixed.example", true),
        ("weather", "x.fixed.example", true),
        ("weather", "notfixed.example", false),
        ("weather", "own.example", true),
        ("weather", "x.own.example", false),
        ("weather", "", false),
    ] {
        let found = evaluated(&compiled, &named(one), host);
        assert_eq!(found, allowed, "{one:?} {host:?}");
    }
}

#[test]
fn wrong_references_in_texts_are_reported_with_their_place() {
    let declared = declared();
    let texts: Vec<_> = ["$nope.x", "x-$flag", "x-$list", "a$", "$flag"].into_iter().map(Text::from).collect();
    let mut cx = Lowering::new(&declared);
    cx.patterns("spec.hosts", &texts, Meaning::Host, Wildcard::Host);
    let found: Vec<_> = cx.finish().iter().map(ToString::to_string).collect();
    let known = "parameters of type String or Integer: $number, $one, $two";
    assert_eq!(
        found,
        [
            format!("spec.hosts[0]: $nope is not a declared parameter ({known})"),
            format!("spec.hosts[1]: $flag is of type Boolean, must be String or Integer ({known})"),
            format!("spec.hosts[2]: $list is of type StringList, must be String or Integer ({known})"),
            "spec.hosts[3]: \"$\" is not a reference to a parameter (write $$ for a dollar sign)".to_owned(),
            "spec.hosts[4]: $flag is of type Boolean, must be String or Integer or StringList \
             (parameters of type String or Integer or StringList: $list, $number, $one, $two)"
                .to_owned(),
        ]
    );
}
