//! Which rules count.

use std::{collections::BTreeMap, fmt};

use palisade_manifest::Severity;

use crate::Rule;

/// Annotation on an object: ids of rules, separated by commas, that do not count for it; `*` for all.
pub const IGNORE_ANNOTATION: &str = "toolsecurity.dev/lint-ignore";

/// How much a rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Not at all.
    Allow,
    /// As a warning.
    Warn,
    /// As an error.
    Deny,
}

/// Which rules count otherwise than they say themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels(BTreeMap<&'static str, Level>);

/// An id that no rule has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRule {
    /// The id.
    pub id: String,
    /// Those that rules have.
    pub known: Vec<&'static str>,
}

impl fmt::Display for UnknownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no rule has the id {:?} ({})", self.id, palisade_manifest::suggestion(&self.id, &self.known))
    }
}

impl std::error::Error for UnknownRule {}

impl Levels {
    /// Says how much a rule counts.
    pub fn set(&mut self, rule: &'static Rule, level: Level) {
        self.0.insert(rule.id, level);
    }

    /// How bad what a rule finds is, unless it says otherwise itself; None if it does not count.
    pub fn of(&self, rule: &Rule) -> Option<Severity> {
        self.severity(rule, None)
    }

    /// How bad something is that a rule finds, and that it says itself to be as bad as `own`.
    pub(crate) fn severity(&self, rule: &Rule, own: Option<Severity>) -> Option<Severity> {
        match self.0.get(rule.id) {
            None => Some(own.unwrap_or(rule.severity)),
            Some(Level::Allow) => None,
            Some(Level::Warn) => Some(Severity::Warning),
            Some(Level::Deny) => Some(Severity::Error),
        }
    }
}

/// The ids in an annotation.
pub(crate) fn ids(annotation: &str) -> impl Iterator<Item = &str> {
    annotation.split(',').map(str::trim).filter(|id| !id.is_empty())
}
