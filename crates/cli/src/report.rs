//! Messages on standard error.

use std::{
    fmt,
    io::{self, Write},
};

use miette::{
    Diagnostic, LabeledSpan, MietteError, MietteHandlerOpts, ReportHandler, SourceCode, SourceSpan, SpanContents,
};
use palisade_manifest::Severity;
pub use palisade_manifest::{Problem, Source, harmless, one_line};

use crate::{capture, style::Style};

/// The maximum number of problems of one run.
const MAX_PROBLEMS: usize = 50;

/// The reason why there is no output.
#[derive(Debug)]
pub enum Failure {
    /// Exit code 1: a profile is invalid.
    Wrong(Vec<Problem>),
    /// Exit code 2: no profile could be evaluated.
    CouldNotRun(Vec<Problem>),
}

impl Failure {
    /// The same as a reason not to run, for commands with another meaning of exit code 1.
    pub fn fatal(self) -> Self {
        match self {
            Self::Wrong(problems) | Self::CouldNotRun(problems) => Self::CouldNotRun(problems),
        }
    }
}

impl fmt::Display for Failure {
    /// Its first problem.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Wrong(problems) | Self::CouldNotRun(problems)) = self;
        problems.first().map_or(Ok(()), |first| first.fmt(f))
    }
}

/// Both results, or the problems of either.
///
/// # Errors
/// The problems of one, or of both.
pub fn both<A, B>(one: Result<A, Failure>, other: Result<B, Failure>) -> Result<(A, B), Failure> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(Failure::CouldNotRun(mut problems)), Err(Failure::CouldNotRun(more))) => {
            problems.extend(more);
            Err(Failure::CouldNotRun(problems))
        }
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    }
}

/// A problem in the format of miette.
#[derive(Debug)]
struct RenderedProblem(Problem);

impl fmt::Display for RenderedProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for RenderedProblem {}

impl Diagnostic for RenderedProblem {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.0.severity() {
            Severity::Info => miette::Severity::Advice,
            Severity::Warning => miette::Severity::Warning,
            Severity::Error => miette::Severity::Error,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.advice().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.place().map(|_| self as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (_, place) = self.0.place()?;
        Some(Box::new(std::iter::once(LabeledSpan::new(None, place.start, place.len()))))
    }
}

impl SourceCode for RenderedProblem {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let (source, _) = self.0.place().ok_or(MietteError::OutOfBounds)?;
        let found = source.shown().read_span(span, before, after)?;
        let (line, column, lines) = (found.line(), found.column(), found.line_count());
        let name = source.name().to_owned();
        let contents = miette::MietteSpanContents::new_named(name, found.data(), *found.span(), line, column, lines);
        Ok(Box::new(contents))
    }
}

/// Reports the failure, if any. Returns the exit code.
pub fn exit(result: Result<(), Failure>) -> u8 {
    let (problems, code) = match result {
        Ok(()) => return 0,
        Err(Failure::Wrong(problems)) => (problems, 1),
        Err(Failure::CouldNotRun(problems)) => (problems, 2),
    };
    tell(&problems);
    code
}

/// Reports problems: the first ones, and the number of the others.
pub fn tell(problems: &[Problem]) {
    let mut text = String::new();
    for problem in problems.iter().take(MAX_PROBLEMS) {
        text.push_str(&rendered(problem, Style::of(&io::stderr())));
        text.push('\n');
    }
    if let Some(more) = problems.len().checked_sub(MAX_PROBLEMS).filter(|&more| more > 0) {
        let _ = fmt::Write::write_fmt(&mut text, format_args!("and {more} more\n"));
    }
    say(&text);
}

/// Reports a note.
pub fn note(text: &str) {
    say(&format!("{}\n", one_line(text)));
}

/// Writes to standard error, even if it has no reader.
pub fn say(text: &str) {
    if capture::add(text, true) {
        return;
    }
    let _ = io::stderr().write_all(text.as_bytes());
}

/// A problem with an excerpt.
pub fn rendered(problem: &Problem, style: Style) -> String {
    struct Report(RenderedProblem, Box<dyn ReportHandler>);
    impl fmt::Display for Report {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.1.debug(&self.0, f)
        }
    }
    let mut options = MietteHandlerOpts::new().context_lines(1).terminal_links(false).color(style.color);
    if !style.terminal {
        // Logs and tests get the same bytes everywhere, with one line for each message.
        options = options.unicode(false).wrap_lines(false).width(200);
    }
    Report(RenderedProblem(problem.settled()), Box::new(options.build())).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn any_source_range_can_be_rendered() {
        for text in ["", "\n", "a", "ü\nü", "a\r\n\r\n", "\u{1b}[31m", &"x".repeat(5000)] {
            let source = Arc::new(Source::new("f", text.to_owned()));
            for start in 0..8 {
                for end in start..9 {
                    assert!(rendered(&Problem::new("wrong").at(&source, start..end), Style::PLAIN).contains("wrong"));
                }
            }
        }
    }

    #[test]
    fn very_long_line_is_named_instead_of_shown() {
        let short = Arc::new(Source::new("f", "a: 1\nb: 2\n".to_owned()));
        assert!(rendered(&Problem::new("wrong").at(&short, 8..9), Style::PLAIN).contains("f:2:4"));
        let long = Arc::new(Source::new("f", format!("a: {}", "x".repeat(5000))));
        let shown = rendered(&Problem::new("wrong").at(&long, 3..9), Style::PLAIN);
        assert!(shown.contains("f:1:4: wrong") && shown.len() < 100, "{shown}");
    }
}
