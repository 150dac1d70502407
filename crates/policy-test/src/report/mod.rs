//! Reports of a run: for people, and for machines.

mod human;
mod machine;

use std::fmt;

use crate::{CaseResult, Status, coverage::Coverage, mutate::MutationReport};

pub use human::human;
pub use machine::{json, junit, tap};

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The suites, in the order of their files.
    pub suites: Vec<SuiteReport>,
    /// The coverage, if it was measured.
    pub coverage: Option<Coverage>,
    /// The outcomes of mutants, if there were any.
    pub mutation: Option<MutationReport>,
    /// The outcomes of mutants that only change the messages of denials.
    pub messages: Option<MutationReport>,
}

/// The results of a suite.
#[derive(Clone, Debug)]
pub struct SuiteReport {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// Notes for its author.
    pub notes: Vec<String>,
    /// Its cases, in order.
    pub results: Vec<CaseResult>,
}

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Human,
    /// JSON.
    Json,
    /// `JUnit` XML.
    Junit,
    /// Test Anything Protocol, version 14.
    Tap,
}

impl Report {
    /// How many cases passed, failed, and had no verdict.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for result in self.suites.iter().flat_map(|suite| &suite.results) {
            match result.status {
                Status::Passed => counts.passed += 1,
                Status::Failed(_) => counts.failed += 1,
                Status::NoVerdict(_) => counts.no_verdict += 1,
            }
        }
        counts
    }

    /// The report in a format; `verbose` lists passing cases to people, too.
    pub fn write(&self, format: Format, verbose: bool) -> String {
        match format {
            Format::Human => human(self, verbose),
            Format::Json => json(self),
            Format::Junit => junit(self),
            Format::Tap => tap(self),
        }
    }
}

/// Counts of cases by their result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// As expected.
    pub passed: usize,
    /// Not as expected.
    pub failed: usize,
    /// Without a verdict.
    pub no_verdict: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.no_verdict > 0 {
            write!(f, ", {} without a verdict", self.no_verdict)?;
        }
        Ok(())
    }
}

/// Why a case did not pass, in lines.
fn reasons(result: &CaseResult) -> Vec<String> {
    let mut lines = Vec::new();
    match &result.status {
        Status::Passed => return lines,
        Status::NoVerdict(why) => lines.push(format!("no verdict: {why}")),
        Status::Failed(differences) => {
            lines.extend(differences.iter().map(|one| {
                let (what, expected, got) = (&one.what, &one.expected, &one.got);
                format!("{what}: expected {expected}, got {got}")
            }));
            if differences.iter().all(|one| !one.got.contains(&result.answer) && !result.answer.contains(&one.got)) {
                lines.push(format!("the answer: {}", result.answer));
            }
        }
    }
    for why in &result.explanations {
        let of = if why.binding.is_empty() { String::new() } else { format!(" with binding {}", why.binding) };
        lines.push(format!("{}: policy {}{of}: {}", why.place, why.policy, why.path));
        lines.push(format!("    {}", why.source));
        lines.push(format!("    is {}", why.result));
        lines.extend(why.variables.iter().map(|(name, value)| format!("    where variables.{name} is {value}")));
    }
    // Texts from servers may have several lines.
    lines.iter().flat_map(|line| line.lines()).map(str::to_owned).collect()
}
