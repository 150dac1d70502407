//! The type checker: cel-go's (`checker/`), with its validators of syntax trees (`cel/validator.go`).
//!
//! It finds every error that kube-apiserver finds before it evaluates, with cel-go's texts and places. In addition it
//! gives advice.

mod aggregate;
mod calls;
mod checker;
mod help;
mod unify;
mod validate;

use std::sync::Arc;

use crate::{
    ast::{Ast, NodeId, Position},
    environment::Environment,
    functions::Overload,
    issue::{Issue, IssueKind, arrange},
    types::Type,
    value::{JSON_PATCH, OBJECT},
};

/// The meaning of a name or a call in an expression.
#[derive(Clone, Debug)]
pub enum Reference {
    /// A variable, by its full name: of the environment, or bound by a macro. Also a type that only the checker knows,
    /// which has no value.
    Variable(Arc<str>),
    /// A type as a value.
    Type(Type),
    /// The overloads that a call may mean; which one, the arguments decide when it is evaluated.
    Overloads(Vec<&'static Overload>),
}

/// An expression whose types are known.
///
/// Its tree differs from the parsed one where a qualified name was resolved: `authorizer.requestResource` is one
/// identifier then, and `optional.of(x)` a call without receiver.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The tree.
    pub ast: Ast,
    /// The type of each node, by its number. Numbers that no node has are of the error type.
    pub types: Vec<Type>,
    /// The references of identifiers, calls and message literals, by the number of the node.
    pub references: Vec<Option<Reference>>,
}

impl Checked {
    /// The type of the whole expression.
    pub fn output_type(&self) -> &Type {
        self.type_of(self.ast.root.id)
    }

    /// The type of a node.
    pub fn type_of(&self, id: NodeId) -> &Type {
        self.types.get(id.index()).unwrap_or(&Type::Error)
    }

    /// The reference of a node.
    pub fn reference(&self, id: NodeId) -> Option<&Reference> {
        self.references.get(id.index()).and_then(Option::as_ref)
    }
}

/// The required result type of an expression, by its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResultType {
    /// Anything: a variable of a policy.
    Any,
    /// A validation or match condition.
    Bool,
    /// A message expression.
    String,
    /// An audit annotation.
    StringOrNull,
    /// An `applyConfiguration` of a mutation: `Object`.
    ApplyConfiguration,
    /// A `jsonPatch` of a mutation: a list of `JSONPatch`.
    JsonPatch,
}

impl ResultType {
    /// The API server's error if an expression has another type. A dynamic type counts as another one.
    pub fn refuses(self, output: &Type) -> Option<Issue> {
        let (fits, expected, help) = match self {
            Self::Any => return None,
            Self::Bool => (*output == Type::Bool, "bool", "compare it: `... == true`"),
            Self::String => (*output == Type::String, "string", "convert it: `string(...)`"),
            Self::StringOrNull => {
                (matches!(output, Type::String | Type::Null), "one of [string null_type]", "convert it: `string(...)`")
            }
            Self::ApplyConfiguration => (is_struct(output, OBJECT), OBJECT, "construct it: `Object{...}`"),
            Self::JsonPatch => (
                matches!(output, Type::List(of) if is_struct(of, JSON_PATCH)),
                "list(JSONPatch)",
                "construct it: `[JSONPatch{...}]`",
            ),
        };
        let message = format!("must evaluate to {expected} but got {}", output.declared());
        let mut issue = Issue::new(IssueKind::ResultType, Position::NONE, message);
        issue.help = Some(help.to_owned());
        (!fits).then_some(issue)
    }
}

fn is_struct(of: &Type, name: &str) -> bool {
    matches!(of, Type::Object(found) if **found == *name)
}

/// Checks a parsed expression.
///
/// # Errors
/// The errors in it, by position.
pub fn check(ast: Ast, environment: &Environment) -> Result<Checked, Vec<Issue>> {
    let checked = checker::Checker::new(&ast, environment).run(ast).map_err(arrange)?;
    let issues = validate::validate(&checked);
    if issues.is_empty() { Ok(checked) } else { Err(arrange(issues)) }
}

#[cfg(test)]
mod tests;
