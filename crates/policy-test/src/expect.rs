//! Compares the API server's answer with the expected one.

use palisade_admission::{
    create::FieldError,
    requests::{Denial, Evaluation, Outcome, Review},
};
use serde_json::Value as Json;

use crate::format::{ExpectFields, Verdict};

/// A difference from the expected answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The part that differs: `verdict`, `message` ...
    pub what: String,
    /// The expected value.
    pub expected: String,
    /// The actual value.
    pub got: String,
}

impl Difference {
    pub(crate) fn new(what: &str, expected: impl Into<String>, got: impl Into<String>) -> Self {
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
    if matches!(expect.verdict, Verdict::Deny | Verdict::Invalid) {
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
            let got = got.map_or("none", String::as_str);
            found.push(Difference::new(&format!("audit annotation {key}"), value, got));
        }
    }
    if let Some(expected) = &expect.object {
        let object = review.object.as_ref().unwrap_or(&Json::Null);
        differs("object", expected, object, &mut found);
    }
    if let Some(expected) = &expect.object_contains {
        lacks("object", expected, review.object.as_ref().unwrap_or(&Json::Null), &mut found);
    }
    found
}

/// Whether the API server denies an object because it is invalid. A denial by a plugin is none.
fn is_invalid(denial: &Denial) -> bool {
    denial.policy.is_empty() && matches!(denial.reason.as_str(), "Invalid" | "BadRequest")
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
        Verdict::Invalid => review.outcome.denial().is_some_and(is_invalid),
        Verdict::Skip => asked && validations().next().is_none(),
        Verdict::Violation => asked && violated && failed.is_none(),
        Verdict::NoViolation => asked && !violated && failed.is_none() && validations().next().is_some(),
    };
    if as_expected {
        return None;
    }
    Some(match expect.verdict {
        Verdict::Deny if review.outcome.denial().is_some_and(is_invalid) => {
            format!("invalid, so no policy is evaluated: {got}")
        }
        Verdict::Deny if !asked => format!("rejected before a policy is evaluated: {got}"),
        Verdict::Skip if asked => "evaluated".to_owned(),
        Verdict::Violation | Verdict::NoViolation if validations().next().is_none() && asked => {
            "the policy was not evaluated: its constraints or conditions exclude the request".to_owned()
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
        let of_field = |cause: &&FieldError| expect.field.as_ref().is_none_or(|field| *field == cause.field);
        let causes: Vec<_> = denial.causes.iter().filter(of_field).collect();
        if let Some(field) = expect.field.as_ref().filter(|_| causes.is_empty()) {
            let fields: Vec<_> = denial.causes.iter().map(|cause| cause.field.as_str()).collect();
            found.push(Difference::new("field", field, fields.join(", ")));
            return found;
        }
        // The API server writes the kind of error and the value before the message of a rule.
        let is_of = |cause: &&FieldError, message: &str| {
            cause.body == message || cause.body.strip_suffix(message).is_some_and(|before| before.ends_with(": "))
        };
        let said = match causes.as_slice() {
            [] => denial.said.clone(),
            causes => causes.iter().map(|cause| cause.body.as_str()).collect::<Vec<_>>().join("; "),
        };
        let is_said = |message: &str| {
            causes.iter().any(|cause| is_of(cause, message))
                || (expect.field.is_none() && (message == denial.message || message == denial.said))
        };
        if let Some(message) = expect.message.as_ref().filter(|message| !is_said(message)) {
            found.push(Difference::new("message", message, &said));
        }
        let text = if expect.field.is_some() { &said } else { &denial.message };
        for part in expect.message_contains.0.iter().filter(|part| !text.contains(part.as_str())) {
            found.push(Difference::new("message contains", part, &said));
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

/// Compares the fields that are expected; a list contains each expected element in some element.
fn lacks(path: &str, expected: &Json, got: &Json, found: &mut Vec<Difference>) {
    match (expected, got) {
        (Json::Object(expected), Json::Object(got)) => {
            for (key, value) in expected {
                lacks(&format!("{path}.{key}"), value, got.get(key).unwrap_or(&Json::Null), found);
            }
        }
        (Json::Array(expected), Json::Array(got)) => {
            let contains = |one: &Json, expected: &Json| {
                let mut found = Vec::new();
                lacks("", expected, one, &mut found);
                found.is_empty()
            };
            for (index, element) in expected.iter().enumerate() {
                if !got.iter().any(|one| contains(one, element)) {
                    let got = Json::Array(got.clone()).to_string();
                    found.push(Difference::new(&format!("{path}[{index}]"), element.to_string(), got));
                }
            }
        }
        _ if expected == got => {}
        _ => found.push(Difference::new(path, expected.to_string(), got.to_string())),
    }
}
