//! The findings of rules.

use std::{ops::Range, sync::Arc};

use palisade_cel::Position;
use palisade_manifest::{Problem, Severity, Source};

use crate::{Options, Rule, item::Item};

/// One finding of a rule.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// The severity.
    pub severity: Severity,
    /// The message.
    pub message: String,
    /// Advice.
    pub help: Option<String>,
    /// The object, as `ValidatingAdmissionPolicy/name`.
    pub object: String,
    /// The path in the object.
    pub path: String,
    /// The file.
    pub source: Arc<Source>,
    /// The bytes in the file.
    pub place: Range<usize>,
    /// The kinds of objects that it concerns, as `apps/v1 Deployment`; empty if it concerns all of them.
    pub kinds: Vec<String>,
}

impl Finding {
    /// The finding as a problem to report.
    pub fn problem(&self) -> Problem {
        let problem = Problem::new(format!("{} [{}]", self.message, self.rule.id)).severe(self.severity);
        let problem = problem.at(&self.source, self.place.clone());
        match &self.help {
            Some(help) => problem.help(help.clone()),
            None => problem,
        }
    }
}

/// An error that a rule has found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The path in the object.
    pub path: String,
    /// The place in the expression at that path, if an expression is there.
    pub position: Position,
    /// The message.
    pub message: String,
    /// Advice.
    pub help: Option<String>,
    /// The severity, if it differs from the rule's severity.
    pub severity: Option<Severity>,
    /// The kinds of objects that it concerns.
    pub kinds: Vec<String>,
}

impl Default for Found {
    fn default() -> Self {
        Self {
            path: String::new(),
            position: Position::NONE,
            message: String::new(),
            help: None,
            severity: None,
            kinds: Vec::new(),
        }
    }
}

/// Collects the findings of a rule.
pub(crate) struct Findings<'a> {
    options: &'a Options,
    rule: Option<&'static Rule>,
    found: Vec<Finding>,
    pub(crate) silenced: usize,
}

impl<'a> Findings<'a> {
    pub(crate) fn new(options: &'a Options) -> Self {
        Self { options, rule: None, found: Vec::new(), silenced: 0 }
    }

    /// Sets the rule of the next findings.
    pub(crate) fn of(&mut self, rule: &'static Rule) {
        self.rule = Some(rule);
    }

    /// Reports an error at a path of an object.
    pub(crate) fn add(&mut self, item: &Item<'_>, path: &str, message: impl Into<String>) {
        self.add_at(item, path, Position::NONE, message, None);
    }

    /// As [`Self::add`], with advice.
    pub(crate) fn advise(&mut self, item: &Item<'_>, path: &str, message: impl Into<String>, help: &str) {
        self.add_at(item, path, Position::NONE, message, Some(help));
    }

    /// Reports an error at a place in an expression.
    pub(crate) fn add_at(
        &mut self,
        item: &Item<'_>,
        path: &str,
        position: Position,
        message: impl Into<String>,
        help: Option<&str>,
    ) {
        let help = help.map(str::to_owned);
        self.put(item, Found { path: path.to_owned(), position, message: message.into(), help, ..Found::default() });
    }

    /// Reports an error.
    pub(crate) fn put(&mut self, item: &Item<'_>, of: Found) {
        let Some(rule) = self.rule else { return };
        let Some(severity) = self.options.levels.severity(rule, of.severity) else { return };
        if item.silences(rule.id) {
            self.silenced += 1;
            return;
        }
        let (place, message) = item.place(&of.path, of.position, of.message);
        let finding = Finding {
            rule,
            severity,
            message,
            help: of.help,
            object: item.label(),
            path: of.path,
            source: Arc::clone(item.object.source),
            place,
            kinds: of.kinds,
        };
        self.found.push(finding);
    }

    /// Reports an unknown field, at its key and not at its value.
    pub(crate) fn unknown(&mut self, item: &Item<'_>, path: &str, help: &str) {
        let place = item.object.node.key_place(path);
        self.add_place(item, place, &format!("{path}: unknown field"), Some(help));
    }

    /// Reports an error at a place in the file.
    pub(crate) fn add_place(&mut self, item: &Item<'_>, place: Range<usize>, message: &str, help: Option<&str>) {
        let before = self.found.len();
        self.add_at(item, "", Position::NONE, message, help);
        for finding in &mut self.found[before..] {
            finding.place = place.clone();
        }
    }

    /// All findings, by file and place, without repetitions.
    pub(crate) fn sorted(self) -> Vec<Finding> {
        let mut found = self.found;
        // Stable: findings at one place stay in the order of the catalogue, and files in that of the input.
        found.sort_by(|a, b| a.source.name().cmp(b.source.name()).then(a.place.start.cmp(&b.place.start)));
        found.dedup_by(|a, b| {
            a.rule.id == b.rule.id && a.message == b.message && a.place == b.place && Arc::ptr_eq(&a.source, &b.source)
        });
        found
    }
}
