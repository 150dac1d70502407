//! Errors in an expression, before it is evaluated.

use std::fmt;

use crate::ast::Position;

/// The kind of an error.
///
/// The kinds of the type checker are those of cel-go `checker/errors.go`, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IssueKind {
    /// Text that is not CEL.
    Syntax,
    /// An argument of a macro that is not of the right form.
    Macro,
    /// A limit of the parser that is exceeded: size, depth.
    Limit,
    /// A field initializer of another type than the field.
    FieldTypeMismatch,
    /// A call whose arguments fit no overload.
    NoMatchingOverload,
    /// A macro over something that is neither list, map nor dynamic.
    NotARange,
    /// `.?` or `[?` where it is not possible.
    OptionalSelection,
    /// `X{}` where X is not a type.
    NotAType,
    /// `X{}` where X is not a message type.
    NotAMessageType,
    /// A selection from a type without fields.
    NoFieldSelection,
    /// A value of another type than its place demands.
    TypeMismatch,
    /// A field that the type does not have.
    UndefinedField,
    /// A variable, type or function that is not declared.
    UndeclaredReference,
    /// A selection from a type without declared fields.
    FailedResolution,
    /// A literal argument that its function rejects (`duration('x')`).
    InvalidLiteral,
    /// The result is of another type than its use demands.
    ResultType,
    /// A constant part of the expression fails when it is evaluated ahead of time.
    Fold,
    /// Something that this crate cannot evaluate. It is never a "yes".
    Unsupported,
}

impl IssueKind {
    /// A short name that does not change, for machines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Macro => "macro",
            Self::Limit => "limit",
            Self::FieldTypeMismatch => "field-type-mismatch",
            Self::NoMatchingOverload => "no-matching-overload",
            Self::NotARange => "not-a-range",
            Self::OptionalSelection => "optional-selection",
            Self::NotAType => "not-a-type",
            Self::NotAMessageType => "not-a-message-type",
            Self::NoFieldSelection => "not-selectable",
            Self::TypeMismatch => "type-mismatch",
            Self::UndefinedField => "undefined-field",
            Self::UndeclaredReference => "undeclared-reference",
            Self::FailedResolution => "failed-resolution",
            Self::InvalidLiteral => "invalid-literal",
            Self::ResultType => "return-type",
            Self::Fold => "program",
            Self::Unsupported => "unsupported",
        }
    }
}

/// One error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The kind.
    pub kind: IssueKind,
    /// Where cel-go reports it.
    pub position: Position,
    /// cel-go's message; the texts of syntax errors may differ.
    pub message: String,
    /// A suggestion for the author.
    pub help: Option<String>,
}

impl Issue {
    /// An issue without help.
    pub fn new(kind: IssueKind, position: Position, message: impl Into<String>) -> Self {
        Self { kind, position, message: message.into(), help: None }
    }

    /// The issue as cel-go prints it, with the line that it is in (`common/error.go`).
    pub fn display<'a>(&'a self, source: &'a str) -> impl fmt::Display + 'a {
        DisplayIssue { issue: self, source }
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.position, self.message)
    }
}

/// The most issues that cel-go keeps of one expression.
pub(crate) const MAX_ISSUES: usize = 100;

/// Sorts and truncates as cel-go does before it prints (`common/errors.go`).
pub(crate) fn arrange(mut issues: Vec<Issue>) -> Vec<Issue> {
    issues.truncate(MAX_ISSUES);
    issues.sort_by_key(|issue| issue.position);
    issues
}

struct DisplayIssue<'a> {
    issue: &'a Issue,
    source: &'a str,
}

/// Longer lines are not shown.
const MAX_SNIPPET: usize = 16_384;

impl fmt::Display for DisplayIssue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.issue.position;
        write!(f, "ERROR: <input>:{}: {}", self.issue.position, self.issue.message)?;
        let snippet = (!self.source.is_empty() && line > 0).then(|| self.source.split('\n').nth(line - 1)).flatten();
        let Some(snippet) = snippet.filter(|snippet| snippet.len() <= MAX_SNIPPET) else { return Ok(()) };
        let snippet = snippet.replace('\t', " ");
        write!(f, "\n | {snippet}\n | ")?;
        let mut chars = snippet.chars();
        for c in chars.by_ref().take(column.saturating_sub(1)) {
            f.write_str(if c.len_utf8() > 1 { "．" } else { "." })?;
        }
        f.write_str(if chars.next().is_some_and(|c| c.len_utf8() > 1) { "＾" } else { "^" })
    }
}
