//! How the parser reads tokens, and its messages about those that do not fit.

use super::{
    lexer::{Kind, Token, escape},
    parser::{Parser, Result, Stop},
};
use crate::{
    ast::Position,
    issue::{Issue, IssueKind},
};

impl<'a> Parser<'a> {
    pub(super) fn token(&self) -> Token<'a> {
        self.tokens[self.at]
    }

    pub(super) fn peek(&self, ahead: usize) -> Kind {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let token = self.token();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Takes the token if it is `text`.
    pub(super) fn take(&mut self, text: &'static str) -> Option<Token<'a>> {
        (self.peek(0) == Kind::Fixed(text)).then(|| self.next())
    }

    pub(super) fn expect(&mut self, text: &'static str, expected: &str) -> Result<Token<'a>> {
        match self.take(text) {
            Some(token) => Ok(token),
            None => Err(self.mismatch(expected)),
        }
    }

    pub(super) fn mismatch(&mut self, expected: &str) -> Stop {
        let token = self.token();
        self.syntax_error(token, format!("mismatched input '{}' expecting {expected}", escape(token.text)))
    }

    pub(super) fn syntax_error(&mut self, token: Token<'_>, message: impl std::fmt::Display) -> Stop {
        self.issues.push(Issue::new(IssueKind::Syntax, token.position, format!("Syntax error: {message}")));
        Stop
    }

    /// ANTLR's message if no rule that begins with `first` continues with this token.
    pub(super) fn no_alternative(&self, first: Token<'_>) -> String {
        let last = self.token();
        let end = if last.kind == Kind::End { first.start + first.text.len() } else { last.start + last.text.len() };
        format!("no viable alternative at input '{}'", escape(&self.source[first.start..end]))
    }

    pub(super) fn limit(&mut self, message: String) -> Stop {
        self.issues.push(Issue::new(IssueKind::Limit, Position::NONE, message));
        Stop
    }

    /// How many issues there are, for [`Self::forget`].
    pub(super) fn mark(&self) -> usize {
        self.issues.len()
    }

    /// Drops the issues since a mark.
    pub(super) fn forget(&mut self, mark: usize) {
        self.issues.truncate(mark);
    }

    /// The source must end here.
    pub(super) fn end(&mut self) -> Result<()> {
        let token = self.token();
        if token.kind == Kind::End {
            return Ok(());
        }
        let what = if self.peek(1) == Kind::End { "extraneous" } else { "mismatched" };
        Err(self.syntax_error(token, format!("{what} input '{}' expecting <EOF>", escape(token.text))))
    }
}
