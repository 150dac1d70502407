//! What all commands print in the same way.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    io::{self, ErrorKind, Write},
};

use serde::Serialize;

use crate::report::{self, Failure, Problem, Source};

thread_local! {
    /// What is printed and said by this thread, if it is kept.
    static KEPT: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// Keeps what is printed and said from now on.
pub fn keep() {
    KEPT.replace(Some(Default::default()));
}

/// What was printed and said since.
pub fn kept() -> (String, String) {
    KEPT.take().unwrap_or_default()
}

/// Whether it is kept.
pub fn is_kept() -> bool {
    KEPT.with_borrow(Option::is_some)
}

/// Adds to what is kept, if anything is: printed, or said besides.
pub fn add(text: &str, said: bool) -> bool {
    KEPT.with_borrow_mut(|kept| match kept {
        Some((out, err)) => {
            if said { err } else { out }.push_str(text);
            true
        }
        None => false,
    })
}

/// Prints the result.
pub fn print(text: &str) -> Result<(), Failure> {
    if add(text, false) {
        return Ok(());
    }
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| could_not_print(&error)),
    }
}

/// The failure to print.
pub fn could_not_print(error: &dyn std::fmt::Display) -> Failure {
    Failure::CouldNotRun(vec![Problem::new(format!("cannot print: {error}"))])
}

/// Objects as documents of YAML.
pub fn yaml(objects: &[impl Serialize]) -> Result<String, serde_saphyr::ser::Error> {
    let documents = objects.iter().map(serde_saphyr::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(documents.join("---\n"))
}

/// Says what of a file was not looked at.
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
    report::note(&format!("note: {}: ignored what is not a {wanted}: {}{more}", source.name(), listed.join(", ")));
}
