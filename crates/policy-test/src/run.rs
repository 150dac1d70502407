//! Running the cases of a suite.

use palisade_admission::requests::{Evaluation, Inspected, Outcome, Review};
use palisade_kube_json::text::{one_line, shortened};

use crate::{
    Case, Suite,
    expect::{self, Difference, is_condition, is_validation},
    places::{Locator, Place},
};

/// The most of a value in an explanation, in characters.
const MAX_RESULT: usize = 200;

/// The result of a case.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// The description of the test.
    pub name: String,
    /// Where it is in the suite's file.
    pub place: Place,
    /// Its status.
    pub status: Status,
    /// The API server's answer, in a few words.
    pub answer: String,
    /// Why, if the case failed.
    pub explanations: Vec<Explanation>,
}

/// The status of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// As expected.
    Passed,
    /// Not as expected, with these differences.
    Failed(Vec<Difference>),
    /// It cannot be evaluated offline, for this reason.
    NoVerdict(String),
}

/// An expression that explains the status of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The policy.
    pub policy: String,
    /// The binding.
    pub binding: String,
    /// The path of the expression in the policy: `validations[0].expression`.
    pub path: String,
    /// Its place in a file.
    pub place: Place,
    /// Its text, on one line.
    pub source: String,
    /// Its value, or error.
    pub result: String,
    /// The variables that it uses, with their values.
    pub variables: Vec<(String, String)>,
}

/// Why no policy evaluated the request, if none did.
pub(crate) fn unasked(review: &Review) -> Option<String> {
    match &review.outcome {
        Outcome::Denied(denials) => {
            denials.first().filter(|denial| denial.policy.is_empty()).map(|denial| denial.message.clone())
        }
        Outcome::NoVerdict(why) if review.evaluations.is_empty() => Some(why.clone()),
        _ => None,
    }
}

/// Runs a case.
pub fn run(suite: &Suite, case: &Case) -> CaseResult {
    if let Some(why) = &case.unjudged {
        let (name, place) = (case.name.clone(), case.place.clone());
        let status = Status::NoVerdict(why.clone());
        return CaseResult { name, place, status, answer: String::new(), explanations: Vec::new() };
    }
    let review = case.ask(&suite.clusters[case.cluster]);
    let status = judge(case, &review);
    let explanations = if status == Status::Passed { Vec::new() } else { explain(suite, case, &review) };
    let (name, place) = (case.name.clone(), case.place.clone());
    CaseResult { name, place, status, answer: answer(&review), explanations }
}

/// Whether a review is as a case expects.
pub(crate) fn judge(case: &Case, review: &Review) -> Status {
    if let Outcome::NoVerdict(why) = &review.outcome {
        return Status::NoVerdict(why.clone());
    }
    let mut differences = expect::compare(&case.expect, review);
    // Without the expected verdict, there need not be an object.
    if differences.iter().all(|one| one.what != "verdict") {
        differences.extend(case.assertions.iter().filter_map(|one| one.fails(&case.request, review)));
    }
    if differences.is_empty() { Status::Passed } else { Status::Failed(differences) }
}

fn answer(review: &Review) -> String {
    match &review.outcome {
        Outcome::Allowed if review.warnings.is_empty() => "allowed".to_owned(),
        Outcome::Allowed => format!("allowed with warnings: {}", review.warnings.join("; ")),
        Outcome::Denied(denials) => {
            format!("denied: {}", denials.first().map_or("", |denial| denial.message.as_str()))
        }
        Outcome::NoVerdict(why) => format!("no verdict: {why}"),
    }
}

/// The deciding expressions of a policy: its match conditions, and the validations that fail; or all validations, if
/// none fails.
fn explain(suite: &Suite, case: &Case, review: &Review) -> Vec<Explanation> {
    let of_interest = |evaluation: &&Evaluation| {
        let policy = case.expect.policy.as_ref().is_none_or(|policy| *policy == evaluation.policy);
        policy && (is_validation(evaluation) || is_condition(evaluation))
    };
    let decided = |evaluation: &&Evaluation| !matches!(&evaluation.result, Ok(value) if value.as_bool() == Some(true));
    let all: Vec<_> = review.evaluations.iter().filter(of_interest).collect();
    let mut shown: Vec<_> = all.iter().copied().filter(decided).collect();
    if shown.is_empty() {
        shown = all;
    }
    let cluster = &suite.clusters[case.cluster];
    shown
        .into_iter()
        .map(|evaluation| {
            let of_policy: Vec<_> = cluster
                .expressions()
                .filter(|one| (one.kind, one.policy) == (evaluation.kind, &evaluation.policy))
                .collect();
            let source = of_policy.iter().find(|one| one.path == evaluation.path).map_or("", |one| one.source);
            let place = suite
                .policy(evaluation.kind, &evaluation.policy)
                .map(|origin| Locator::new(origin).field(&format!("spec.{}", evaluation.path)));
            Explanation {
                policy: evaluation.policy.clone(),
                binding: evaluation.binding.clone(),
                path: evaluation.path.clone(),
                place: place.unwrap_or_default(),
                variables: variables(source, evaluation, review, &of_policy),
                source: one_line(source),
                result: shown_result(evaluation),
            }
        })
        .collect()
}

/// The variables that an expression uses, directly or by others, with their values.
fn variables(
    source: &str,
    used_by: &Evaluation,
    review: &Review,
    of_policy: &[Inspected<'_>],
) -> Vec<(String, String)> {
    let same = |one: &&Evaluation| {
        (one.kind, &one.policy, &one.binding, &one.param)
            == (used_by.kind, &used_by.policy, &used_by.binding, &used_by.param)
    };
    let mut found: Vec<(String, String)> = Vec::new();
    let mut sources = vec![source];
    while let Some(source) = sources.pop() {
        for name in names(source) {
            if found.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let Some(variable) = of_policy.iter().find(|one| one.variable == Some(&name)) else { continue };
            if let Some(evaluation) = review.evaluations.iter().filter(same).find(|one| one.path == variable.path) {
                sources.push(variable.source);
                found.push((name, shown_result(evaluation)));
            }
        }
    }
    found
}

/// The names after `variables.` in an expression.
fn names(source: &str) -> Vec<String> {
    let parts = source.split("variables.").skip(1);
    let name = |part: &str| part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    parts.map(name).filter(|name| !name.is_empty()).collect()
}

fn shown_result(evaluation: &Evaluation) -> String {
    let text = match &evaluation.result {
        Ok(value) => value.to_string(),
        Err(error) => format!("error: {error}"),
    };
    shortened(&one_line(&text), MAX_RESULT)
}
