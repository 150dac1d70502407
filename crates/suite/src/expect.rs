//! Compares the API server's answer with the expected one.

use palisade_apiserver::admission::{Denial, Evaluation, Outcome, Review};
use serde_json::Value as Json;

use crate::format::{ExpectFields, Verdict};

/// A difference from the expected answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What: `verdict`, `message` ...
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// The actual value.
    pub got: String,
}

impl Difference {
    fn new(what: &str, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self { what: what.to_owned(), expected: expected.into(), got: got.into() }
    }
}

/// All differences.
pub(crate) fn compare(expect: &ExpectFields, review: &Review) -> Vec<Difference> {
    let mut found = Vec::new();
    let got = verdict(expect, review);
    if let Some(got) = got {
        found.push(Difference::new("verdict", expect.verdict.word(), got));
        // All other differences follow from that.
        return found;
    }
    if expect.verdict == Verdict::Deny {
        of_denial(expect, review, &mut found);
    } else if let Some(message) = [&expect.message].into_iter().flatten().chain(&expect.message_contains.0).next() {
        let texts = said(expect, review);
        let exact = expect.message.is_some();
        if !texts.iter().any(|text| if exact { text == message } else { text.contains(message.as_str()) }) {
            found.push(Difference::new("message", message, texts.join("; ")));
        }
    }
    of_warnings(expect, review, &mut found);
    for (key, value) in &expect.audit_annotations {
        let got = review.audit_annotations.get(key);
        if got != Some(value) {
            let got = got.map_or("it is not there", String::as_str);
            found.push(Difference::new(&format!("audit annotation {key}"), value, got));
        }
    }
    if let Some(expected) = &expect.object {
        let object = review.object.as_ref().unwrap_or(&Json::Null);
        differs("object", expected, object, &mut found);
    }
    found
}

/// Whether it is the evaluation of a validation, and not of its message.
pub(crate) fn is_validation(evaluation: &Evaluation) -> bool {
    evaluation.path.starts_with("validations[") && evaluation.path.ends_with("].expression")
}

/// Whether it is the evaluation of a match condition.
pub(crate) fn is_condition(evaluation: &Evaluation) -> bool {
    evaluation.path.starts_with("matchConditions[")
}

/// The verdict, if it is not the expected one.
fn verdict(expect: &ExpectFields, review: &Review) -> Option<String> {
    let concerned = |evaluation: &&Evaluation| {
        expect.policy.as_ref().is_none_or(|policy| *policy == evaluation.policy)
            && expect.binding.as_ref().is_none_or(|binding| *binding == evaluation.binding)
    };
    let evaluations = || review.evaluations.iter().filter(concerned);
    let validations = || evaluations().filter(|one| is_validation(one));
    let failed = evaluations().find(|one| (is_validation(one) || is_condition(one)) && one.result.is_err());
    let violated = validations().any(|one| matches!(&one.result, Ok(value) if value.as_bool() == Some(false)));
    let denied = |denials: &[Denial]| {
        denials.first().map_or_else(|| "denied".to_owned(), |denial| format!("denied: {}", denial.message))
    };
    let got = match &review.outcome {
        Outcome::Denied(denials) => denied(denials),
        Outcome::Allowed if review.warnings.is_empty() => "allow".to_owned(),
        Outcome::Allowed => format!("allow, with warnings: {}", review.warnings.join("; ")),
        Outcome::NoVerdict(why) => format!("no verdict: {why}"),
    };
    let asked = review.outcome.denial().is_none_or(|denial| !denial.policy.is_empty());
    let as_expected = match expect.verdict {
        Verdict::Allow => review.outcome.is_allowed(),
        Verdict::Deny => asked && matches!(review.outcome, Outcome::Denied(_)),
        Verdict::Warn => review.outcome.is_allowed() && !review.warnings.is_empty(),
        Verdict::Error => {
            let unusable = |denial: &Denial| denial.binding.is_none() || denial.said.starts_with("failed to ");
            failed.is_some() || review.outcome.denial().is_some_and(|denial| asked && unusable(denial))
        }
        Verdict::Skip => asked && validations().next().is_none(),
        Verdict::Violation => asked && violated && failed.is_none(),
        Verdict::NoViolation => asked && !violated && failed.is_none() && validations().next().is_some(),
    };
    if as_expected {
        return None;
    }
    Some(match expect.verdict {
        Verdict::Deny if !asked => format!("no policy was asked, for the object is refused before: {got}"),
        Verdict::Skip if asked => "evaluated".to_owned(),
        Verdict::Violation | Verdict::NoViolation if validations().next().is_none() && asked => {
            "the policy was not evaluated: its constraints or conditions leave the request out".to_owned()
        }
        Verdict::Violation | Verdict::NoViolation | Verdict::Error if failed.is_some() => {
            format!("an error in {}", failed.map(|one| one.path.clone()).unwrap_or_default())
        }
        _ => got,
    })
}

/// Compares the denial; of several denials the one that fits best.
fn of_denial(expect: &ExpectFields, review: &Review, found: &mut Vec<Difference>) {
    let Outcome::Denied(denials) = &review.outcome else { return };
    let compare = |denial: &Denial| {
        let mut found = Vec::new();
        let binding = denial.binding.as_deref().unwrap_or_default();
        for (what, expected, got) in
            [("policy", &expect.policy, denial.policy.as_str()), ("binding", &expect.binding, binding)]
        {
            if let Some(expected) = expected.as_ref().filter(|expected| *expected != got) {
                found.push(Difference::new(what, expected, got));
            }
        }
        if let Some(message) = expect.message.as_ref().filter(|one| **one != denial.message && **one != denial.said) {
            found.push(Difference::new("message", message, &denial.said));
        }
        for part in expect.message_contains.0.iter().filter(|part| !denial.message.contains(part.as_str())) {
            found.push(Difference::new("message contains", part, &denial.said));
        }
        if let Some(reason) = expect.reason.as_ref().filter(|reason| **reason != denial.reason) {
            found.push(Difference::new("reason", reason, &denial.reason));
        }
        if let Some(code) = expect.code.filter(|code| *code != denial.code) {
            found.push(Difference::new("code", code.to_string(), denial.code.to_string()));
        }
        found
    };
    found.extend(denials.iter().map(compare).min_by_key(Vec::len).unwrap_or_default());
}

/// The messages of requests that are not denied.
fn said(expect: &ExpectFields, review: &Review) -> Vec<String> {
    let denials = match &review.outcome {
        Outcome::Denied(denials) => denials.as_slice(),
        _ => &[],
    };
    let errors = review.evaluations.iter().filter(|_| expect.verdict == Verdict::Error);
    let errors = errors.filter_map(|evaluation| evaluation.result.clone().err());
    let denials = denials.iter().flat_map(|denial| [denial.said.clone(), denial.message.clone()]);
    review.warnings.iter().cloned().chain(denials).chain(errors).collect()
}

fn of_warnings(expect: &ExpectFields, review: &Review, found: &mut Vec<Difference>) {
    let Some(expected) = &expect.warnings else { return };
    if expected.is_empty() && !review.warnings.is_empty() {
        found.push(Difference::new("warnings", "none", review.warnings.join("; ")));
    }
    for part in expected {
        if !review.warnings.iter().any(|warning| warning.contains(part.as_str())) {
            let got = if review.warnings.is_empty() { "none".to_owned() } else { review.warnings.join("; ") };
            found.push(Difference::new("warnings", part, got));
        }
    }
}

/// Compares the fields that are expected.
fn differs(path: &str, expected: &Json, got: &Json, found: &mut Vec<Difference>) {
    match (expected, got) {
        (Json::Object(expected), Json::Object(got)) => {
            for (key, value) in expected {
                differs(&format!("{path}.{key}"), value, got.get(key).unwrap_or(&Json::Null), found);
            }
        }
        _ if expected == got => {}
        _ => found.push(Difference::new(path, expected.to_string(), got.to_string())),
    }
}
