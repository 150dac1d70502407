//! Documents that are laid out to a width (P. Wadler, "A prettier printer"; the rules are those of prettier).

use super::{Printed, Verbatim};

/// A text with places where lines may break.
#[derive(Clone, Debug)]
pub(super) enum Doc {
    /// Text on one line.
    Text(String),
    /// A space, or a line break.
    Line,
    /// Nothing, or a line break.
    Soft,
    /// One after another.
    All(Vec<Doc>),
    /// Lines that begin within it are indented by so much more.
    Indent(usize, Box<Doc>),
    /// Breaks at all of its places, or at none.
    Group(Box<Doc>),
    /// Parts with spaces between them, of which those become line breaks that must.
    Fill(Vec<Doc>),
    /// The verbatim text of this index.
    Verbatim(usize),
}

/// The text of this.
pub(super) fn text(text: impl Into<String>) -> Doc {
    Doc::Text(text.into())
}

/// A group of these.
pub(super) fn group(parts: Vec<Doc>) -> Doc {
    Doc::Group(Box::new(Doc::All(parts)))
}

/// These, indented by two.
pub(super) fn indent(parts: Vec<Doc>) -> Doc {
    Doc::Indent(2, Box::new(Doc::All(parts)))
}

/// Brackets and their content, which is on lines of its own if it is broken.
pub(super) fn bracketed(open: impl Into<String>, inner: Vec<Doc>, close: &str) -> Doc {
    let mut parts = vec![Doc::Soft];
    parts.extend(inner);
    group(vec![text(open), indent(parts), Doc::Soft, text(close)])
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Flat,
    Broken,
}

/// A remaining step of the printer.
#[derive(Clone, Copy)]
enum Task<'a> {
    Print(usize, Mode, &'a Doc),
    /// The parts of a fill after the first.
    Fill(usize, &'a [Doc]),
}

pub(super) fn render(doc: &Doc, width: usize, verbatim: &[Verbatim<'_>]) -> Printed {
    let mut printer = Printer { out: String::new(), column: 0, width, line: 1, lines: vec![0; verbatim.len()] };
    let mut tasks = vec![Task::Print(0, Mode::Broken, doc)];
    while let Some(task) = tasks.pop() {
        match task {
            Task::Print(indent, mode, doc) => printer.print(indent, mode, doc, &mut tasks, verbatim),
            Task::Fill(indent, parts) => printer.fill(indent, parts, &mut tasks),
        }
    }
    Printed { text: printer.out, lines: printer.lines }
}

struct Printer {
    out: String,
    /// How many characters the last line has.
    column: usize,
    width: usize,
    /// The number of the last line.
    line: usize,
    lines: Vec<usize>,
}

impl Printer {
    fn write(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn newline(&mut self, indent: usize) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.line += 1;
        self.column = indent;
    }

    fn print<'a>(
        &mut self,
        indent: usize,
        mode: Mode,
        doc: &'a Doc,
        tasks: &mut Vec<Task<'a>>,
        verbatim: &[Verbatim<'_>],
    ) {
        match doc {
            Doc::Text(text) => self.write(text),
            Doc::Line if mode == Mode::Flat => self.write(" "),
            Doc::Soft if mode == Mode::Flat => {}
            Doc::Line | Doc::Soft => self.newline(indent),
            Doc::All(parts) => tasks.extend(parts.iter().rev().map(|part| Task::Print(indent, mode, part))),
            Doc::Indent(more, inner) => tasks.push(Task::Print(indent + more, mode, inner)),
            Doc::Group(inner) => {
                let mode = if mode == Mode::Flat { mode } else { self.mode(inner, tasks) };
                tasks.push(Task::Print(indent, mode, inner));
            }
            Doc::Fill(parts) => {
                let Some((first, rest)) = parts.split_first() else { return };
                if mode == Mode::Flat {
                    for part in rest.iter().rev() {
                        tasks.extend([Task::Print(indent, mode, part), Task::Print(indent, mode, &Doc::Line)]);
                    }
                    tasks.push(Task::Print(indent, mode, first));
                    return;
                }
                tasks.push(Task::Fill(indent, rest));
                let mode = self.mode(first, tasks);
                tasks.push(Task::Print(indent, mode, first));
            }
            Doc::Verbatim(index) => {
                let text = verbatim[*index].text.trim_end();
                self.write("(");
                self.newline(0);
                self.lines[*index] = self.line;
                self.out.push_str(text);
                self.line += text.matches('\n').count();
                self.newline(indent);
                self.write(")");
            }
        }
    }

    fn fill<'a>(&mut self, indent: usize, parts: &'a [Doc], tasks: &mut Vec<Task<'a>>) {
        let Some((part, rest)) = parts.split_first() else { return };
        tasks.push(Task::Fill(indent, rest));
        self.column += 1;
        let fits = self.mode(part, tasks) == Mode::Flat;
        self.column -= 1;
        if fits {
            self.write(" ");
        } else {
            self.newline(indent);
        }
        let mode = self.mode(part, tasks);
        tasks.push(Task::Print(indent, mode, part));
    }

    /// Flat if the document fits on the line, with what comes after it up to where a line can break.
    fn mode(&self, doc: &Doc, tasks: &[Task<'_>]) -> Mode {
        let Some(mut left) = self.width.checked_sub(self.column) else { return Mode::Broken };
        let mut after = tasks.iter().rev();
        let mut next = vec![(Mode::Flat, doc)];
        loop {
            let (mode, doc) = match next.pop() {
                Some(one) => one,
                None => match after.next() {
                    Some(Task::Fill(_, [])) => continue,
                    None | Some(Task::Fill(..)) => return Mode::Flat,
                    Some(Task::Print(_, mode, doc)) => (*mode, *doc),
                },
            };
            let width = match doc {
                Doc::Text(text) => text.chars().count(),
                Doc::Line | Doc::Soft | Doc::Verbatim(_) if mode == Mode::Broken => return Mode::Flat,
                Doc::Line => 1,
                Doc::Soft => 0,
                Doc::All(parts) => {
                    next.extend(parts.iter().rev().map(|part| (mode, part)));
                    0
                }
                Doc::Indent(_, inner) | Doc::Group(inner) => {
                    next.push((mode, &**inner));
                    0
                }
                Doc::Fill(parts) => {
                    let separated = parts.iter().rev().flat_map(|part| [(mode, part), (mode, &Doc::Line)]);
                    next.extend(separated);
                    // None before the first.
                    next.pop();
                    0
                }
                // It is never on one line with what is around it.
                Doc::Verbatim(_) => return Mode::Broken,
            };
            let Some(rest) = left.checked_sub(width) else { return Mode::Broken };
            left = rest;
        }
    }
}
