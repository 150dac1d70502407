//! Verdicts as text and as JSON.

use std::fmt::Write as _;

use palisade_admission::requests::{Mutated, Outcome};
use serde_json::{Value as Json, json};

use super::requests::Answer;
use crate::{
    diff,
    report::{Failure, one_line},
};

/// As text. `policies` is whether there are any.
pub fn human(answers: &[Answer<'_>], policies: bool, verbose: bool) -> Result<String, Failure> {
    let mut text = String::new();
    for Answer { title, review, matched } in answers {
        let verdict = match &review.outcome {
            Outcome::Allowed => "allowed",
            Outcome::Denied(_) => "denied",
            Outcome::NoVerdict(_) => "no verdict",
        };
        line(&mut text, 0, &format!("{title}: {verdict}"));
        match &review.outcome {
            Outcome::Allowed if !policies => line(&mut text, 1, "no policies: only the API server's own checks apply"),
            Outcome::Allowed if matched.is_empty() => line(&mut text, 1, "no policy matches this request"),
            Outcome::Allowed => {}
            Outcome::NoVerdict(why) => line(&mut text, 1, why),
            Outcome::Denied(denials) => {
                let shown = &denials[0];
                line(&mut text, 1, &shown.message);
                line(&mut text, 1, &format!("status: {} {}", shown.code, shown.reason));
                for (index, denial) in denials.iter().enumerate().filter(|(_, denial)| !denial.policy.is_empty()) {
                    let binding = denial.binding.as_ref().map(|binding| format!(", binding {binding}"));
                    let param = denial.param.as_ref().map(|param| format!(", parameters {param}"));
                    let (binding, param) = (binding.unwrap_or_default(), param.unwrap_or_default());
                    // The message of the first denial is already printed.
                    let said = if index == 0 { String::new() } else { format!(": {}", denial.said) };
                    line(&mut text, 1, &format!("by policy {}{binding}{param}{said}", denial.policy));
                }
            }
        }
        for warning in &review.warnings {
            line(&mut text, 1, &format!("warning: {warning}"));
        }
        for (key, value) in &review.audit_annotations {
            line(&mut text, 1, &format!("audit annotation {key}: {value}"));
        }
        for evaluation in review.evaluations.iter().filter(|_| verbose) {
            let result = match &evaluation.result {
                Ok(_) => evaluation.json().to_string(),
                Err(error) => format!("error: {error}"),
            };
            let param = evaluation.param.as_ref().map(|param| format!(" {param}")).unwrap_or_default();
            let at = format!("{} {}{param}", evaluation.policy, evaluation.binding);
            let excluded = evaluation.path.starts_with("matchConditions[") && result == "false";
            let end = if excluded { ": the policy is skipped" } else { "" };
            line(&mut text, 1, &format!("{at} {} = {result} (cost {}){end}", evaluation.path, evaluation.cost));
        }
        if let Some(Mutated { before, after }) = &review.mutated {
            let context = if verbose { diff::WHOLE } else { diff::CONTEXT };
            text.push_str(&diff::unified(before, after, context)?);
        }
    }
    Ok(text)
}

/// Adds a line. Text from a file cannot break the line or control the terminal.
fn line(text: &mut String, level: usize, content: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{:1$}{2}", "", 2 * level, one_line(content));
}

/// As JSON.
pub fn json(answers: &[Answer<'_>]) -> Json {
    answers.iter().map(one).collect()
}

fn one(Answer { title, review, matched }: &Answer<'_>) -> Json {
    let denial = review.outcome.denial();
    let evaluations: Vec<_> = review
        .evaluations
        .iter()
        .map(|evaluation| {
            json!({
                "policy": evaluation.policy, "binding": evaluation.binding, "param": evaluation.param,
                "path": evaluation.path, "result": evaluation.json(), "error": evaluation.result.as_ref().err(),
                "cost": evaluation.cost,
            })
        })
        .collect();
    json!({
        "request": title,
        "allowed": review.outcome.is_allowed(),
        "message": denial.map(|denial| &denial.message),
        "reason": denial.map(|denial| &denial.reason),
        "code": denial.map(|denial| denial.code),
        "matched": matched
            .iter()
            .map(|(kind, policy, binding)| json!({"kind": kind.name(), "policy": policy, "binding": binding}))
            .collect::<Json>(),
        "warnings": review.warnings,
        "auditAnnotations": review.audit_annotations,
        "evaluations": evaluations,
        "mutated": review.mutated.as_ref().map(|mutated| &mutated.after),
        "patch": review.mutated.as_ref().map(|Mutated { before, after }| diff::patch(before, after)),
        "noVerdict": match &review.outcome {
            Outcome::NoVerdict(why) => Some(why),
            Outcome::Allowed | Outcome::Denied(_) => None,
        },
    })
}
