//! `ValidatingAdmissionPolicy` (`validateValidatingAdmissionPolicySpec`).

use std::collections::BTreeSet;

use palisade_cel::{Minor, ResultType, environment};
use serde_json::{Value as Json, json};

use super::{
    expressions::{Expressions, Place},
    rules,
};
use crate::validation::{Checking, FieldError as Error, go_json, list, meta, names, part, quote, text};

const MAX_MATCH_CONDITIONS: usize = 64;
const MAX_AUDIT_ANNOTATIONS: usize = 20;
const MAX_VALUE_EXPRESSION: usize = 5 * 1024;
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// Checks a policy.
pub(super) fn policy(checking: &mut Checking<'_>, object: &Json) {
    meta::check(checking, object, names::subdomain);
    let empty = json!({});
    let spec = object.get("spec").unwrap_or(&empty);
    frame(checking, spec);
    let (variables, validations) = (list(spec, "variables"), list(spec, "validations"));
    let annotations = list(spec, "auditAnnotations");
    let has_params = part(spec, "paramKind").is_some();
    let mut expressions = Expressions::new(checking.minor, has_params, !variables.is_empty(), checking.old);
    match_conditions(checking, spec, &expressions);
    self::variables(checking, variables, &mut expressions);
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        checking.errors.push(Error::required("spec.validations", detail));
        checking.errors.push(Error::required("spec.auditAnnotations", detail));
        return;
    }
    for (index, found) in validations.iter().enumerate() {
        validation(checking, found, &expressions, &format!("spec.validations[{index}]"));
    }
    if annotations.len() > MAX_AUDIT_ANNOTATIONS {
        let detail = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
        let shown = shown_annotations(checking.minor, annotations);
        checking.errors.push(Error::invalid_shown("spec.auditAnnotations", &shown, &detail));
    }
    let name = meta::name(object);
    let mut keys = BTreeSet::new();
    for (index, found) in annotations.iter().enumerate() {
        let field = format!("spec.auditAnnotations[{index}]");
        annotation(checking, found, &name, &expressions, &field);
        let key = text(found, "key");
        if !keys.insert(key) {
            checking.errors.push(Error::duplicate(format!("{field}.key"), key));
        }
    }
}

/// Audit annotations as the API server prints them: its internal type has other names for the fields.
fn shown_annotations(minor: Minor, annotations: &[Json]) -> String {
    let fields = annotations.iter().map(|one| (text(one, "key"), text(one, "valueExpression")));
    if minor >= Minor::V1_34 {
        return go_json(&fields.map(|(key, expression)| json!({"Key": key, "ValueExpression": expression})).collect());
    }
    let of = "admissionregistration.AuditAnnotation";
    let shown =
        fields.map(|(key, expression)| format!("{of}{{Key:{}, ValueExpression:{}}}", quote(key), quote(expression)));
    format!("[]{of}{{{}}}", shown.collect::<Vec<_>>().join(", "))
}

/// Checks the fields that policies of both kinds have before their expressions.
pub(super) fn frame(checking: &mut Checking<'_>, spec: &Json) {
    match part(spec, "failurePolicy").and_then(Json::as_str) {
        None => checking.errors.push(Error::required("spec.failurePolicy", "")),
        Some("Fail" | "Ignore") => {}
        Some(other) => {
            let field = "spec.failurePolicy";
            checking.errors.push(Error::not_supported(checking.minor, field, other, &["Fail", "Ignore"]));
        }
    }
    if let Some(kind) = part(spec, "paramKind") {
        rules::param_kind(checking, kind, "spec.paramKind");
    }
    let field = "spec.matchConstraints";
    let Some(constraints) = part(spec, "matchConstraints") else {
        checking.errors.push(Error::required(field, ""));
        return;
    };
    rules::match_resources(checking, constraints, field);
    if list(constraints, "resourceRules").is_empty() {
        checking.errors.push(Error::required(format!("{field}.resourceRules"), ""));
    }
}

/// Checks `matchConditions`, unless nothing changed that they depend on.
pub(super) fn match_conditions(checking: &mut Checking<'_>, spec: &Json, expressions: &Expressions) {
    if let Some(old) = checking.old.and_then(|old| old.get("spec"))
        && ["paramKind", "matchConditions"].iter().all(|key| part(old, key) == part(spec, key))
    {
        return;
    }
    conditions(checking, list(spec, "matchConditions"), expressions, "spec.matchConditions");
}

/// Checks the conditions of a policy or of a webhook.
pub(super) fn conditions(checking: &mut Checking<'_>, conditions: &[Json], expressions: &Expressions, field: &str) {
    if conditions.len() > MAX_MATCH_CONDITIONS {
        checking.errors.push(Error::too_many(field, conditions.len(), MAX_MATCH_CONDITIONS));
    }
    let mut seen = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let at = format!("{field}[{index}].expression");
        match trim(text(condition, "expression")) {
            "" => checking.errors.push(Error::required(at, "")),
            expression => {
                expressions.compile(checking, &at, Place::Condition, (expression, expression), ResultType::Bool);
            }
        }
        let at = format!("{field}[{index}].name");
        let name = text(condition, "name");
        if name.is_empty() {
            checking.errors.push(Error::required(&at, ""));
            continue;
        }
        let wrong = names::qualified(checking.minor, name);
        checking.errors.extend(wrong.iter().map(|wrong| Error::invalid(&at, name, wrong)));
        if !seen.insert(name) {
            checking.errors.push(Error::duplicate(at, name));
        }
    }
}

/// Checks `variables`, each of which sees those before it.
pub(super) fn variables(checking: &mut Checking<'_>, variables: &[Json], expressions: &mut Expressions) {
    for (index, variable) in variables.iter().enumerate() {
        let field = format!("spec.variables[{index}]");
        let name = text(variable, "name");
        if trim(name).is_empty() {
            checking.errors.push(Error::required(format!("{field}.name"), "name is not specified"));
        } else if !is_identifier(name) {
            let detail = if checking.minor < Minor::V1_34 {
                "name is not a valid CEL identifier"
            } else {
                "must be a valid CEL identifier"
            };
            checking.errors.push(Error::invalid(format!("{field}.name"), name, detail));
        }
        let expression = text(variable, "expression");
        let at = format!("{field}.expression");
        if trim(expression).is_empty() {
            checking.errors.push(Error::required(at, "expression is not specified"));
            continue;
        }
        let output = expressions.compile(checking, &at, Place::Main, (expression, expression), ResultType::Any);
        expressions.compose(name, output.as_ref());
    }
}

fn validation(checking: &mut Checking<'_>, validation: &Json, expressions: &Expressions, field: &str) {
    let expression = text(validation, "expression");
    let at = format!("{field}.expression");
    if trim(expression).is_empty() {
        checking.errors.push(Error::required(at, "expression is not specified"));
    } else {
        expressions.compile(checking, &at, Place::Main, (expression, expression), ResultType::Bool);
    }
    let message = text(validation, "messageExpression");
    let at = format!("{field}.messageExpression");
    if !trim(message).is_empty() {
        expressions.compile(checking, &at, Place::Message, (message, message), ResultType::String);
    } else if !message.is_empty() {
        checking.errors.push(Error::invalid(at, message, "must be non-empty if specified"));
    }
    let message = text(validation, "message");
    let at = format!("{field}.message");
    // Kubernetes 1.34 says less.
    let subject = if checking.minor < Minor::V1_34 { "message " } else { "" };
    if !message.is_empty() && trim(message).is_empty() {
        checking.errors.push(Error::invalid(at, message, &format!("{subject}must be non-empty if specified")));
    } else if trim(message).contains(['\n', '\r']) {
        checking.errors.push(Error::invalid(at, message, &format!("{subject}must not contain line breaks")));
    }
    if let Some(reason) = part(validation, "reason").and_then(Json::as_str).filter(|one| !REASONS.contains(one)) {
        checking.errors.push(Error::not_supported(checking.minor, format!("{field}.reason"), reason, &REASONS));
    }
}

fn annotation(checking: &mut Checking<'_>, annotation: &Json, name: &str, expressions: &Expressions, field: &str) {
    let key = text(annotation, "key");
    let at = format!("{field}.key");
    if name.is_empty() {
        checking.errors.push(Error::invalid(at, key, "requires metadata.name be non-empty"));
    } else {
        let full = format!("{name}/{key}");
        let wrong = names::qualified(checking.minor, &full);
        checking.errors.extend(wrong.iter().map(|wrong| Error::invalid(&at, &full, wrong)));
    }
    let whole = text(annotation, "valueExpression");
    let at = format!("{field}.valueExpression");
    match trim(whole) {
        "" => checking.errors.push(Error::required(at, "valueExpression is not specified")),
        long if long.len() > MAX_VALUE_EXPRESSION => {
            let detail = format!("must not exceed {MAX_VALUE_EXPRESSION} bytes in length");
            checking.errors.push(Error::required(at, &detail));
        }
        trimmed => {
            expressions.compile(checking, &at, Place::Main, (trimmed, whole), ResultType::StringOrNull);
        }
    }
}

/// Whether a variable can have a name.
fn is_identifier(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(letter)
        && name.chars().all(|c| letter(c) || c.is_ascii_digit())
        && !environment::RESERVED.contains(&name)
}

/// Without white space at the ends (Go's `strings.TrimSpace`, which knows the same as Rust but for U+0085 being both).
pub(super) fn trim(text: &str) -> &str {
    text.trim()
}
