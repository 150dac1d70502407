//! The parts of a YAML file and their places: from a path such as `spec.parameters[1].default` to bytes.
//!
//! Aliases are not followed, so nothing here grows beyond the file.

use std::{borrow::Cow, fmt::Write as _, ops::Range};

use crate::scalar;

/// A part of a document.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    /// Its bytes in the file.
    pub span: Range<usize>,
    /// True if indentation gives its structure.
    pub block: bool,
    /// Its content.
    pub content: Content<'a>,
    /// Its form.
    pub(crate) form: Form,
}

/// The details of a part's spelling that affect its meaning.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form {
    /// The number of its anchor; 0 if it has none.
    pub anchor: usize,
    /// Its tag in full: `tag:yaml.org,2002:int`.
    pub tag: Option<Box<str>>,
    /// True if it is a scalar without quotes, not in a block.
    pub plain: bool,
}

/// The content of a part of a document.
#[derive(Clone, Debug)]
pub enum Content<'a> {
    /// A text, number or the like, without quotes.
    Scalar(Cow<'a, str>),
    /// A list.
    Sequence(Vec<Node<'a>>),
    /// Keys and values in the order of the file.
    Mapping(Vec<(Node<'a>, Node<'a>)>),
    /// A reference to something elsewhere, by the number of its anchor.
    Alias(usize),
}

impl Node<'_> {
    /// The text of a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// The keys and values of a mapping; none if it is not a mapping.
    pub fn entries(&self) -> &[(Self, Self)] {
        match &self.content {
            Content::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// The value of a key of a mapping: the last one, if the key is given twice.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().rev().find(|(found, _)| found.text() == Some(key)).map(|(_, value)| value)
    }

    /// The bytes to point at for a path, or for as much of the path as the file has.
    ///
    /// That is the value, or its key if indentation gives the value its structure.
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

    /// The bytes of the last key of a path, or of as much of the path as the file has: for an unknown field, or a
    /// missing value.
    pub fn key_place(&self, path: &str) -> Range<usize> {
        let mut place = self.entries().first().map_or(self.span.clone(), |(key, _)| key.span.clone());
        let (mut node, mut rest) = (self, path);
        while let Some((key, value, tail)) = node.step(rest) {
            place = key.map_or_else(|| value.span.clone(), |key| key.span.clone());
            (node, rest) = (value, tail);
        }
        place
    }

    /// The byte at a line and column of the text at a path, both from 1 and in characters: exact for everything but
    /// white space, in block scalars, quotes and plain text. None if the path does not lead to a text.
    pub fn place_in_text(&self, file: &str, path: &str, line: usize, column: usize) -> Option<usize> {
        let node = self.at(path)?;
        let text = node.text()?;
        let start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
        let rest = &text[start..];
        let within = rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.len(), |(at, _)| at);
        let raw = file.get(node.span.start..)?;
        Some(node.span.start + scalar::offset_in(raw, text, start + within).unwrap_or(0))
    }

    /// The part at a path.
    pub fn at(&self, path: &str) -> Option<&Self> {
        let (mut node, mut rest) = (self, path);
        while !rest.is_empty() {
            (_, node, rest) = node.step(rest)?;
        }
        Some(node)
    }

    /// True if it is a list or mapping without content.
    pub fn is_empty(&self) -> bool {
        match &self.content {
            Content::Sequence(elements) => elements.is_empty(),
            Content::Mapping(entries) => entries.is_empty(),
            Content::Scalar(_) | Content::Alias(_) => false,
        }
    }

    /// The path to the part at a byte: the reverse of [`Self::place`].
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
                Content::Scalar(_) | Content::Alias(_) => break,
            }
        }
        path
    }

    /// The key, the value and the rest of the path after its first step.
    fn step<'n, 'p>(&'n self, path: &'p str) -> Option<(Option<&'n Self>, &'n Self, &'p str)> {
        match &self.content {
            Content::Mapping(entries) => {
                // A key may be in brackets, as the API server writes keys of maps.
                let bracketed = path.strip_prefix('[');
                let path = path.strip_prefix('.').unwrap_or(path);
                // Keys may have dots in them, so the file determines where a step ends. If a key is given twice,
                // kubectl takes the last one.
                entries
                    .iter()
                    .rev()
                    .filter_map(|(key, value)| {
                        let tail = match bracketed {
                            Some(path) => path.strip_prefix(key.text()?)?.strip_prefix(']')?,
                            None => path.strip_prefix(key.text()?)?,
                        };
                        let ends = tail.is_empty() || tail.starts_with(['.', '[']);
                        ends.then_some((Some(key), value, tail))
                    })
                    .min_by_key(|(.., tail)| tail.len())
            }
            Content::Sequence(elements) => {
                let (index, tail) = path.strip_prefix('[')?.split_once(']')?;
                Some((None, elements.get(index.parse::<usize>().ok()?)?, tail))
            }
            Content::Scalar(_) | Content::Alias(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::documents;

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
    fn field_path_maps_to_the_position_of_its_value() {
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
    fn unknown_path_maps_to_its_longest_known_prefix() {
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
    fn byte_offset_maps_to_its_field_path() {
        let documents = documents(TEXT.split("again").next().unwrap()).unwrap();
        for path in
            ["spec.parameters[0].default", "spec.parameters[1].default", "spec.labels.a.b/c", "spec.text", "spec"]
        {
            assert_eq!(documents[1].path(documents[1].place(path).start), path);
        }
        assert_eq!(documents[1].path(0), "");
    }

    #[test]
    fn yaml_syntax_error_reports_its_offset() {
        let fault = documents("a: b\nc: [1, 2\nd: e\n").unwrap_err();
        assert!(fault.offset >= 8, "{fault:?}");
        assert!(!fault.message.is_empty());
    }

    #[test]
    fn position_within_a_string_maps_to_its_file_offset() {
        for text in [
            "a:\n  e: |\n    // ü\n    object.x ||\n      HERE.y\n",
            "a:\n  e: |2-  # comment\n    // ü\n    object.x ||\n      HERE.y\n",
            "a:\n  - e: >-\n\n      object.x ||\n      HERE.y\n\n      && z\n",
            "a: {e: 'it''s ü HERE'}\n",
            "a:\n  e: 'it''s\n    ü\n\n    HERE'\n",
            "a: {e: \"\\x41\\u00fc\\t\\\"\\n \\\\ HERE\"}\n",
            "a:\n  e: \"one \\\n    two\n    HERE\"\n",
            "a:\n  e: one\n    two  HERE\n",
            "a:\n  e: &x\n    HERE\n",
            "a:\n  e: !!str HERE\n",
            "{\"a\": {\"e\": \"one\\ntwo HERE\"}}",
            "{\"b\": 1}\n{\"a\": {\"e\": \"\\ud83d\\ude00 HERE\"}}",
        ] {
            let documents = documents(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
            let root = documents.last().unwrap();
            let path = if root.at("a.e").is_some() { "a.e" } else { "a[0].e" };
            let value = root.at(path).and_then(Node::text).unwrap_or_else(|| panic!("{text}"));
            let before = &value[..value.find("HERE").unwrap()];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
            let found = root.place_in_text(text, path, line, column).unwrap();
            assert_eq!(found, text.find("HERE").unwrap(), "{text}");
        }
    }

    #[test]
    fn field_path_maps_to_the_position_of_its_key() {
        let documents = documents(TEXT.split("again").next().unwrap()).unwrap();
        for (path, expected) in
            [("spec.parameters[1].default", "default"), ("spec.labels.a.b/c", "a.b/c"), ("", "spec")]
        {
            assert_eq!(&TEXT[documents[1].key_place(path)], expected, "{path}");
        }
    }

    #[test]
    fn deeply_nested_yaml_is_an_error() {
        for text in ["[".repeat(100_000), "- ".repeat(100_000), "{a: ".repeat(100_000), "{\"a\":".repeat(100_000)] {
            assert!(documents(&text).is_err());
        }
    }
}
