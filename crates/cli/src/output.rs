//! Output of all commands.

use std::{
    collections::BTreeMap,
    io::{self, ErrorKind, Write},
};

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value as Json;

use crate::{
    capture,
    report::{self, Failure, Problem, Source},
};

/// Heading of options for output.
pub const OUTPUT: &str = "Output";

/// Prints to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    if capture::add(text, false) {
        return Ok(());
    }
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        // The reader has closed the pipe.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| could_not_print(&error)),
    }
}

/// Rows in the format of kubectl: three spaces between columns, and none at the end of a line.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default() + 3
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        cells.collect::<String>().trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// A number with a noun in the singular or plural.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A time span in the format of ages in kubectl, in its largest unit.
pub fn age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7_200 => format!("{}m", seconds / 60),
        seconds @ 7_200..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// The failure of output.
pub fn could_not_print(error: &dyn std::fmt::Display) -> Failure {
    Failure::CouldNotRun(vec![Problem::new(format!("cannot print: {error}"))])
}

/// The argument for the format of a result.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct FormatArgs {
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "human", help_heading = OUTPUT)]
    pub output: Format,
}

/// The format of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text, for people.
    #[value(aliases = ["table", "text"])]
    Human,
    /// One object, for programs.
    Json,
    /// The same object as YAML.
    Yaml,
}

impl FormatArgs {
    /// The result as text.
    ///
    /// # Errors
    /// It cannot be written as YAML.
    pub fn text(self, human: impl FnOnce() -> String, object: impl FnOnce() -> Json) -> Result<String, Failure> {
        match self.output {
            Format::Human => Ok(human()),
            Format::Json => Ok(format!("{:#}\n", object())),
            Format::Yaml => yaml(&[object()]).map_err(|error| could_not_print(&error)),
        }
    }
}

/// Objects as YAML documents.
pub fn yaml(objects: &[impl Serialize]) -> Result<String, serde_saphyr::ser::Error> {
    let documents = objects.iter().map(serde_saphyr::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(documents.join("---\n"))
}

/// Reports the objects of a file that the command ignored.
pub fn ignored(source: &Source, kinds: &[String], wanted: &str) {
    if kinds.is_empty() {
        return;
    }
    let mut counts = BTreeMap::<&str, usize>::new();
    for kind in kinds {
        *counts.entry(if kind.is_empty() { "without kind" } else { kind }).or_default() += 1;
    }
    let listed: Vec<_> = counts.iter().take(10).map(|(kind, count)| format!("{count} {kind}")).collect();
    let more = if counts.len() > listed.len() { ", ..." } else { "" };
    report::note(&format!(
        "note: {}: ignored documents that are not a {wanted}: {}{more}",
        source.name(),
        listed.join(", ")
    ));
}
