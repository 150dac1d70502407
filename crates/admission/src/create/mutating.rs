//! `MutatingAdmissionPolicy` (`validateMutatingAdmissionPolicySpec`).

use palisade_cel::ResultType;
use serde_json::{Value as Json, json};

use super::{
    expressions::{Expressions, Place},
    rules,
    validating::{frame, match_conditions, trim, variables},
};
use crate::validation::{Checking, FieldError as Error, list, meta, names, part, text};

/// Checks a policy.
pub(super) fn policy(checking: &mut Checking<'_>, object: &Json) {
    meta::check(checking, object, names::subdomain);
    let empty = json!({});
    let spec = object.get("spec").unwrap_or(&empty);
    frame(checking, spec);
    if let Some(constraints) = part(spec, "matchConstraints") {
        rules::no_deletion(checking, constraints, "spec.matchConstraints");
    }
    let mut expressions = Expressions::new(checking.minor, part(spec, "paramKind").is_some(), true, checking.old);
    match_conditions(checking, spec, &expressions);
    variables(checking, list(spec, "variables"), &mut expressions);
    let mutations = list(spec, "mutations");
    if mutations.is_empty() {
        checking.errors.push(Error::required("spec.mutations", "mutations must contain at least one item"));
    }
    for (index, found) in mutations.iter().enumerate() {
        mutation(checking, found, &format!("spec.mutations[{index}]"), &expressions);
    }
    match text(spec, "reinvocationPolicy") {
        "" => checking.errors.push(Error::required("spec.reinvocationPolicy", "")),
        "Never" | "IfNeeded" => {}
        other => {
            let (field, known) = ("spec.reinvocationPolicy", ["IfNeeded", "Never"]);
            checking.errors.push(Error::not_supported(checking.minor, field, other, &known));
        }
    }
}

fn mutation(checking: &mut Checking<'_>, mutation: &Json, field: &str, expressions: &Expressions) {
    const KINDS: [(&str, &str); 2] = [("ApplyConfiguration", "applyConfiguration"), ("JSONPatch", "jsonPatch")];
    let of = text(mutation, "patchType");
    let ((_, own), (_, other)) = match of {
        "" => return checking.errors.push(Error::required(format!("{field}.patchType"), "")),
        "ApplyConfiguration" => (KINDS[0], KINDS[1]),
        "JSONPatch" => (KINDS[1], KINDS[0]),
        of => {
            let supported = KINDS.map(|(of, _)| of);
            let field = format!("{field}.patchType");
            return checking.errors.push(Error::not_supported(checking.minor, field, of, &supported));
        }
    };
    match part(mutation, own) {
        None => {
            let detail = format!("must be specified when patchType is {of}");
            checking.errors.push(Error::required(format!("{field}.{own}"), &detail));
        }
        Some(patch) => {
            let at = format!("{field}.{own}.expression");
            let source = text(patch, "expression");
            let trimmed = trim(source);
            if trimmed.is_empty() {
                checking.errors.push(Error::required(at, ""));
            } else {
                let result = if own == "jsonPatch" { ResultType::JsonPatch } else { ResultType::ApplyConfiguration };
                expressions.compile(checking, &at, Place::Mutation, (source, trimmed), result);
            }
        }
    }
    if part(mutation, other).is_some() {
        let detail = format!("must not be specified when patchType is {of}");
        checking.errors.push(Error::invalid(format!("{field}.{other}"), &format!("{{{other}}}"), &detail));
    }
}
