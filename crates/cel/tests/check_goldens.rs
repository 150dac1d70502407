//! The parser and type checker against what kube-apiserver says of each expression of `tests/oracle`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "all of this is tests, which read files")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use palisade_cel::{
    Environment, Issue, IssueKind, Mode,
    check::ResultType,
    eval::Program,
    schema::{Admission, Kind, Schemas, TypeCheck},
    types::Type,
};
use serde::Deserialize;
use serde_json::Value;

/// The minor whose golden files are complete; those of the others have only what differs.
const COMPLETE: &str = "1.36";
/// Where this crate differs, and in which direction.
const KNOWN: &str = include_str!("known-differences.tsv");

#[derive(Clone, Deserialize)]
struct Request {
    expr: String,
    expect: Option<String>,
    params: Option<bool>,
    authorizer: Option<bool>,
    #[serde(default)]
    variables: Vec<Variable>,
    #[serde(default)]
    typed: Vec<String>,
    #[serde(rename = "typedParams")]
    typed_params: Option<String>,
    answer: Answer,
}

#[derive(Clone, Deserialize)]
struct Variable {
    name: String,
    expr: String,
}

#[derive(Clone, Deserialize)]
struct Answer {
    new: Verdict,
    stored: Option<Verdict>,
    #[serde(default)]
    typed: BTreeMap<String, Vec<Error>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Verdict {
    ok: bool,
    #[serde(rename = "type")]
    of: Option<String>,
    #[serde(default)]
    errors: Vec<Error>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
struct Error {
    kind: String,
    line: i64,
    column: i64,
    text: String,
}

fn directory() -> PathBuf {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle/golden");
    // Elsewhere are those of differential tests.
    std::env::var_os("ORACLE_GOLDENS").map_or_else(own, PathBuf::from)
}

/// Lines of all golden files of a minor, by id.
fn lines(minor: &str) -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    let Ok(files) = fs::read_dir(directory().join(minor)) else { return out };
    for file in files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "jsonl")) {
        for line in fs::read_to_string(file).unwrap().lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            out.insert(value["id"].as_str().unwrap().to_owned(), value);
        }
    }
    out
}

fn environment(
    minor: u8,
    mode: Mode,
    request: &Request,
    cache: &mut BTreeMap<(Mode, bool, bool), Environment>,
) -> Environment {
    let (params, authorizer) = (request.params.unwrap_or(true), request.authorizer.unwrap_or(true));
    let base = cache.entry((mode, params, authorizer)).or_insert_with(|| {
        let admission = Admission { params: params.then_some(Type::Dyn), authorizer, ..Admission::default() };
        Environment::kubernetes(minor, mode).with_admission(&admission)
    });
    let mut environment = base.clone();
    for Variable { name, expr } in &request.variables {
        let program = environment.compile(expr, ResultType::Any).ok();
        environment = environment.compose(name, program.as_ref().map(Program::output_type));
    }
    environment
}

fn verdict(environment: &Environment, request: &Request) -> Verdict {
    let expected = match request.expect.as_deref() {
        Some("bool") => ResultType::Bool,
        Some("string") => ResultType::String,
        Some("stringOrNull") => ResultType::StringOrNull,
        _ => ResultType::Any,
    };
    let error = |issue: &Issue| Error {
        kind: issue.kind.name().to_owned(),
        line: i64::try_from(issue.position.line).unwrap(),
        column: i64::try_from(issue.position.column).unwrap(),
        text: issue.message.clone(),
    };
    match environment.compile(&request.expr, expected) {
        Ok(program) => Verdict { ok: true, of: Some(program.output_type().declared()), errors: Vec::new() },
        Err(issues) => Verdict { ok: false, of: None, errors: issues.iter().map(error).collect() },
    }
}

/// Ids and how they differ.
fn known() -> BTreeSet<(&'static str, &'static str)> {
    let fields = |line: &'static str| {
        let mut fields = line.split('\t');
        (fields.next().unwrap_or_default(), fields.next().unwrap_or_default())
    };
    KNOWN.lines().filter(|line| !line.starts_with('#')).map(fields).collect()
}

/// How two verdicts differ: nothing, or the first of what matters.
fn difference(expected: &Verdict, found: &Verdict) -> Option<&'static str> {
    // Where there is no place, the API server says -1:0, or nothing. The oracle tells kinds by their texts, and does
    // not know all.
    let kind = |error: &Error| if error.kind == "other" { "macro".to_owned() } else { error.kind.clone() };
    let first =
        |verdict: &Verdict| verdict.errors.first().map(|error| (kind(error), error.line.max(0), error.column.max(0)));
    let unsupported = found.errors.iter().any(|error| error.kind == IssueKind::Unsupported.name());
    if unsupported {
        return Some("no verdict");
    }
    if expected.ok != found.ok {
        return Some(if found.ok { "false accept" } else { "false reject" });
    }
    if expected.ok {
        return (expected.of != found.of).then_some("type");
    }
    if first(expected) != first(found) {
        return Some("kind or place");
    }
    let texts = |verdict: &Verdict| verdict.errors.iter().map(|error| error.text.clone()).collect::<Vec<_>>();
    (texts(expected) != texts(found)).then_some("text")
}

#[test]
fn verdicts_types_and_errors_are_those_of_the_api_server() {
    let complete = lines(COMPLETE);
    let known = known();
    let mut counts: BTreeMap<String, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut unexpected = Vec::new();
    for minor in [33, 34, 35, 36, 37] {
        let overlay = lines(&format!("1.{minor}"));
        if overlay.is_empty() {
            continue;
        }
        let mut cache = BTreeMap::new();
        for (id, line) in &complete {
            let mut line = line.clone();
            if let Some(other) = overlay.get(id) {
                line["answer"] = other["answer"].clone();
            }
            let request: Request = serde_json::from_value(line).unwrap();
            for mode in [Mode::New, Mode::Stored] {
                let answer = match mode {
                    Mode::New => &request.answer.new,
                    Mode::Stored => request.answer.stored.as_ref().unwrap_or(&request.answer.new),
                };
                let environment = environment(minor, mode, &request, &mut cache);
                let found = verdict(&environment, &request);
                let difference = difference(answer, &found);
                let category = format!("1.{minor} {}", id.split('/').next().unwrap());
                let count = counts.entry(category).or_default();
                *count.entry(difference.unwrap_or("equal")).or_default() += 1;
                let Some(difference) = difference else { continue };
                if difference != "text" && !known.contains(&(&**id, difference)) {
                    unexpected.push(format!(
                        "{difference} 1.{minor} {mode:?} {id} {}\n   {answer:?}\n   {found:?}",
                        request.expr
                    ));
                }
                if difference == "text" && std::env::var_os("TEXTS").is_some() && minor == 36 && mode == Mode::New {
                    println!("text {id} {}\n   {answer:?}\n   {found:?}", request.expr);
                }
            }
        }
    }
    for (category, count) in &counts {
        println!("{category}: {count:?}");
    }
    let total: usize = counts.values().flat_map(BTreeMap::values).sum();
    println!("{total} verdicts, {} unexpected", unexpected.len());
    assert!(total > 90_000 || std::env::var_os("ORACLE_GOLDENS").is_some(), "golden files are missing");
    assert!(unexpected.is_empty(), "{}\n{} of {total} differ", unexpected.join("\n"), unexpected.len());
}

#[test]
fn warnings_of_type_checking_are_those_of_the_api_server() {
    let mut schemas = Schemas::builtin(36).unwrap();
    for file in fs::read_dir(directory().join("../schemas")).unwrap() {
        schemas.add_crd(&serde_json::from_str(&fs::read_to_string(file.unwrap().path()).unwrap()).unwrap());
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unexpected = Vec::new();
    let mut cache: BTreeMap<String, TypeCheck> = BTreeMap::new();
    let known = known();
    for (id, line) in lines(COMPLETE) {
        let request: Request = serde_json::from_value(line).unwrap();
        for name in &request.typed {
            let params = request.params.unwrap_or(true).then(|| {
                let none = Kind { group: String::new(), version: String::new(), kind: "none".to_owned() };
                request.typed_params.as_deref().map_or(none, |name| Kind::parse(name).unwrap())
            });
            let variables: Vec<(String, String)> =
                request.variables.iter().map(|variable| (variable.name.clone(), variable.expr.clone())).collect();
            let check = cache.entry(format!("{name} {params:?} {variables:?}")).or_insert_with(|| {
                TypeCheck::new(36, &schemas, [&Kind::parse(name).unwrap()], params.as_ref(), &variables)
            });
            let found: Vec<Error> = check
                .issues(&request.expr)
                .flat_map(|(_, issues)| issues)
                .map(|issue| Error {
                    kind: issue.kind.name().to_owned(),
                    line: i64::try_from(issue.position.line).unwrap(),
                    column: i64::try_from(issue.position.column).unwrap(),
                    text: issue.message.clone(),
                })
                .collect();
            let expected = &request.answer.typed[name];
            let verdict = |errors: &[Error]| Verdict { ok: errors.is_empty(), of: None, errors: errors.to_vec() };
            let difference = difference(&verdict(expected), &verdict(&found));
            *counts.entry(difference.unwrap_or("equal")).or_default() += 1;
            if let Some(difference) = difference {
                let line = format!("typed {difference} {id} {name} {}\n   {expected:?}\n   {found:?}", request.expr);
                if difference != "text" && !known.contains(&(&*id, difference)) {
                    unexpected.push(line);
                } else if std::env::var_os("TEXTS").is_some() {
                    println!("{line}");
                }
            }
        }
    }
    println!("typed: {counts:?}");
    assert!(unexpected.is_empty(), "{}\n{counts:?}", unexpected.join("\n"));
}
