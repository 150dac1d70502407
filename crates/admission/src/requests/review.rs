//! The result of a request.

use std::collections::BTreeMap;

use palisade_cel::value::Value;
use serde_json::Value as Json;

use crate::validation::FieldError;

/// The result of a request.
#[derive(Clone, Debug)]
pub struct Review {
    /// Whether it is admitted.
    pub outcome: Outcome,
    /// The object after mutation; none if there was none.
    pub object: Option<Json>,
    /// The object before and after mutating admission; none if it is unchanged.
    pub mutated: Option<Mutated>,
    /// The warnings that the client reads, in the order of the server's headers.
    pub warnings: Vec<String>,
    /// The annotations that policies write into the audit event.
    pub audit_annotations: BTreeMap<String, String>,
    /// Each expression that was evaluated, in the order of evaluation; a policy's variables come before the expressions
    /// that used them first.
    pub evaluations: Vec<Evaluation>,
}

/// An object before and after mutating admission.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutated {
    /// As policies and webhooks were shown it: decoded, with the API server's defaults.
    pub before: Json,
    /// As they left it. Nothing that the API server sets afterwards, as `status`, is in it.
    pub after: Json,
}

/// Whether a request is admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No policy denies it.
    Allowed,
    /// It is rejected, for all of these. The client is shown the first only; of several policies and bindings the
    /// server takes them in an order that is different each time it starts, here it is that of their names.
    Denied(Vec<Denial>),
    /// The result is unknown offline, for this reason. A request that a policy certainly denies is still `Denied`.
    NoVerdict(String),
}

/// One reason for a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The policy; empty if something else denied the request.
    pub policy: String,
    /// The binding; none if the policy itself is not usable.
    pub binding: Option<String>,
    /// The parameters that it was evaluated with: `name` or `namespace/name`.
    pub param: Option<String>,
    /// The complete text that a client reads, the API server's `status.message`.
    pub message: String,
    /// The part of the text that comes from the policy.
    pub said: String,
    /// The text of `status.details.causes`.
    pub cause: String,
    /// The API server's `status.reason`.
    pub reason: String,
    /// The HTTP status.
    pub code: u16,
    /// The errors of fields, if the object is invalid.
    pub causes: Vec<FieldError>,
}

/// Which of the two kinds of policies: one of each kind may have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyKind {
    /// A ValidatingAdmissionPolicy.
    Validating,
    /// A `MutatingAdmissionPolicy`.
    Mutating,
}

impl PolicyKind {
    /// The `kind` of such a policy.
    pub fn name(self) -> &'static str {
        match self {
            Self::Validating => "ValidatingAdmissionPolicy",
            Self::Mutating => "MutatingAdmissionPolicy",
        }
    }
}

/// One expression that was evaluated.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The kind of the policy.
    pub kind: PolicyKind,
    /// The policy.
    pub policy: String,
    /// The binding.
    pub binding: String,
    /// The parameters: `name` or `namespace/name`.
    pub param: Option<String>,
    /// The path of the expression: `validations[0].expression`, `variables[2].expression`.
    pub path: String,
    /// The value, or why there is none.
    pub result: Result<Value<'static>, String>,
    /// Its cost, without that of the variables that it used.
    pub cost: u64,
}

impl Evaluation {
    /// The value as JSON; as text, if it has no JSON form. Null if there is none.
    pub fn json(&self) -> Json {
        self.result.as_ref().map_or(Json::Null, json)
    }
}

fn json(value: &Value<'_>) -> Json {
    match value {
        Value::Null | Value::Optional(None) => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Uint(value) => (*value).into(),
        Value::Double(value) => (*value).into(),
        Value::String(text) | Value::Type(text) => (**text).into(),
        Value::Optional(Some(value)) => json(value),
        Value::List(list) => list.iter().map(|item| json(&item)).collect(),
        Value::Map(map) => {
            let key = |key: &Value<'_>| key.as_str().map_or_else(|| json(key).to_string(), str::to_owned);
            map.entries().map(|(name, value)| (key(&name), json(&value))).collect()
        }
        Value::Struct(of) => of.fields().map(|(name, value)| (name.to_owned(), json(value))).collect(),
        Value::Opaque(opaque) => opaque.text().unwrap_or_else(|| opaque.type_name().to_owned()).into(),
        Value::Bytes(_) | Value::Timestamp(_) | Value::Duration(_) => value.canonical().into(),
    }
}

impl Outcome {
    /// Whether the request is certainly admitted.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed)
    }

    /// The denial that the client is shown.
    pub fn denial(&self) -> Option<&Denial> {
        match self {
            Self::Denied(denials) => denials.first(),
            Self::Allowed | Self::NoVerdict(_) => None,
        }
    }
}
