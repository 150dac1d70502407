//! The levels of rules: which ones are off, and which severity they have.

use std::{collections::BTreeMap, fmt};

use palisade_manifest::Severity;

use crate::Rule;

/// Annotation on an object: ids of rules, separated by commas, that do not count for it; `*` for all.
pub const IGNORE_ANNOTATION: &str = "toolsecurity.dev/lint-ignore";

/// The level of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It is off.
    Allow,
    /// Its findings are warnings.
    Warn,
    /// Its findings are errors.
    Deny,
}

/// The levels that differ from the rules' own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels(BTreeMap<&'static str, Level>);

/// An id that no rule has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRule {
    /// The id.
    pub id: String,
    /// The ids that rules have.
    pub known: Vec<&'static str>,
}

impl fmt::Display for UnknownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no rule has the id {:?} ({})", self.id, palisade_manifest::suggestion(&self.id, &self.known))
    }
}

impl std::error::Error for UnknownRule {}

impl Levels {
    /// Sets the level of a rule.
    pub fn set(&mut self, rule: &'static Rule, level: Level) {
        self.0.insert(rule.id, level);
    }

    /// The severity of a rule's findings, unless a finding has its own; None if the rule is off.
    pub fn of(&self, rule: &Rule) -> Option<Severity> {
        self.severity(rule, None)
    }

    /// The severity of a finding for which the rule itself gives `own`.
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
