//! Where things stand in a YAML file: from a path such as `spec.parameters[1].default` to bytes.
//!
//! Types are read by serde-saphyr; this is a second, shallow reading with the same parser that keeps the places.
//! Aliases are not followed, so that nothing here grows beyond the file.

use std::{borrow::Cow, fmt::Write as _, ops::Range};

use granit_parser::{Event, Parser, StructureStyle};

/// More nodes than 15,000 namespaces have with all that an API server adds to them.
const MAX_NODES: usize = 2_000_000;

/// A part of a document.
#[derive(Debug)]
pub struct Node<'a> {
    /// Its bytes in the file.
    pub span: Range<usize>,
    /// Whether its structure is given by indentation.
    pub block: bool,
    /// What it is.
    pub content: Content<'a>,
}

/// What a part of a document is.
#[derive(Debug)]
pub enum Content<'a> {
    /// A text, number or the like, without quotes.
    Scalar(Cow<'a, str>),
    /// A list.
    Sequence(Vec<Node<'a>>),
    /// Keys and values in the order of the file.
    Mapping(Vec<(Node<'a>, Node<'a>)>),
    /// A reference to something elsewhere.
    Alias,
}

/// Why a file is not YAML, and where.
#[derive(Debug)]
pub struct Fault {
    /// What is wrong.
    pub message: String,
    /// Byte in the file.
    pub offset: usize,
}

/// A list or mapping that has begun and not ended.
struct Open<'a> {
    start: usize,
    block: bool,
    mapping: bool,
    children: Vec<Node<'a>>,
}

/// The root of each document.
pub fn documents(text: &str) -> Result<Vec<Node<'_>>, Fault> {
    let mut roots = Vec::new();
    let mut open: Vec<Open<'_>> = Vec::new();
    for (count, next) in Parser::new_from_str(text).enumerate() {
        let (event, span) = next.map_err(|error| Fault {
            message: error.info(),
            offset: error.marker().byte_offset().unwrap_or_default().min(text.len()),
        })?;
        let span = span.byte_range().unwrap_or_default();
        if count > MAX_NODES {
            return Err(Fault { message: format!("more than {MAX_NODES} parts in one file"), offset: span.start });
        }
        let node = match event {
            Event::Scalar(value, ..) => Node { span, block: false, content: Content::Scalar(value) },
            Event::Alias(_) => Node { span, block: false, content: Content::Alias },
            Event::SequenceStart(style, ..) => {
                open.push(Open::new(span.start, style, false));
                continue;
            }
            Event::MappingStart(style, ..) => {
                open.push(Open::new(span.start, style, true));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(ended) => ended.close(span.end),
                None => continue,
            },
            _ => continue,
        };
        match open.last_mut() {
            Some(parent) => parent.children.push(node),
            None => roots.push(node),
        }
    }
    Ok(roots)
}

impl<'a> Open<'a> {
    fn new(start: usize, style: StructureStyle, mapping: bool) -> Self {
        Self { start, block: style == StructureStyle::Block, mapping, children: Vec::new() }
    }

    fn close(self, end: usize) -> Node<'a> {
        // The end of a block is noticed at whatever follows it.
        let end = if self.block { self.children.last().map_or(self.start, |last| last.span.end) } else { end };
        let content = if self.mapping {
            let mut pairs = Vec::with_capacity(self.children.len() / 2);
            let mut children = self.children.into_iter();
            while let (Some(key), Some(value)) = (children.next(), children.next()) {
                pairs.push((key, value));
            }
            Content::Mapping(pairs)
        } else {
            Content::Sequence(self.children)
        };
        Node { span: self.start..end.max(self.start), block: self.block, content }
    }
}

impl Node<'_> {
    /// The text of a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// The keys and values of a mapping; nothing if it is none.
    pub fn entries(&self) -> &[(Self, Self)] {
        match &self.content {
            Content::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// The value of a key of a mapping.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(found, _)| found.text() == Some(key)).map(|(_, value)| value)
    }

    /// The bytes to point at for a path, or for as much of the path as the file has.
    ///
    /// A value that stands for itself is pointed at; for one of many lines its key is.
    pub fn place(&self, path: &str) -> Range<usize> {
        let mut place = self.entries().first().map_or(self.span.clone(), |(key, _)| key.span.clone());
        let (mut node, mut rest) = (self, path);
        while let Some((key, value, tail)) = node.step(rest) {
            let whole = if value.block || value.span.is_empty() { None } else { Some(value.span.clone()) };
            place = whole.or_else(|| key.map(|key| key.span.clone())).unwrap_or_else(|| value.span.clone());
            (node, rest) = (value, tail);
        }
        place
    }

    /// The part at a path.
    pub fn at(&self, path: &str) -> Option<&Self> {
        let (mut node, mut rest) = (self, path);
        while !rest.is_empty() {
            (_, node, rest) = node.step(rest)?;
        }
        Some(node)
    }

    /// Whether it is a list or mapping without content.
    pub fn is_empty(&self) -> bool {
        match &self.content {
            Content::Sequence(elements) => elements.is_empty(),
            Content::Mapping(entries) => entries.is_empty(),
            Content::Scalar(_) | Content::Alias => false,
        }
    }

    /// The path to what stands at a byte: the reverse of [`Self::place`].
    pub fn path(&self, offset: usize) -> String {
        let mut path = String::new();
        let mut node = self;
        loop {
            match &node.content {
                Content::Mapping(entries) => {
                    let Some((key, value)) = entries.iter().rev().find(|(key, _)| key.span.start <= offset) else {
                        break;
                    };
                    let Some(name) = key.text() else { break };
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(name);
                    if key.span.contains(&offset) {
                        break;
                    }
                    node = value;
                }
                Content::Sequence(elements) => {
                    let Some(index) = elements.iter().rposition(|element| element.span.start <= offset) else { break };
                    let _ = write!(path, "[{index}]");
                    node = &elements[index];
                }
                Content::Scalar(_) | Content::Alias => break,
            }
        }
        path
    }

    /// The key, the value and what is left of the path after its first step.
    fn step<'n, 'p>(&'n self, path: &'p str) -> Option<(Option<&'n Self>, &'n Self, &'p str)> {
        match &self.content {
            Content::Mapping(entries) => {
                let path = path.strip_prefix('.').unwrap_or(path);
                // Keys may have dots in them, so the file says where a step ends.
                entries
                    .iter()
                    .filter_map(|(key, value)| {
                        let tail = path.strip_prefix(key.text()?)?;
                        let ends = tail.is_empty() || tail.starts_with(['.', '[']);
                        ends.then_some((Some(key), value, tail))
                    })
                    .min_by_key(|(.., tail)| tail.len())
            }
            Content::Sequence(elements) => {
                let (index, tail) = path.strip_prefix('[')?.split_once(']')?;
                Some((None, elements.get(index.parse::<usize>().ok()?)?, tail))
            }
            Content::Scalar(_) | Content::Alias => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
kind: A
---
# ä: two bytes
spec:
  parameters:
  - name: uid
    default: 'ü'
  - {name: b, default: 7}
  labels:
    a.b/c: x
    a: {}
  text: |
    one
    two
  empty:
  again: *anchor
";

    fn place(path: &str) -> String {
        let text = TEXT.replace("spec:", "spec: &anchor");
        let documents = documents(&text).unwrap();
        text[documents[1].place(path)].to_owned()
    }

    #[test]
    fn paths_lead_to_their_places() {
        for (path, expected) in [
            ("spec.parameters[0].default", "'ü'"),
            ("spec.parameters[1].default", "7"),
            ("spec.parameters[1]", "{name: b, default: 7}"),
            ("spec.parameters", "parameters"),
            ("spec.labels.a.b/c", "x"),
            ("spec.labels.a", "{}"),
            ("spec.empty", "empty"),
            ("spec", "spec"),
        ] {
            assert_eq!(place(path), expected, "{path}");
        }
    }

    #[test]
    fn the_longest_prefix_is_used() {
        for (path, expected) in [
            ("spec.parameters[9].default", "parameters"),
            ("spec.parameters[1].default[3].x", "7"),
            ("spec.users.runAsUser", "spec"),
            ("spec.again.parameters", "*anchor"),
            ("metadata.name", "spec"),
            ("", "spec"),
            ("][.[", "spec"),
        ] {
            assert_eq!(place(path), expected, "{path}");
        }
    }

    #[test]
    fn a_byte_has_its_path() {
        let documents = documents(TEXT.split("again").next().unwrap()).unwrap();
        for path in
            ["spec.parameters[0].default", "spec.parameters[1].default", "spec.labels.a.b/c", "spec.text", "spec"]
        {
            assert_eq!(documents[1].path(documents[1].place(path).start), path);
        }
        assert_eq!(documents[1].path(0), "");
    }

    #[test]
    fn a_fault_has_its_place() {
        let fault = documents("a: b\nc: [1, 2\nd: e\n").unwrap_err();
        assert!(fault.offset >= 8, "{fault:?}");
        assert!(!fault.message.is_empty());
    }
}
