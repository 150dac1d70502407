//! Checks that the guard evaluates only changes of the guarded keys.

use palisade_api::{Diagnostic, names::Part};
use palisade_cel::Minor;
use palisade_compiler::{Compiled, PolicyWithBindings};
use palisade_kube_json::json::set;
use serde_json::{Value as Json, json};

use crate::{
    Decision, Operation, ValidationRequest, Validator,
    place::{POLICY, located},
    types, validator,
};

/// The label that no profile reads.
const UNREAD: &str = "palisade.example.org/unread";

/// The errors in the guard of a profile, if it has one.
pub(crate) fn diagnose(compiled: &Compiled, oldest: Minor) -> Vec<Diagnostic> {
    let Some(pair) = &compiled.bundle.guard else { return vec![] };
    located(Part::Guard, mistakes(pair, oldest))
}

fn mistakes(pair: &PolicyWithBindings, oldest: Minor) -> Vec<Diagnostic> {
    let policy = match Validator::on(&pair.policy, oldest) {
        Ok(policy) => policy,
        Err(diagnostics) => return diagnostics,
    };
    let diagnostics = types::mistakes(&pair.policy, oldest);
    if !diagnostics.is_empty() {
        return diagnostics;
    }
    let plain = validator::namespace("tenant", &[].into(), &[].into());
    let mut labelled = plain.clone();
    set(&mut labelled, &["metadata", "labels", UNREAD], json!("x"));
    // Who removes the last finalizer of a namespace removes nothing else.
    let mut finalized = labelled.clone();
    set(&mut finalized, &["metadata", "finalizers"], json!(["example.org/a"]));
    let (created, updated) = (Operation::Create, Operation::Update);
    let requests = [
        ("the creation of a namespace", created, &labelled, &Json::Null),
        ("a new label", updated, &labelled, &plain),
        ("the removal of a label", updated, &plain, &labelled),
        ("the removal of a finalizer", updated, &labelled, &finalized),
    ];
    requests
        .into_iter()
        .filter_map(|(what, operation, object, old_object)| {
            let request = ValidationRequest { operation, old_object, ..ValidationRequest::create("Namespace", object) };
            match policy.evaluate(&request) {
                Ok(Decision::Admit) => None,
                Ok(Decision::Deny { message, .. }) => {
                    Some(Diagnostic::new(POLICY, format!("{what} that the profile does not read is denied: {message}")))
                }
                Err(diagnostic) => Some(diagnostic),
            }
        })
        .collect()
}
