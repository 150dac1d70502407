//! `palisade lint`: finds errors in admission policies that the API server would reject or warn about, and risks that it
//! would accept.
//!
//! A rule is one file of [`catalogue`]. This crate is pure: no I/O, no clock, no environment.
//!
//! Each module uses only modules before it:
//!
//! 1. Rules and their levels: `rule`, `silence`, `extension`.
//! 2. Tools: `tree`, `loops`, `cost`, `presence`.
//! 3. The linted objects: `item`, `policy`, `reads`, `guards`, `scenario`, `discovery`, `cluster`.
//! 4. The findings: `finding`, `catalogue`.
#![warn(missing_docs)]

pub mod catalogue;
mod cluster;
mod cost;
mod discovery;
mod extension;
mod finding;
mod guards;
mod item;
mod loops;
mod policy;
mod presence;
mod reads;
mod rule;
mod scenario;
mod silence;
mod tree;

use std::{collections::BTreeMap, sync::Arc};

use palisade_cel::{Minor, Position};
use palisade_manifest::{Object, Problem, Severity, Source};

pub use catalogue::control_plane_writes;
pub use extension::{Extension, ExtensionFinding, ExtensionKind, NotMade};
pub use finding::Finding;
pub use rule::{Category, Rule};
pub use silence::{IGNORE_ANNOTATION, Level, Levels, UnknownRule};

use crate::{cluster::Cluster, finding::Findings};

/// How to lint.
#[derive(Clone, Debug)]
pub struct Options {
    /// The minor version of Kubernetes.
    pub minor: Minor,
    /// The levels that override the severity of rules.
    pub levels: Levels,
    /// The extension of a product.
    pub extension: Option<&'static dyn Extension>,
}

impl Default for Options {
    fn default() -> Self {
        Self { minor: Minor::DEFAULT, levels: Levels::default(), extension: None }
    }
}

impl Options {
    /// All rules.
    pub fn rules(&self) -> Vec<&'static Rule> {
        catalogue::all(self.extension)
    }

    /// The rule with an id.
    ///
    /// # Errors
    /// No rule has it.
    pub fn rule(&self, id: &str) -> Result<&'static Rule, UnknownRule> {
        let rules = self.rules();
        rules
            .iter()
            .copied()
            .find(|rule| rule.id == id)
            .ok_or_else(|| UnknownRule { id: id.to_owned(), known: rules.iter().map(|rule| rule.id).collect() })
    }
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// All findings, by place.
    pub findings: Vec<Finding>,
    /// How many objects were linted.
    pub objects: usize,
    /// How many were skipped, by kind.
    pub skipped: BTreeMap<String, usize>,
    /// How many findings annotations silence.
    pub silenced: usize,
}

impl Report {
    /// The highest severity of the findings.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// The finding that a text has no objects, or cannot be read.
pub fn unreadable(source: &Arc<Source>, problem: &Problem, options: &Options) -> Option<Finding> {
    let rule = options.rule("unreadable-object").ok()?;
    Some(Finding {
        rule,
        severity: options.levels.of(rule)?,
        message: problem.message().to_owned(),
        help: problem.advice().map(str::to_owned),
        object: String::new(),
        path: String::new(),
        source: Arc::clone(source),
        place: problem.place().map_or(0..0, |(_, place)| place),
        kinds: Vec::new(),
    })
}

/// Lints objects, as if a cluster had all of them.
pub fn lint(objects: &[Object<'_>], options: &Options) -> Report {
    let mut report = Report::default();
    let cluster = Cluster::new(objects, options, &mut report);
    let mut findings = Findings::new(options);
    for rule in options.rules().into_iter().filter(|rule| options.levels.of(rule).is_some()) {
        findings.of(rule);
        catalogue::check(rule, &cluster, &mut findings);
        for (item, ExtensionFinding { path, message, help, .. }) in
            cluster.of_extension.iter().filter(|(_, reported)| reported.rule.id == rule.id)
        {
            findings.add_at(item, path, Position::NONE, message, help.as_deref());
        }
    }
    report.silenced = findings.silenced;
    report.findings = findings.sorted();
    report
}
