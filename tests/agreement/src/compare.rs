//! One expression: what Palisade's CEL says of it, beside what the API server says.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use palisade_cel::{
    Environment, Issue, IssueKind, Minor, Mode,
    check::ResultType,
    estimate::{self, Range, UnknownSizes},
    eval::{PER_CALL_LIMIT, Program},
    schema::{Admission, Kind, Schemas, TypeCheck},
    types::Type,
    value::Value,
};
use serde_json::Value as Json;

use crate::{
    bindings::{bind, fixtures},
    lines::{Error, Line, Problem, Variable, Verdict, files, read},
};

/// A compared aspect of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// Accepted or rejected, as a new expression, a stored one, and with typed variables.
    Accepted,
    /// The type of an accepted expression.
    Type,
    /// The kind of the first error of a rejected one.
    Kind,
    /// Line and column of that error.
    Position,
    /// The texts of all errors.
    Text,
    /// The value, or the text of the error of the evaluation.
    Value,
    /// The cost, also of the variables that it uses.
    Cost,
    /// The cost as it is estimated before the evaluation, at least and at most.
    Estimate,
}

impl Aspect {
    /// All, in the order of the report.
    pub const ALL: [Self; 8] =
        [Self::Accepted, Self::Type, Self::Kind, Self::Position, Self::Text, Self::Value, Self::Cost, Self::Estimate];
}

/// Where the two differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// `false accept`, `false reject`, `type`, `kind`, `position`, `recovery`, `text`, `value`, `cost`,
    /// `estimate`, `panic` or `no verdict`.
    pub what: &'static str,
    /// Palisade accepts, or says true, where the API server does not.
    pub fail_open: bool,
    /// Both sides.
    pub detail: String,
}

/// What comparing an expression gave.
#[derive(Default)]
pub struct Comparison {
    /// The compared aspects, and whether they were equal in all modes.
    pub compared: BTreeMap<Aspect, bool>,
    /// Palisade says that it does not know.
    pub no_verdict: bool,
    /// What was not equal.
    pub differences: Vec<Difference>,
}

impl Comparison {
    fn note(&mut self, aspect: Aspect, equal: bool) {
        let known = self.compared.entry(aspect).or_insert(true);
        *known = *known && equal;
    }

    fn differ(&mut self, what: &'static str, fail_open: bool, detail: String) {
        self.differences.push(Difference { what, fail_open, detail });
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExpressionOutcome {
    NoVerdict,
    Rejected,
    Value(String),
    Error(String),
}

impl ExpressionOutcome {
    /// The API server's.
    pub(crate) fn of(line: &Line) -> Self {
        let answer = &line.answer;
        match (&answer.value, &answer.error) {
            _ if !answer.stored().ok => Self::Rejected,
            (Some(value), _) => Self::Value(without_quantities(value)),
            (None, error) => Self::Error(error.clone().unwrap_or_default()),
        }
    }
}

/// Palisade's CEL for one minor, with the fixtures and schemas of `tests/oracle`.
pub struct Subject {
    minor: Minor,
    fixtures: BTreeMap<String, Json>,
    schemas: Schemas,
    environments: BTreeMap<(Mode, bool, bool), Environment>,
    checks: BTreeMap<String, TypeCheck>,
}

impl Subject {
    /// Reads the fixtures and schemas below `tests/oracle`.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn new(oracle: &Path, minor: Minor) -> Result<Self, Error> {
        let bundled = |error: std::io::Error| Error::Read { path: format!("schemas of {minor}").into(), error };
        let mut schemas = Schemas::builtin(minor).map_err(|error| bundled(std::io::Error::other(error.to_string())))?;
        for path in files(&oracle.join("schemas"), "json")? {
            let crd = serde_json::from_str(&read(&path)?);
            schemas.add_crd(&crd.map_err(|error| Error::Content { path, line: 1, error })?);
        }
        let (environments, checks) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { minor, fixtures: fixtures(oracle)?, schemas, environments, checks })
    }

    pub(crate) fn environment(&mut self, line: &Line, mode: Mode) -> Environment {
        let (params, authorizer) = (line.params.unwrap_or(true), line.authorizer.unwrap_or(true));
        let minor = self.minor;
        let base = self.environments.entry((mode, params, authorizer)).or_insert_with(|| {
            let admission = Admission { params: params.then_some(Type::Dyn), authorizer, ..Admission::default() };
            Environment::kubernetes(minor, mode).with_admission(&admission)
        });
        base.clone()
    }

    pub(crate) fn fixture<'a>(&'a self, line: &'a Line) -> &'a Json {
        let name = line.fixture.as_str().unwrap_or("mixed");
        if line.fixture.is_object() { &line.fixture } else { self.fixtures.get(name).unwrap_or(&Json::Null) }
    }

    /// What an expression without variables gives.
    pub(crate) fn outcome(&mut self, line: &Line) -> ExpressionOutcome {
        let environment = self.environment(line, Mode::Stored);
        match environment.compile(&line.expr, result_type(line)) {
            Ok(program) => match program.evaluate(&bind(self.fixture(line)), PER_CALL_LIMIT).result {
                Ok(value) => ExpressionOutcome::Value(without_quantities(&value.canonical())),
                Err(error) => ExpressionOutcome::Error(error.to_string()),
            },
            Err(issues) if issues.iter().any(|issue| issue.kind == IssueKind::Unsupported) => {
                ExpressionOutcome::NoVerdict
            }
            Err(_) => ExpressionOutcome::Rejected,
        }
    }

    /// Compares all that the API server says of an expression.
    pub fn compare(&mut self, line: &Line) -> Comparison {
        catch_unwind(AssertUnwindSafe(|| self.compare_all(line))).unwrap_or_else(|_| {
            let mut out = Comparison::default();
            out.differ("panic", false, "Palisade panics".to_owned());
            out
        })
    }

    fn compare_all(&mut self, line: &Line) -> Comparison {
        let mut out = Comparison::default();
        for (mode, expected) in [(Mode::New, &line.answer.new), (Mode::Stored, line.answer.stored())] {
            let mut environment = self.environment(line, mode);
            let mut variables = Vec::new();
            for Variable { name, expr } in &line.variables {
                let program = variable(&environment, expr);
                environment = environment.compose(name, program.as_ref().ok().map(Program::output_type));
                variables.push((name.as_str(), program));
            }
            if line.mutation {
                environment = environment.with_mutation();
            }
            if let (Mode::Stored, Some(expected)) = (mode, &line.answer.estimate) {
                estimate(&mut out, line, &environment, expected);
            }
            let program = environment.compile(&line.expr, result_type(line));
            compare_verdicts(&mut out, &format!("{mode:?}"), expected, &verdict(&program));
            let evaluated = mode == Mode::Stored && expected.ok && !line.answer.unfinished;
            if let (true, Ok(program)) = (evaluated, &program) {
                evaluate(&mut out, self.fixture(line), line, program, &variables);
            }
        }
        for name in &line.typed {
            let Some(expected) = line.answer.typed.get(name) else { continue };
            let found = self.warnings(line, name);
            let verdict = |errors: &[Problem]| Verdict { ok: errors.is_empty(), of: None, errors: errors.to_vec() };
            compare_verdicts(&mut out, name, &verdict(expected), &verdict(&found));
        }
        out
    }

    /// What type checking says with the variables typed as an object of this kind.
    fn warnings(&mut self, line: &Line, name: &str) -> Vec<Problem> {
        let none = || Kind { group: String::new(), version: String::new(), kind: "none".to_owned() };
        let kind = |name: &str| Kind::parse(name).unwrap_or_else(none);
        let params = line.params.unwrap_or(true).then(|| line.typed_params.as_deref().map_or_else(none, kind));
        let variables: Vec<(String, String)> =
            line.variables.iter().map(|variable| (variable.name.clone(), variable.expr.clone())).collect();
        let (minor, schemas) = (self.minor, &self.schemas);
        let check = self
            .checks
            .entry(format!("{name} {params:?} {variables:?}"))
            .or_insert_with(|| TypeCheck::new(minor, schemas, [&kind(name)], params.as_ref(), &variables));
        check.issues(&line.expr).flat_map(|(_, issues)| issues).map(|issue| problem(&issue)).collect()
    }
}

/// The program of a policy's variable, or the API server's reason why there is none.
fn variable(environment: &Environment, expr: &str) -> Result<Program, String> {
    let checked = environment.check(expr).map_err(|issues| {
        let lines: Vec<String> = issues.iter().map(|issue| issue.display(expr).to_string()).collect();
        format!("compilation failed: {}", lines.join("\n"))
    })?;
    Program::new(&checked, environment).map_err(|issue| issue.message)
}

pub(crate) fn result_type(line: &Line) -> ResultType {
    match line.expect.as_deref() {
        Some("bool") => ResultType::Bool,
        Some("string") => ResultType::String,
        Some("stringOrNull") => ResultType::StringOrNull,
        Some("Object") => ResultType::ApplyConfiguration,
        Some("JSONPatch") => ResultType::JsonPatch,
        _ => ResultType::Any,
    }
}

fn problem(issue: &Issue) -> Problem {
    Problem {
        kind: issue.kind.name().to_owned(),
        line: i64::try_from(issue.position.line).unwrap_or(i64::MAX),
        column: i64::try_from(issue.position.column).unwrap_or(i64::MAX),
        text: issue.message.clone(),
    }
}

fn verdict(program: &Result<Program, Vec<Issue>>) -> Verdict {
    match program {
        Ok(program) => Verdict { ok: true, of: Some(program.output_type().declared()), errors: Vec::new() },
        Err(issues) => Verdict { ok: false, of: None, errors: issues.iter().map(problem).collect() },
    }
}

fn compare_verdicts(out: &mut Comparison, place: &str, expected: &Verdict, found: &Verdict) {
    let detail = || format!("{place}\n  API server: {expected:?}\n  Palisade:   {found:?}");
    if found.errors.iter().any(|error| error.kind == IssueKind::Unsupported.name()) {
        out.no_verdict = true;
        return out.differ("no verdict", false, detail());
    }
    out.note(Aspect::Accepted, expected.ok == found.ok);
    if expected.ok != found.ok {
        let what = if found.ok { "false accept" } else { "false reject" };
        return out.differ(what, found.ok, detail());
    }
    let mut aspect = |aspect, equal, what| {
        out.note(aspect, equal);
        if !equal {
            out.differ(what, false, detail());
        }
    };
    if expected.ok {
        return aspect(Aspect::Type, expected.of == found.of, "type");
    }
    let (Some(theirs), Some(ours)) = (expected.errors.first(), found.errors.first()) else { return };
    // Where there is no place, the API server says -1:0, or nothing.
    let place = |problem: &Problem| (problem.line.max(0), problem.column.max(0));
    // After a syntax error cel-go goes on, and what it says of macros in the rest of the source can come first.
    let first = expected.errors.iter().find(|error| error.kind == "syntax");
    let recovered = first.is_some_and(|first| ours.kind == "syntax" && place(first) == place(ours));
    if recovered && theirs.kind != "syntax" {
        out.note(Aspect::Kind, false);
        out.note(Aspect::Position, false);
        return out.differ("recovery", false, detail());
    }
    // The oracle determines kinds by their texts, and does not know all.
    let kind = if theirs.kind == "other" { "macro" } else { &theirs.kind };
    aspect(Aspect::Kind, kind == ours.kind, "kind");
    aspect(Aspect::Position, place(theirs) == place(ours), "position");
    let texts = |verdict: &Verdict| verdict.errors.iter().map(|error| error.text.clone()).collect::<Vec<_>>();
    // The texts of syntax errors differ; those of constants that fail are the evaluator's and must not.
    let what = if kind == "program" { "text of a constant" } else { "text" };
    aspect(Aspect::Text, texts(expected) == texts(found), what);
}

fn evaluate(
    out: &mut Comparison,
    fixture: &Json,
    line: &Line,
    program: &Program,
    variables: &[(&str, Result<Program, String>)],
) {
    let mut activation = bind(fixture);
    for (name, program) in variables {
        activation = match program {
            Ok(program) => activation.variable(*name, program, PER_CALL_LIMIT),
            Err(reason) => activation.broken_variable(*name, reason),
        };
    }
    let evaluation = program.evaluate(&activation, PER_CALL_LIMIT);
    let variables_cost = activation.take_variables_cost();
    let answer = &line.answer;
    if !answer.varies("outcome") {
        let found = match &evaluation.result {
            Ok(value) => comparable(value, answer.varies("order")),
            Err(error) => format!("error: {error}"),
        };
        let expected = match (&answer.value, &answer.error) {
            (Some(value), _) => without_quantities(value),
            (None, error) => format!("error: {}", error.as_deref().unwrap_or_default()),
        };
        out.note(Aspect::Value, found == expected);
        if found != expected {
            let detail = format!("\n  API server: {expected}\n  Palisade:   {found}");
            out.differ("value", found == "bool:true", detail);
        }
    }
    let Some(cost) = answer.cost else { return };
    let expected = (cost, answer.variables_cost.unwrap_or_default());
    let found = (evaluation.cost, variables_cost);
    out.note(Aspect::Cost, found == expected);
    if found != expected {
        out.differ("cost", false, format!("\n  API server: {expected:?}\n  Palisade:   {found:?}"));
    }
}

/// Compares the estimate, for which the oracle takes all variables but the policy's own to be dynamic.
fn estimate(out: &mut Comparison, line: &Line, environment: &Environment, expected: &[u64]) {
    let dynamic = ["object", "oldObject", "params", "request", "namespaceObject"];
    let environment =
        dynamic.iter().fold(environment.clone(), |environment, name| environment.declare(name, Type::Dyn));
    let checked = match environment.check(&line.expr) {
        Ok(checked) => checked,
        Err(issues) if issues.iter().any(|issue| issue.kind == IssueKind::Unsupported) => return,
        Err(issues) => return out.differ("estimate", false, format!("no estimate: {issues:?}")),
    };
    let Range { min, max } = estimate::estimate(&checked, environment.minor(), &UnknownSizes);
    let found = [min, max];
    let equal = found == *expected;
    out.note(Aspect::Estimate, equal);
    if !equal {
        out.differ("estimate", false, format!("\n  API server: {expected:?}\n  Palisade:   {found:?}"));
    }
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

/// How a quantity was written is lost in Palisade, and no expression can see it.
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
