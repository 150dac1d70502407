//! The Kubernetes objects in a text.

use std::{ops::Range, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

use crate::{
    Problem, Source,
    locate::{self, Node},
    suggestion,
};

/// A Kubernetes object in a file.
#[derive(Debug)]
pub struct Object<'a> {
    /// The file.
    pub source: &'a Arc<Source>,
    /// `kind`; empty if it has none.
    pub kind: String,
    /// `apiVersion`; empty if it has none.
    pub api_version: String,
    /// Where all of it stands.
    pub node: Node<'a>,
}

/// The objects in a file, in order, those in a `List` one by one. Documents without content are none.
pub fn objects(source: &Arc<Source>) -> Result<Vec<Object<'_>>, Problem> {
    let roots = locate::documents(source.text())
        .map_err(|fault| Problem::new(fault.message).at(source, fault.offset..fault.offset))?;
    let mut found = Vec::new();
    for root in roots {
        if root.text().is_some_and(|text| matches!(text, "" | "~" | "null")) {
            continue;
        }
        let kind = field(&root, "kind");
        let is_list = root.get("items").is_some_and(|items| matches!(items.content, locate::Content::Sequence(_)));
        match kind.strip_suffix("List") {
            // What a typed list has in it need not repeat its kind.
            Some(of) if is_list => {
                let api_version = field(&root, "apiVersion");
                found.extend(items(root).into_iter().map(|node| {
                    let own = |key, inherited: &str| match node.get(key) {
                        Some(_) => field(&node, key),
                        None => inherited.to_owned(),
                    };
                    Object { source, kind: own("kind", of), api_version: own("apiVersion", &api_version), node }
                }));
            }
            _ => found.push(Object { source, kind, api_version: field(&root, "apiVersion"), node: root }),
        }
    }
    Ok(found)
}

fn field(node: &Node<'_>, key: &str) -> String {
    node.get(key).and_then(Node::text).unwrap_or_default().to_owned()
}

fn items(list: Node<'_>) -> Vec<Node<'_>> {
    let locate::Content::Mapping(entries) = list.content else { return Vec::new() };
    let items = entries.into_iter().find(|(key, _)| key.text() == Some("items"));
    match items.map(|(_, items)| items.content) {
        Some(locate::Content::Sequence(items)) => items,
        _ => Vec::new(),
    }
}

impl Object<'_> {
    /// A problem at a path in the object, which may go on with a place in the text there: `spec.expression:2:7`.
    pub fn problem(&self, path: &str, message: impl Into<String>) -> Problem {
        Problem::new(message).at(self.source, self.place(path))
    }

    /// The bytes to point at for such a path.
    pub fn place(&self, path: &str) -> Range<usize> {
        let mut parts = path.rsplitn(3, ':');
        let (column, line, of) = (parts.next(), parts.next(), parts.next());
        let number = |part: Option<&str>| part?.parse().ok();
        match (of, number(line), number(column)) {
            (Some(of), Some(line), Some(column)) => self.place_in_text(of, line, column),
            _ => self.node.place(path),
        }
    }

    /// The object as JSON.
    ///
    /// # Errors
    /// What is no YAML, a key that is given twice, or more aliases than any object needs (the limits of serde-saphyr).
    pub fn json(&self) -> Result<Json, Box<Mistake>> {
        self.read(false)
    }

    /// The bytes to point at for a line and column, from 1 and in characters, of the text at a path, as for a mistake
    /// in an expression: the rest of its word, or the whole text if it is not known better.
    pub fn place_in_text(&self, path: &str, line: usize, column: usize) -> Range<usize> {
        let file = self.source.text();
        match self.node.place_in_text(file, path, line, column) {
            Some(start) => {
                let word = file[start..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(0);
                start..start + word.max(1).min(file.len() - start)
            }
            None => self.node.place(path),
        }
    }

    /// Reads the object as a type. A text that is no text to kubectl, which reads YAML 1.1, must be quoted: `Off`, `yes`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Box<Mistake>> {
        self.read(true)
    }

    /// Reads what kubectl never sees: any scalar may be a text.
    pub fn parse_own<T: DeserializeOwned>(&self) -> Result<T, Box<Mistake>> {
        self.read(false)
    }

    fn read<T: DeserializeOwned>(&self, no_schema: bool) -> Result<T, Box<Mistake>> {
        let (text, offset) = self.text();
        let options = serde_saphyr::options! { with_snippet: false, no_schema: no_schema };
        serde_saphyr::from_str_with_options(&text, options).map_err(|error| Box::new(self.mistake(&error, offset)))
    }

    /// The object as a document of its own, and what to add to its offsets to get those of the file.
    ///
    /// Each object is read on its own, so that the parser's limits are for an object and not for a file.
    fn text(&self) -> (String, usize) {
        let Range { start, end } = self.node.span.clone();
        let text = self.source.text();
        if !self.node.block {
            return (text.get(start..end).unwrap_or_default().to_owned(), start);
        }
        // The first line must be indented as the others are. What stands before it is a list's dash.
        let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
        (" ".repeat(start - line) + text.get(start..end).unwrap_or_default(), line)
    }

    fn mistake(&self, error: &Error, offset: usize) -> Mistake {
        let error = match error.without_snippet() {
            Error::AliasError { error, .. } => error.without_snippet(),
            error => error,
        };
        let message = UserMessageFormatter.format_message(error).into_owned();
        let (message, help) = match error {
            Error::SerdeUnknownField { field, expected, .. } => {
                (format!("unknown field {field:?}"), Some(suggestion(field, expected)))
            }
            Error::SerdeUnknownVariant { variant, expected, .. } => {
                (format!("unknown value {variant:?}"), Some(suggestion(variant, expected)))
            }
            Error::SerdeInvalidType { unexpected, expected, .. }
            | Error::SerdeInvalidValue { unexpected, expected, .. } => {
                (format!("is {unexpected}, not {expected}"), None)
            }
            Error::QuotingRequired { value, .. } => {
                (format!("{value} without quotes is no text to kubectl"), Some(format!("write {value:?}")))
            }
            Error::DuplicateMappingKey { .. } => ("given twice".to_owned(), None),
            Error::SerdeMissingField { field, .. } => (format!("missing field {field:?}"), None),
            // What serde says of an enum that is told by its content names only the Rust type.
            Error::Message { msg, .. } if msg.contains("untagged enum IntOrText") => {
                ("is neither a whole number nor a text".to_owned(), None)
            }
            _ => (message, None),
        };
        let span = error.location().and_then(|location| {
            let start = usize::try_from(location.span().byte_offset()?).ok()? + offset;
            Some(start..start + usize::try_from(location.span().byte_len().unwrap_or_default()).ok()?)
        });
        let (path, place) = match span {
            Some(span) => self.meant(error, span),
            None => (String::new(), self.node.place("")),
        };
        let message = if path.is_empty() { message } else { format!("{path}: {message}") };
        let problem = Problem::new(message).at(self.source, place);
        Mistake {
            unknown_field: matches!(error, Error::SerdeUnknownField { .. }),
            problem: match help {
                Some(help) => problem.help(help),
                None => problem,
            },
        }
    }

    /// The path and the place of what an error is about.
    fn meant(&self, error: &Error, span: Range<usize>) -> (String, Range<usize>) {
        let path = self.node.path(span.start);
        match error {
            Error::SerdeUnknownField { .. } | Error::DuplicateMappingKey { .. } => (path, span),
            // Told at the last field that is there; of an object without any, at its own key.
            Error::SerdeMissingField { .. } => match self.node.at(&path) {
                Some(node) if node.text() != Some("") && !node.is_empty() => {
                    let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
                    (parent.to_owned(), self.node.place(parent))
                }
                _ => (String::new(), span),
            },
            _ => {
                let place = self.node.place(&path);
                (path, place)
            }
        }
    }
}

/// Why an object could not be read.
#[derive(Debug)]
pub struct Mistake {
    /// Whether it is a field that is not known.
    pub unknown_field: bool,
    /// What to say.
    pub problem: Problem,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn kinds(text: &str) -> Vec<String> {
        let source = Arc::new(Source::new("f", text.to_owned()));
        let objects = objects(&source).unwrap();
        objects.iter().map(|object| format!("{}/{}", object.api_version, object.kind)).collect()
    }

    #[test]
    fn a_text_that_is_none_to_kubectl_is_told_where_it_stands() {
        let read = |value: &str| {
            let source = Arc::new(Source::new("f", format!("kind: A\nengine: {value}\n")));
            let objects = objects(&source).unwrap();
            objects[0].parse::<BTreeMap<String, String>>().map(|mut fields| fields.remove("engine")).map_err(
                |mistake| {
                    assert_eq!(mistake.problem.place().map(|(_, place)| place.start), Some(16), "{mistake:?}");
                    mistake.problem.message().to_owned()
                },
            )
        };
        for value in ["Off", "yes", "50001"] {
            let found = read(value).unwrap_err();
            assert!(found.contains(&format!("engine: {value} without quotes is no text to kubectl")), "{found}");
            assert_eq!(read(&format!("'{value}'")).unwrap().as_deref(), Some(value));
        }
        assert_eq!(read("Auto").unwrap().as_deref(), Some("Auto"));
    }

    #[test]
    fn lists_are_opened() {
        let text = "\
---
# nothing
---
apiVersion: v1
kind: List
items:
- kind: A
  apiVersion: a/v1
- {kind: B}
---
{apiVersion: v1, kind: NamespaceList, items: [{metadata: {name: x}}]}
--- just text
---
";
        assert_eq!(kinds(text), ["a/v1/A", "v1/B", "v1/Namespace", "/"]);
    }

    #[test]
    fn an_object_in_a_list_reads_like_one_in_a_document() {
        let text =
            "kind: List\nitems:\n  -   kind: A\n      text: |\n        one\n        two\n  - kind: B\n    text: ü\n";
        let source = Arc::new(Source::new("f", text.to_owned()));
        let read: Vec<BTreeMap<String, String>> =
            objects(&source).unwrap().iter().map(|object| object.parse().unwrap()).collect();
        assert_eq!(read[0]["text"], "one\ntwo\n");
        assert_eq!(read[1]["text"], "ü");
    }
}
