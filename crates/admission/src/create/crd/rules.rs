//! `x-kubernetes-validations` of a schema (`ValidateCustomResourceDefinitionOpenAPISchema`, its last part).

use palisade_cel::{Minor, schema::DeclType};
use serde_json::Value as Json;

use super::{
    cost::excess,
    schema::{Context, Found, Walk},
    structural,
};
use crate::validation::{FieldError as Error, field_path, html_escaped, list, part, quote, rule, text};

const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

fn breaks_lines(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

impl Walk<'_, '_> {
    /// Checks rules as far as that is possible without compiling them.
    pub(super) fn rules(&self, schema: &Json, field: &str, found: &mut Found) {
        // Kubernetes 1.33 begins these with the name of the field.
        let named = |name: &str, detail: &str| {
            if self.checking.minor <= Minor::V1_33 { format!("{name} {detail}") } else { detail.to_owned() }
        };
        for (index, rule) in list(schema, "x-kubernetes-validations").iter().enumerate() {
            let at = |name: &str| format!("{field}.x-kubernetes-validations[{index}].{name}");
            let (message, expression, path) =
                (text(rule, "message"), text(rule, "messageExpression"), text(rule, "fieldPath"));
            let source = text(rule, "rule").trim();
            let errors = &mut found.schema;
            if source.is_empty() {
                errors.push(Error::required(at("rule"), "rule is not specified"));
            } else if !message.is_empty() && message.trim().is_empty() {
                let detail = named("message", "must be non-empty if specified");
                errors.push(Error::invalid(at("message"), message, &detail));
            } else if breaks_lines(message.trim()) {
                errors.push(Error::invalid(at("message"), message, &named("message", "must not contain line breaks")));
            } else if breaks_lines(source) && message.trim().is_empty() {
                errors.push(Error::required(at("message"), "message must be specified if rule contains line breaks"));
            }
            if !expression.is_empty() && expression.trim().is_empty() {
                let detail = "messageExpression must be non-empty if specified";
                errors.push(Error::required(at("messageExpression"), detail));
            }
            if let Some(reason) = part(rule, "reason").and_then(Json::as_str).filter(|one| !REASONS.contains(one)) {
                errors.push(Error::not_supported(self.checking.minor, at("reason"), reason, &REASONS));
            }
            let mut wrong_path = |detail: &str| {
                errors.push(Error::invalid(at("fieldPath"), path, &named("fieldPath", detail)));
            };
            if !path.is_empty() && path.trim().is_empty() {
                wrong_path("must be non-empty if specified");
            }
            if breaks_lines(path) {
                wrong_path("must not contain line breaks");
            }
            if !path.is_empty() && structural::unsupported(schema).is_none() && field_path(path, schema).is_none() {
                wrong_path("must be a valid path");
            }
        }
    }

    /// Compiles the rules, and adds up what they may cost. `typed` is the schema with metadata.
    pub(super) fn compile(&mut self, schema: &Json, typed: &Json, field: &str, context: &Context, found: &mut Found) {
        let rules = list(schema, "x-kubernetes-validations");
        let Some(of) = DeclType::new(typed, self.checking.minor) else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                          unable to convert structural schema to CEL declarations";
            found.rules.push(Error::internal(format!("{field}.x-kubernetes-validations"), detail));
            return;
        };
        let scopes = self.environments().each_ref().map(|environment| rule::Scope::new(environment, &of));
        for (index, rule) in rules.iter().enumerate() {
            let at = |name: &str| format!("{field}.x-kubernetes-validations[{index}].{name}");
            let source = text(rule, "rule");
            let compiled = scopes[usize::from(self.existing.rules.contains(source))].rule(rule);
            let cost = compiled.as_ref().map_or(0, |compiled| {
                compiled.cost.saturating_mul(context.cardinality.unwrap_or_else(|| of.max_cardinality()))
            });
            self.note_cost("estimated rule cost", &at("rule"), cost, found);
            let mut uses_old_self = false;
            match compiled {
                Ok(compiled) => {
                    uses_old_self = compiled.uses_old_self;
                    self.message(&scopes, rule, &at("messageExpression"), found);
                }
                Err(failure) => {
                    // What is not compiled refers to nothing.
                    uses_old_self |= self.refuse(failure, at("rule"), rule, found);
                }
            }
            if uses_old_self {
                if let Some(within) = &context.uncorrelatable {
                    let detail =
                        format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
                    found.rules.push(Error::invalid(at("rule"), source, &detail));
                }
            } else if let Some(optional) = part(rule, "optionalOldSelf") {
                let detail = "may not be set if oldSelf is not used in rule";
                found.rules.push(Error::invalid_value(self.checking.minor, at("optionalOldSelf"), optional, detail));
            }
        }
    }

    fn message(&mut self, scopes: &[rule::Scope<'_>; 2], rule: &Json, at: &str, found: &mut Found) {
        let source = text(rule, "messageExpression");
        if source.is_empty() {
            return;
        }
        match scopes[usize::from(self.existing.messages.contains(source))].message(rule) {
            Ok(compiled) => self.note_cost("estimated messageExpression cost", at, compiled.cost, found),
            Err(failure) => {
                self.refuse(failure, at.to_owned(), rule, found);
            }
        }
    }

    fn note_cost(&mut self, what: &str, at: &str, cost: u64, found: &mut Found) {
        if let Some(detail) = excess(what, cost).filter(|_| !self.existing.is_unchanged) {
            found.rules.push(Error::forbidden(at, &detail));
        }
        self.costs.add(at, cost);
    }

    /// Notes why an expression does not compile. Whether that is not known.
    fn refuse(&mut self, failure: rule::Failure, at: String, rule: &Json, found: &mut Found) -> bool {
        match failure {
            rule::Failure::Refused(detail) => {
                found.rules.push(Error::invalid_shown(at, &shown(self.checking.minor, rule), &detail));
                false
            }
            rule::Failure::Unsupported(why) => {
                self.checking.unknown.get_or_insert_with(|| format!("{at}: {why}"));
                true
            }
        }
    }
}

/// The whole rule as the API server shows it, in the words of its internal type.
fn shown(minor: Minor, rule: &Json) -> String {
    let json = |key: &str| part(rule, key).map_or_else(|| "null".to_owned(), Json::to_string);
    if minor >= Minor::V1_34 {
        let text = |key: &str| Json::from(text(rule, key)).to_string();
        return html_escaped(&format!(
            r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
            text("rule"),
            text("message"),
            text("messageExpression"),
            json("reason"),
            text("fieldPath"),
            json("optionalOldSelf"),
        ));
    }
    // What is pointed at has another address each time.
    let pointer = |key: &str, of: &str| format!("(*{of})({})", if part(rule, key).is_some() { "0x0" } else { "nil" });
    let text = |key: &str| quote(text(rule, key));
    format!(
        "apiextensions.ValidationRule{{Rule:{}, Message:{}, MessageExpression:{}, Reason:{}, FieldPath:{}, \
         OptionalOldSelf:{}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        pointer("reason", "apiextensions.FieldValueErrorReason"),
        text("fieldPath"),
        pointer("optionalOldSelf", "bool"),
    )
}
