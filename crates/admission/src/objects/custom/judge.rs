//! Evaluating the rules of a schema on an object (`pkg/apiserver/schema/cel/validation.go`).

use palisade_cel::{
    Minor,
    eval::{Activation, Error, PER_CALL_LIMIT, Program},
    value::Value,
};
use serde_json::Value as Json;

use super::{
    correlation::{Correlation, old_element},
    rules::{Node, Rule, Rules},
    schema::{additional, items},
};
use crate::validation::{ErrorType, FieldError, part, quote, text};

/// The most that all rules of an object may cost together (`pkg/apis/cel/config.go`, `RuntimeCELCostBudget`).
const BUDGET: u64 = 10_000_000;
/// The longest message.
const MAX_MESSAGE: usize = 5 * 1024;

/// The verdict of rules on an object.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) errors: Vec<FieldError>,
    /// The errors in parts that an update did not change.
    pub(super) warnings: Vec<String>,
}

impl Rules {
    /// Their verdict on an object, and on the one that it replaces.
    pub(super) fn judge(&self, object: &Json, old: Option<&Json>, ratchets: bool) -> Verdict {
        let mut judge = RuleEvaluator { minor: self.minor, budget: BUDGET, verdict: Verdict::default() };
        if let Some(root) = &self.root {
            let current = old.filter(|_| ratchets).map(|old| Correlation { schema: &self.schema, new: object, old });
            // Nothing more is said once the budget is spent.
            let _ = judge.value(root, (&self.schema, object, old), "", Ratchet { current, parent: None });
        }
        judge.verdict
    }
}

/// Whether an error is in what an update left as it was.
#[derive(Clone, Copy)]
struct Ratchet<'v> {
    current: Option<Correlation<'v>>,
    /// The nearest value around that has an old one.
    parent: Option<Correlation<'v>>,
}

impl Ratchet<'_> {
    fn forgives(self) -> bool {
        self.current.or(self.parent).is_some_and(Correlation::is_unchanged)
    }

    fn key(self, key: &str) -> Self {
        match self.current {
            None => self,
            // The API server converts both to the same version.
            Some(_) if self.parent.is_none() && ["apiVersion", "kind"].contains(&key) => {
                Self { current: None, parent: None }
            }
            Some(current) => Self { current: current.key(key), parent: Some(current) },
        }
    }

    fn index(self, index: usize) -> Self {
        self.current.map_or(self, |current| Self { current: current.index(index), parent: Some(current) })
    }
}

struct RuleEvaluator {
    minor: Minor,
    budget: u64,
    verdict: Verdict,
}

/// The budget is spent.
struct BudgetExceeded;

impl RuleEvaluator {
    fn value(
        &mut self,
        node: &Node,
        (schema, value, old): (&Json, &Json, Option<&Json>),
        path: &str,
        ratchet: Ratchet<'_>,
    ) -> Result<(), BudgetExceeded> {
        if value.is_null() {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        self.rules(node, (schema, value, old), path, ratchet)?;
        match value {
            Json::Array(elements) => {
                let (Some(node), Some(of)) = (&node.items, items(schema)) else { return Ok(()) };
                let old = old.and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
                for (index, element) in elements.iter().enumerate() {
                    let old = old_element(schema, old, element);
                    self.value(node, (of, element, old), &format!("{path}[{index}]"), ratchet.index(index))?;
                }
            }
            Json::Object(fields) => {
                if let (Some(node), Some(of)) = (&node.values, additional(schema)) {
                    for (key, value) in fields {
                        let old = old.and_then(|old| old.get(key));
                        self.value(node, (of, value, old), &format!("{path}[{key}]"), ratchet.key(key))?;
                    }
                }
                for (key, value) in fields {
                    let of = schema.get("properties").and_then(|of| of.get(key));
                    if let (Some(node), Some(of)) = (node.properties.get(key), of) {
                        let old = old.and_then(|old| old.get(key));
                        self.value(node, (of, value, old), &child(path, key), ratchet.key(key))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rules(
        &mut self,
        node: &Node,
        (schema, value, old): (&Json, &Json, Option<&Json>),
        path: &str,
        ratchet: Ratchet<'_>,
    ) -> Result<(), BudgetExceeded> {
        if node.rules.is_empty() {
            return Ok(());
        }
        let of = text(schema, "type");
        let at = if path.is_empty() { "<nil>" } else { path };
        let invalid = |detail: &str| FieldError::invalid(at, of, detail);
        if self.budget == 0 {
            return self.stop(invalid(OUT_OF_BUDGET));
        }
        let uses_old = |rule: &Rule| matches!(&rule.compiled, Some(Ok(compiled)) if compiled.uses_old_self);
        let reads_old = node.rules.iter().any(uses_old);
        for rule in &node.rules {
            let compiled = match &rule.compiled {
                None => continue,
                Some(Err(why)) => {
                    self.verdict.errors.push(invalid(&format!("rule compile error: {why}")));
                    continue;
                }
                Some(Ok(compiled)) => compiled,
            };
            let optional = rule.of.get("optionalOldSelf") == Some(&Json::Bool(true));
            if compiled.uses_old_self && old.is_none() && !optional {
                continue;
            }
            let bind = |optional: bool| {
                let activation = Activation::new().bind("self", Value::typed(value, schema));
                let old = old.map(|old| Value::typed(old, schema));
                match (optional && reads_old, old) {
                    (true, old) => activation.bind("oldSelf", Value::optional(old)),
                    (false, Some(old)) if reads_old => activation.bind("oldSelf", old),
                    (false, _) => activation,
                }
            };
            let activation = bind(optional);
            let evaluation = compiled.program.evaluate(&activation, PER_CALL_LIMIT);
            if evaluation.cost > self.budget {
                return self.stop(invalid(OUT_OF_BUDGET));
            }
            self.budget -= evaluation.cost;
            match evaluation.result.map(|value| value.as_bool()) {
                Ok(Some(true)) => continue,
                Ok(_) => {}
                Err(error) => {
                    self.failed(&error, &rule.of, at, of)?;
                    continue;
                }
            }
            let field = match &rule.path {
                Some(below) if path.is_empty() => below.clone(),
                Some(below) => format!("{path}.{below}"),
                None => at.to_owned(),
            };
            let forgiven = !compiled.uses_old_self && ratchet.forgives();
            // The message sees the old value itself, however it was compiled.
            let activation = bind(false);
            let detail = match rule.message.as_ref().map(|message| self.message(message, &rule.of, &activation)) {
                Some(Ok(detail)) => Some(detail),
                Some(Err(Some(detail))) => {
                    self.add(FieldError::invalid(&field, of, &detail), forgiven);
                    return Err(BudgetExceeded);
                }
                Some(Err(None)) | None => None,
            };
            let detail = detail.unwrap_or_else(|| match text(&rule.of, "message") {
                "" => format!("failed rule: {}", text(&rule.of, "rule").trim()),
                message => message.trim().to_owned(),
            });
            self.add(self.error(&field, value, &detail, &rule.of, of), forgiven);
        }
        Ok(())
    }

    fn stop(&mut self, error: FieldError) -> Result<(), BudgetExceeded> {
        self.verdict.errors.push(error);
        Err(BudgetExceeded)
    }

    fn add(&mut self, error: FieldError, forgiven: bool) {
        if forgiven {
            self.verdict.warnings.push(format!("{}: {}", error.field, error.body));
        } else {
            self.verdict.errors.push(error);
        }
    }

    /// A rule that has no value.
    fn failed(&mut self, error: &Error, rule: &Json, at: &str, of: &str) -> Result<(), BudgetExceeded> {
        let shown = Some(text(rule, "message").trim()).filter(|_| !text(rule, "message").is_empty());
        let shown = shown.unwrap_or_else(|| text(rule, "rule").trim());
        let error = error.to_string();
        if error.starts_with("no such overload") {
            let detail = format!(
                "'{error}': call arguments did not match a supported operator, function or macro signature for rule: \
                 {shown}"
            );
            self.verdict.errors.push(FieldError::invalid(at, of, &detail));
        } else if error.starts_with(LIMIT) {
            let detail = format!(
                "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
            );
            return self.stop(FieldError::invalid(at, of, &detail));
        } else {
            self.verdict.errors.push(FieldError::invalid(at, of, &format!("{error} evaluating rule: {shown}")));
        }
        Ok(())
    }

    /// The message of a rule; or none if it cannot be used, or why nothing more is evaluated.
    fn message<'v>(
        &mut self,
        message: &'v Program,
        rule: &Json,
        activation: &Activation<'v>,
    ) -> Result<String, Option<String>> {
        let evaluation = message.evaluate(activation, PER_CALL_LIMIT);
        if evaluation.cost > self.budget {
            let detail = "messageExpression evaluation failed due to running out of cost budget, no further validation \
                          rules will be run";
            return Err(Some(detail.to_owned()));
        }
        let value = match evaluation.result {
            Err(error) if error.to_string().starts_with(LIMIT) => {
                let source = quote(text(rule, "messageExpression"));
                return Err(Some(format!(
                    "no further validation rules will be run due to call cost exceeds limit for messageExpression: {source}"
                )));
            }
            result => {
                self.budget -= evaluation.cost;
                result.map_err(|_| None)?
            }
        };
        let message = value.as_str().unwrap_or_default().trim();
        if message.is_empty() || message.len() > MAX_MESSAGE || message.contains('\n') {
            return Err(None);
        }
        Ok(message.to_owned())
    }

    /// The message for a value that a rule does not hold for.
    fn error(&self, field: &str, value: &Json, detail: &str, rule: &Json, of: &str) -> FieldError {
        let is_hidden = self.minor >= Minor::V1_35 && ["object", "array"].contains(&of);
        let of = Json::from(of);
        // Until 1.34 the type stands for the value.
        let shown = if self.minor >= Minor::V1_35 { value } else { &of };
        match part(rule, "reason").and_then(Json::as_str) {
            Some("FieldValueForbidden") => FieldError::forbidden(field, detail),
            Some("FieldValueRequired") => FieldError::required(field, detail),
            Some("FieldValueDuplicate") if is_hidden => FieldError::duplicate_hidden(field),
            Some("FieldValueDuplicate") => FieldError::untyped(self.minor, ErrorType::Duplicate, field, shown, ""),
            _ if is_hidden => FieldError::invalid_hidden(field, detail),
            _ => FieldError::untyped(self.minor, ErrorType::Invalid, field, shown, detail),
        }
    }
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";
const LIMIT: &str = "operation cancelled: actual cost limit exceeded";

fn child(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
