//! Requests to an authorizer and its decisions (apiserver `pkg/authorization/authorizer`).

use std::{collections::BTreeMap, fmt};

/// Answers authorization checks, as an API server's authorizer does.
pub trait Authorizer: Send + Sync {
    /// Whether the user is allowed to do it.
    fn authorize(&self, user: &User, attributes: &Attributes) -> Decision;
}

/// The user that requests an action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Extra attributes from the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The requested action, on either a path or a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `get`, `create` and so on.
    pub verb: String,
    /// The path, of a request that is not for a resource.
    pub path: Option<String>,
    /// The API group; the version is `*`.
    pub group: String,
    /// The resource in plural.
    pub resource: String,
    /// The subresource, or nothing.
    pub subresource: String,
    /// The namespace, or nothing.
    pub namespace: String,
    /// The name, or nothing.
    pub name: String,
    /// The field selector.
    pub field_selector: Selector,
    /// The label selector.
    pub label_selector: Selector,
}

/// A selector of an expression, parsed. An authorizer takes one that is wrong for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The requirements, all of which it demands.
    pub requirements: Vec<Requirement>,
    /// Why it cannot be parsed, if it cannot.
    pub error: Option<String>,
}

impl From<Result<Vec<Requirement>, String>> for Selector {
    fn from(parsed: Result<Vec<Requirement>, String>) -> Self {
        match parsed {
            Ok(requirements) => Self { requirements, error: None },
            Err(error) => Self { requirements: Vec::new(), error: Some(error) },
        }
    }
}

/// One demand of a selector. Displayed as in a selector, but for escapes in values of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label, or the path of the field.
    pub key: String,
    /// How it is compared. With fields, only `Equals` and `NotEquals` occur.
    pub operator: Operator,
    /// With what; sorted.
    pub values: Vec<String>,
}

/// How a label or field is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of labels")]
pub enum Operator {
    Exists,
    DoesNotExist,
    Equals,
    DoubleEquals,
    NotEquals,
    In,
    NotIn,
    GreaterThan,
    LessThan,
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

/// The answer of an authorizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request is allowed. "No opinion" counts as not allowed.
    pub allowed: bool,
    /// The reason.
    pub reason: String,
    /// The error of the authorizer, if any.
    pub error: Option<String>,
}

impl fmt::Debug for dyn Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorizer")
    }
}
