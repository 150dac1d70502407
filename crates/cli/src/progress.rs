//! Progress of long work: one line on a terminal that is overwritten, and nothing in a pipe.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _},
};

use crate::{capture, report};

/// Width of the bar in characters.
const WIDTH: usize = 24;
/// Clears the current line (ECMA-48: EL).
const CLEAR: &str = "\r\u{1b}[K";

/// The progress.
#[derive(Debug)]
pub struct Progress {
    shown: bool,
    /// The line on the terminal.
    line: String,
}

impl Progress {
    /// On standard error, if it is a terminal.
    pub fn new() -> Self {
        Self { shown: io::stderr().is_terminal() && !capture::is_kept(), line: String::new() }
    }

    /// Nowhere.
    pub fn none() -> Self {
        Self { shown: false, line: String::new() }
    }

    /// Shows how many items are done, and their total if it is known.
    pub fn show(&mut self, what: &str, done: usize, of: Option<usize>) {
        if self.shown {
            let line = line(what, done, of);
            if line != self.line {
                report::say(&format!("{CLEAR}{line}"));
                self.line = line;
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            report::say(CLEAR);
        }
    }
}

fn line(what: &str, done: usize, of: Option<usize>) -> String {
    let mut line = format!("{what}: {done}");
    if let Some(of) = of.filter(|of| *of > 0) {
        let full = (done.min(of) * WIDTH) / of;
        let _ = write!(line, " of {of} [{}{}]", "#".repeat(full), " ".repeat(WIDTH - full));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_work_is_done() {
        assert_eq!(line("pods", 500, None), "pods: 500");
        assert_eq!(line("pods", 500, Some(1000)), format!("pods: 500 of 1000 [{}{}]", "#".repeat(12), " ".repeat(12)));
        assert_eq!(line("pods", 3, Some(2)), format!("pods: 3 of 2 [{}]", "#".repeat(24)));
        assert_eq!(line("pods", 0, Some(0)), "pods: 0");
    }
}
