//! What the user is told, on standard error.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
    ops::Range,
    process::ExitCode,
    rc::Rc,
};

use miette::{
    Diagnostic, LabeledSpan, MietteError, MietteHandlerOpts, ReportHandler, Severity, SourceCode, SourceSpan,
    SpanContents,
};

/// Excerpts of longer lines hide what they show.
const MAX_LINE: usize = 1000;
/// Messages quote the file, and a name in a file may be as long as the file.
const MAX_TEXT: usize = 2000;
/// Who has more to mend runs again.
const MAX_PROBLEMS: usize = 50;

/// Why there is no output.
#[derive(Debug)]
pub enum Failure {
    /// Exit code 1: a profile is wrong.
    Wrong(Vec<Problem>),
    /// Exit code 2: no profile could be judged.
    CouldNotRun(Vec<Problem>),
}

/// A text that excerpts are taken from.
pub struct Source {
    name: String,
    text: String,
    /// The text without what a terminal would obey, each byte in its place.
    shown: String,
}

impl Source {
    /// A text with the name to show for it.
    pub fn new(name: &str, text: String) -> Self {
        let shown = text.chars().map(harmless).collect();
        Self { name: one_line(name), text, shown }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The line and column of a byte, from 1.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..self.text.floor_char_boundary(offset)];
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line..].chars().count() + 1)
    }

    /// Whether the lines around a byte are short enough to be shown.
    fn can_show(&self, offset: usize) -> bool {
        let (before, after) = self.text.as_bytes().split_at(offset);
        let longest = |lines: &mut dyn Iterator<Item = usize>| lines.take(2).max().unwrap_or_default();
        let before = longest(&mut before.rsplit(|&b| b == b'\n').map(<[u8]>::len));
        let after = longest(&mut after.split(|&b| b == b'\n').map(<[u8]>::len));
        before.max(after) <= MAX_LINE
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl SourceCode for Source {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let found = self.shown.as_str().read_span(span, before, after)?;
        let (line, column, lines) = (found.line(), found.column(), found.line_count());
        let contents =
            miette::MietteSpanContents::new_named(self.name.clone(), found.data(), *found.span(), line, column, lines);
        Ok(Box::new(contents))
    }
}

/// One thing to tell the user, with its place.
#[derive(Debug)]
pub struct Problem {
    message: String,
    help: Option<String>,
    place: Option<(Rc<Source>, Range<usize>)>,
    severity: Severity,
}

impl Problem {
    /// A problem without a place.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: one_line(&message.into()), help: None, place: None, severity: Severity::Error }
    }

    /// Something to look at, with which the result is good all the same.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::new(message) }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(one_line(&help.into()));
        self
    }

    /// Adds where it stands.
    #[must_use]
    pub fn at(mut self, source: &Rc<Source>, place: Range<usize>) -> Self {
        self.place = Some((Rc::clone(source), place));
        self
    }

    /// The problem as it can be shown: pointing at something on one line, or naming its place in the message.
    fn settled(&self) -> Self {
        let Self { message, help, place, severity } = self;
        let (message, help, severity) = (message.clone(), help.clone(), *severity);
        let Some((source, place)) = place else { return Self { message, help, place: None, severity } };
        let text = source.text();
        // The end of a file is after its last line, where there is nothing to point at.
        let start = text.floor_char_boundary(place.start.min(text.trim_end().len()));
        let line = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let end = text.floor_char_boundary(place.end.clamp(start, line));
        if source.can_show(start) && !text.is_empty() {
            return Self { message, help, place: Some((Rc::clone(source), start..end)), severity };
        }
        let (line, column) = source.position(start);
        Self { message: format!("{}:{line}:{column}: {message}", source.name), help, place: None, severity }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.place.as_ref().map(|(source, _)| &**source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (_, place) = self.place.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::new(None, place.start, place.len()))))
    }
}

/// Tells what went wrong, if anything did.
pub fn exit(result: Result<(), Failure>) -> ExitCode {
    let (problems, code) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Wrong(problems)) => (problems, 1),
        Err(Failure::CouldNotRun(problems)) => (problems, 2),
    };
    tell(&problems);
    ExitCode::from(code)
}

/// Tells of problems, the first of them if they are many.
pub fn tell(problems: &[Problem]) {
    let mut text = String::new();
    for problem in problems.iter().take(MAX_PROBLEMS) {
        text.push_str(&rendered(problem));
        text.push('\n');
    }
    if let Some(more) = problems.len().checked_sub(MAX_PROBLEMS).filter(|&more| more > 0) {
        let _ = fmt::Write::write_fmt(&mut text, format_args!("and {more} more\n"));
    }
    say(&text);
}

/// Says something that is no failure.
pub fn note(text: &str) {
    say(&format!("{}\n", one_line(text)));
}

/// Where nobody listens, nothing is said.
fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

fn rendered(problem: &Problem) -> String {
    struct Shown<'a>(&'a Problem, Box<dyn ReportHandler>);
    impl fmt::Display for Shown<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.1.debug(self.0, f)
        }
    }
    let mut options = MietteHandlerOpts::new().context_lines(1).terminal_links(false);
    if !io::stderr().is_terminal() {
        // Logs and tests get the same bytes everywhere, one line for one message.
        options = options.unicode(false).color(false).wrap_lines(false).width(200);
    }
    Shown(&problem.settled(), Box::new(options.build())).to_string()
}

/// One line of bounded length without what a terminal would obey.
fn one_line(text: &str) -> String {
    let end = text.char_indices().nth(MAX_TEXT).map_or(text.len(), |(end, _)| end);
    let mut line: String =
        text[..end].chars().map(|c| if c == '\n' || c == '\t' { ' ' } else { harmless(c) }).collect();
    if end < text.len() {
        line.push_str("...");
    }
    line
}

/// The character, or one of as many bytes if a terminal would obey it or a reader be misled by it.
pub fn harmless(c: char) -> char {
    match c {
        '\n' | '\t' => c,
        '\0'..='\x1f' | '\x7f' => ' ',
        '\u{80}'..='\u{9f}' => '\u{a0}',
        '\u{61c}' => '\u{bf}',
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => '\u{fffd}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements_keep_their_places() {
        for c in
            ['\n', '\t', '\r', '\x1b', '\x7f', '\u{9b}', '\u{61c}', '\u{200b}', '\u{202e}', '\u{2069}', '\u{feff}', 'ü']
        {
            assert_eq!(harmless(c).len_utf8(), c.len_utf8(), "{c:?}");
        }
    }

    #[test]
    fn any_place_can_be_shown() {
        for text in ["", "\n", "a", "ü\nü", "a\r\n\r\n", "\u{1b}[31m", &"x".repeat(5000)] {
            let source = Rc::new(Source::new("f", text.to_owned()));
            for start in 0..8 {
                for end in start..9 {
                    assert!(rendered(&Problem::new("wrong").at(&source, start..end)).contains("wrong"));
                }
            }
        }
    }

    #[test]
    fn a_place_is_shown_or_named() {
        let short = Rc::new(Source::new("f", "a: 1\nb: 2\n".to_owned()));
        assert!(rendered(&Problem::new("wrong").at(&short, 8..9)).contains("f:2:4"));
        let long = Rc::new(Source::new("f", format!("a: {}", "x".repeat(5000))));
        let shown = rendered(&Problem::new("wrong").at(&long, 3..9));
        assert!(shown.contains("f:1:4: wrong") && shown.len() < 100, "{shown}");
    }
}
