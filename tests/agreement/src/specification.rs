//! The tests of the CEL specification, beside what the API server's code and Palisade's answer.

use std::{collections::BTreeMap, fmt, path::Path};

use serde::Deserialize;
use serde_json::Value as Json;

use crate::{
    compare::{ExpressionOutcome, Subject},
    lines::{Error, Line, parse},
};

/// How a test ended, in the order of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    /// The value or error that the specification wants.
    Passed,
    /// Rejected, as by the API server, which does not have the function or the type.
    NotEnabled,
    /// Another value than the specification wants, and the same as the API server's.
    AsApiServer,
    /// Palisade says that it does not know.
    NoVerdict,
    /// The test has variables, messages or a setting of its own, which no policy has.
    NotExpressible,
    /// None of these: Palisade and the API server differ.
    Differs,
}

const COLUMNS: [(Ending, &str); 6] = [
    (Ending::Passed, "passed"),
    (Ending::NotEnabled, "not enabled"),
    (Ending::AsApiServer, "as API server"),
    (Ending::NoVerdict, "no verdict"),
    (Ending::NotExpressible, "not expressible"),
    (Ending::Differs, "differing"),
];

/// What the tests of the CEL specification gave.
#[derive(Debug, Default)]
pub struct Specification {
    files: BTreeMap<String, BTreeMap<Ending, usize>>,
    /// Where Palisade and the API server differ.
    pub differing: Vec<String>,
}

impl Specification {
    /// Compares the tests in a file that `oracle celspec` has written.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn compare(&mut self, subject: &mut Subject, path: &Path) -> Result<(), Error> {
        #[derive(Deserialize)]
        struct Test {
            id: String,
            skipped: Option<String>,
            spec: Option<String>,
        }
        for json in parse::<Json>(path)? {
            let content = |error| Error::Content { path: path.to_owned(), line: 0, error };
            let Test { id, skipped, spec } = Test::deserialize(&json).map_err(content)?;
            let ending = if skipped.is_some() {
                Ending::NotExpressible
            } else {
                let line = Line::deserialize(&json).map_err(content)?;
                let (ours, theirs) = (subject.outcome(&line), ExpressionOutcome::of(&line));
                let ending = ending(&spec.unwrap_or_default(), &ours, &theirs);
                if ending == Ending::Differs {
                    let expr = &line.expr;
                    self.differing.push(format!("{id}: {expr}\n  API server: {theirs:?}\n  Palisade:   {ours:?}"));
                }
                ending
            };
            let file = id.split('/').next().unwrap_or_default().to_owned();
            *self.files.entry(file).or_default().entry(ending).or_default() += 1;
        }
        Ok(())
    }
}

fn ending(spec: &str, ours: &ExpressionOutcome, theirs: &ExpressionOutcome) -> Ending {
    match (ours, theirs) {
        (ExpressionOutcome::NoVerdict, _) => Ending::NoVerdict,
        _ if ours != theirs => Ending::Differs,
        (ExpressionOutcome::Rejected, _) => Ending::NotEnabled,
        (ExpressionOutcome::Error(_), _) if spec == "error" => Ending::Passed,
        (ExpressionOutcome::Value(value), _) if value == spec => Ending::Passed,
        _ => Ending::AsApiServer,
    }
}

impl fmt::Display for Specification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut total: BTreeMap<Ending, usize> = BTreeMap::new();
        write!(f, "{:16} {:>6}", "", "tests")?;
        for (_, name) in COLUMNS {
            write!(f, " {name:>15}")?;
        }
        writeln!(f)?;
        for (name, counts) in &self.files {
            row(f, name, counts)?;
            for (ending, count) in counts {
                *total.entry(*ending).or_default() += count;
            }
        }
        row(f, "total", &total)?;
        self.differing.iter().try_for_each(|test| writeln!(f, "\n{test}"))
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, counts: &BTreeMap<Ending, usize>) -> fmt::Result {
    write!(f, "{name:16} {:>6}", counts.values().sum::<usize>())?;
    for (ending, _) in COLUMNS {
        write!(f, " {:>15}", counts.get(&ending).copied().unwrap_or_default())?;
    }
    writeln!(f)
}
