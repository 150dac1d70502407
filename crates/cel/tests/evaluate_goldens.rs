//! The evaluator against what kube-apiserver's own code makes of each expression of `tests/oracle`: value, error, cost.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "all of this is tests")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use palisade_cel::{
    IssueKind,
    authorizer::{self, Attributes, Authorizer, Decision, User},
    environment::{Environment, Mode},
    eval::{Activation, PER_CALL_LIMIT, Program},
    schema::Admission,
    types::Type,
    value::Value,
};
use serde::Deserialize;
use serde_json::Value as Json;

/// The minor whose golden files are complete; those of the others have only what differs.
const COMPLETE: &str = "1.36";
/// Where this crate differs, in what, and why.
const KNOWN: &str = include_str!("known-evaluations.tsv");

#[derive(Deserialize)]
struct Request {
    expr: String,
    params: Option<bool>,
    authorizer: Option<bool>,
    #[serde(default)]
    variables: Vec<Variable>,
    #[serde(default)]
    fixture: Json,
    answer: Answer,
}

#[derive(Deserialize)]
struct Variable {
    name: String,
    expr: String,
}

#[derive(Deserialize)]
struct Answer {
    new: Verdict,
    stored: Option<Verdict>,
    value: Option<String>,
    error: Option<String>,
    cost: Option<u64>,
    #[serde(rename = "variablesCost")]
    variables_cost: Option<u64>,
    #[serde(default)]
    varies: Vec<String>,
}

#[derive(Deserialize)]
struct Verdict {
    ok: bool,
    #[serde(default)]
    errors: Vec<Problem>,
}

#[derive(Deserialize)]
struct Problem {
    kind: String,
    text: String,
}

#[derive(Clone, Deserialize, Default)]
struct Script {
    #[serde(default)]
    user: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    decisions: Vec<BTreeMap<String, String>>,
    #[serde(default)]
    resource: BTreeMap<String, String>,
}

impl Authorizer for Script {
    fn authorize(&self, user: &User, attributes: &Attributes) -> Decision {
        let fits = |rule: &&BTreeMap<String, String>| {
            let version = if attributes.path.is_none() { "*" } else { "" };
            [
                ("verb", attributes.verb.as_str()),
                ("group", &attributes.group),
                ("version", version),
                ("resource", &attributes.resource),
                ("subresource", &attributes.subresource),
                ("namespace", &attributes.namespace),
                ("name", &attributes.name),
                ("path", attributes.path.as_deref().unwrap_or_default()),
                ("user", &user.name),
                ("fieldSelector", &attributes.field_selector),
                ("labelSelector", &attributes.label_selector),
            ]
            .iter()
            .all(|(key, have)| rule.get(*key).is_none_or(|want| want == have))
        };
        let Some(rule) = self.decisions.iter().find(fits) else { return Decision::default() };
        Decision {
            allowed: rule.get("decision").is_some_and(|decision| decision == "allow"),
            reason: rule.get("reason").cloned().unwrap_or_default(),
            error: rule.get("error").cloned(),
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle")
}

/// Lines of all golden files of a minor, by id.
fn lines(minor: &str) -> BTreeMap<String, Json> {
    let mut out = BTreeMap::new();
    // Answers to other requests, of an oracle at hand.
    let golden = std::env::var_os("ORACLE_GOLDENS").map_or_else(|| root().join("golden"), PathBuf::from);
    let Ok(files) = fs::read_dir(golden.join(minor)) else { return out };
    for file in files.map(|file| file.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        for line in fs::read_to_string(file).unwrap().lines() {
            let value: Json = serde_json::from_str(line).unwrap();
            out.insert(value["id"].as_str().unwrap().to_owned(), value);
        }
    }
    out
}

fn fixtures() -> BTreeMap<String, Json> {
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), serde_json::from_str(&text).unwrap())
    };
    fs::read_dir(root().join("fixtures")).unwrap().map(|file| read(file.unwrap().path())).collect()
}

fn bind(fixture: &Json) -> Activation<'_> {
    let mut activation = Activation::new().with_variables();
    for name in ["object", "oldObject", "params", "request", "namespaceObject"] {
        activation = activation.bind(name, fixture.get(name).map_or(Value::Null, Value::from_json));
    }
    let script: Script =
        fixture.get("authorizer").map_or_else(Script::default, |json| serde_json::from_value(json.clone()).unwrap());
    let user = User { name: script.user.clone(), groups: script.groups.clone(), ..User::default() };
    let part = |name: &str| script.resource.get(name).cloned().unwrap_or_default();
    let resource = Attributes {
        group: part("group"),
        resource: part("resource"),
        subresource: part("subresource"),
        namespace: part("namespace"),
        name: part("name"),
        ..Attributes::default()
    };
    let script: Arc<dyn Authorizer> = Arc::new(script.clone());
    activation
        .bind("authorizer", authorizer::authorizer(user.clone(), Arc::clone(&script)))
        .bind("authorizer.requestResource", authorizer::request_resource(user, script, resource))
}

/// The golden text of a value; if the order of a list is random, of its elements in the order of their texts.
fn comparable(value: &Value<'_>, sorted: bool) -> String {
    match value {
        Value::List(list) if sorted => {
            let mut items: Vec<String> = list.iter().map(|item| item.canonical()).collect();
            items.sort();
            format!("[{}]", items.join(","))
        }
        value => without_quantities(&value.canonical()),
    }
}

/// How a quantity was written is lost here, and no expression can see it.
fn without_quantities(text: &str) -> String {
    let mut parts = text.split("opaque:kubernetes.Quantity");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.strip_prefix("(\"").and_then(|part| part.split_once("\")")).map_or(part, |(_, rest)| rest);
        out += "opaque:kubernetes.Quantity";
        out += rest;
    }
    out
}

/// What differs first, and how; or whether the answers are equal, the API server refuses the expression and so does
/// this crate, or this crate has no verdict.
fn difference(
    environment: &Environment,
    request: &Request,
    fixtures: &BTreeMap<String, Json>,
) -> Result<&'static str, (&'static str, String)> {
    let mut environment = environment.clone();
    let mut programs = Vec::new();
    for Variable { name, expr } in &request.variables {
        let program = environment.check(expr).map_err(|issues| {
            let lines: Vec<String> = issues.iter().map(|issue| issue.display(expr).to_string()).collect();
            format!("compilation failed: {}", lines.join("\n"))
        });
        let program = program.and_then(|checked| Program::new(&checked, &environment).map_err(|issue| issue.message));
        environment = environment.compose(name, program.as_ref().ok().map(Program::output_type));
        programs.push((name, program));
    }
    let verdict = request.answer.stored.as_ref().unwrap_or(&request.answer.new);
    let expected = verdict.errors.iter().find(|problem| problem.kind == "program" || problem.kind == "panic");
    let checked = match environment.check(&request.expr) {
        Ok(checked) => checked,
        Err(issues) if issues.iter().any(|issue| issue.kind == IssueKind::Unsupported) => return Ok("no verdict"),
        Err(issues) if verdict.ok => return Err(("false reject", issues[0].to_string())),
        Err(_) => return Ok("refused"),
    };
    if verdict.errors.iter().any(|problem| problem.kind == "return-type") {
        return Ok("refused");
    }
    let program = match (Program::new(&checked, &environment), expected) {
        (Ok(program), None) => program,
        (Err(_), Some(problem)) if problem.kind == "panic" => return Ok("refused"),
        (Err(issue), Some(problem)) if issue.message == problem.text => return Ok("refused"),
        (Err(issue), Some(problem)) => return Err(("fold text", format!("{} / {}", issue.message, problem.text))),
        (Err(issue), None) => return Err(("fold rejects", issue.message)),
        (Ok(_), Some(problem)) => return Err(("fold accepts", problem.text.clone())),
    };
    if !verdict.ok {
        return Err(("false accept", verdict.errors[0].text.clone()));
    }
    let name = request.fixture.as_str().unwrap_or("mixed");
    let fixture = if request.fixture.is_object() { &request.fixture } else { &fixtures[name] };
    let mut activation = bind(fixture);
    for (name, program) in &programs {
        activation = match program {
            Ok(program) => activation.variable(name.as_str(), program, PER_CALL_LIMIT),
            Err(reason) => activation.broken_variable(name.as_str(), reason),
        };
    }
    let evaluation = program.evaluate(&activation, PER_CALL_LIMIT);
    match (&evaluation.result, &request.answer.value, &request.answer.error) {
        (Ok(value), Some(expected), _) => {
            let found = comparable(value, request.answer.varies.iter().any(|what| what == "order"));
            if found != without_quantities(expected) {
                return Err(("value", format!("{found} / {expected}")));
            }
        }
        (Err(error), None, Some(expected)) => {
            if error.to_string() != *expected {
                return Err(("error", format!("{error} / {expected}")));
            }
        }
        _ if request.answer.varies.iter().any(|what| what == "outcome") => {}
        (result, value, error) => {
            let result = result.as_ref().map(Value::canonical);
            return Err(("outcome", format!("{result:?} / {value:?} {error:?}")));
        }
    }
    if request.answer.cost.is_some_and(|cost| cost != evaluation.cost) {
        return Err(("cost", format!("{} / {:?}", evaluation.cost, request.answer.cost)));
    }
    let cost = activation.take_variables_cost();
    if request.answer.variables_cost.is_some_and(|expected| expected != cost) {
        return Err(("variables' cost", format!("{cost} / {:?}", request.answer.variables_cost)));
    }
    Ok("equal")
}

#[test]
fn values_errors_and_costs_are_those_of_the_api_server() {
    let (complete, fixtures) = (lines(COMPLETE), fixtures());
    let known: BTreeSet<(&str, &str)> = KNOWN
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('\t'))
        .map(|(id, rest)| (id, rest.split('\t').next().unwrap_or_default()))
        .collect();
    let mut counts: BTreeMap<String, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut unexpected = Vec::new();
    for minor in [33, 34, 35, 36, 37] {
        let overlay = if minor == 36 { BTreeMap::new() } else { lines(&format!("1.{minor}")) };
        let mut environments = BTreeMap::new();
        for (id, line) in &complete {
            let mut line = line.clone();
            match overlay.get(id) {
                Some(other) => line["answer"] = other["answer"].clone(),
                // What does not differ is tested with the minor that is complete.
                None if minor != 36 => continue,
                None => {}
            }
            let request: Request = serde_json::from_value(line).unwrap();
            let count = counts.entry(format!("1.{minor} {}", id.split('/').next().unwrap())).or_default();
            let key = (request.params.unwrap_or(true), request.authorizer.unwrap_or(true));
            let environment = environments.entry(key).or_insert_with(|| {
                let admission =
                    Admission { params: key.0.then_some(Type::Dyn), authorizer: key.1, ..Admission::default() };
                Environment::kubernetes(minor, Mode::Stored).with_admission(&admission)
            });
            match difference(environment, &request, &fixtures) {
                Ok(what) => *count.entry(what).or_default() += 1,
                Err((what, text)) => {
                    *count.entry(what).or_default() += 1;
                    if !known.contains(&(&**id, what)) {
                        unexpected.push(format!("{what} 1.{minor} {id} {}: {text}", request.expr));
                    }
                }
            }
        }
    }
    for (category, count) in &counts {
        println!("{category}: {count:?}");
    }
    assert!(unexpected.is_empty(), "{}\n{} differ", unexpected.join("\n"), unexpected.len());
}
