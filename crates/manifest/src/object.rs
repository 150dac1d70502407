//! The Kubernetes objects in a text.

use std::{borrow::Cow, ops::Range, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::{
    Problem, Source,
    node::{Content, Form, Node},
    refusal::{is_kustomization, refusal},
    suggestion,
    yaml::{self, Anchors, Cause, Read, Value},
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
    /// Its place in the file.
    pub node: Node<'a>,
    /// The targets of its aliases, which may be in another object of a list.
    anchors: Arc<Anchors<'a>>,
    /// True if it was written as JSON.
    is_json: bool,
}

/// The objects in a file, in order, those in lists one by one, also in lists of lists, as kubectl takes them. Documents
/// without content are left out.
///
/// # Errors
/// The text is neither YAML nor JSON.
pub fn objects(source: &Arc<Source>) -> Result<Vec<Object<'_>>, Problem> {
    let trees = yaml::trees(source.text())
        .map_err(|fault| Problem::new(fault.message).at(source, fault.offset..fault.offset))?;
    let mut found = Vec::new();
    for yaml::Tree { root, anchors, json } in trees {
        let is_empty = root.form.plain && root.text().is_some_and(|text| matches!(text, "" | "~" | "null"));
        if !is_empty {
            let (mut kind, mut api_version) = (field(&root, "kind"), field(&root, "apiVersion"));
            if is_kustomization(source.name(), &root) {
                (kind, api_version) = ("Kustomization".to_owned(), "kustomize.config.k8s.io/v1beta1".to_owned());
            }
            let anchors = Arc::new(anchors);
            flatten(Object { source, kind, api_version, node: root, anchors, is_json: json }, &mut found);
        }
    }
    Ok(found)
}

/// Adds an object; of a list, its items.
fn flatten<'a>(object: Object<'a>, found: &mut Vec<Object<'a>>) {
    let is_list = || match object.node.get("items").map(|items| &items.content) {
        Some(Content::Sequence(_)) => true,
        // A list without items, as Go writes it.
        Some(Content::Scalar(text)) => text == "null",
        _ => false,
    };
    let Some(of) = object.kind.strip_suffix("List").filter(|_| is_list()).map(str::to_owned) else {
        found.push(object);
        return;
    };
    let Object { source, api_version, anchors, is_json, node, .. } = object;
    // Without an apiVersion it is no typed list.
    let of = if api_version.is_empty() { String::new() } else { of };
    for mut node in items(node) {
        // An item of a typed list need not repeat its kind.
        let kind = inherit(&mut node, "kind", &of);
        let inherited = if of.is_empty() { "" } else { api_version.as_str() };
        let api_version = inherit(&mut node, "apiVersion", inherited);
        flatten(Object { source, kind, api_version, node, anchors: Arc::clone(&anchors), is_json }, found);
    }
}

/// The value of a key of an object; if it has none, it gets this one.
fn inherit(node: &mut Node<'_>, key: &'static str, inherited: &str) -> String {
    if node.get(key).is_none()
        && !inherited.is_empty()
        && let Content::Mapping(entries) = &mut node.content
    {
        // Its place is where the object ends.
        let text = |text: Cow<'static, str>| Node {
            span: node.span.end..node.span.end,
            block: false,
            content: Content::Scalar(text),
            form: Form::default(),
        };
        entries.push((text(key.into()), text(inherited.to_owned().into())));
    }
    field(node, key)
}

fn field(node: &Node<'_>, key: &str) -> String {
    node.get(key).and_then(Node::text).unwrap_or_default().to_owned()
}

fn items(list: Node<'_>) -> Vec<Node<'_>> {
    let Content::Mapping(entries) = list.content else { return Vec::new() };
    let items = entries.into_iter().rev().find(|(key, _)| key.text() == Some("items"));
    match items.map(|(_, items)| items.content) {
        Some(Content::Sequence(items)) => items,
        _ => Vec::new(),
    }
}

impl Object<'_> {
    /// The reason why this is not an object for an API server, if it is not: the document has another type that is
    /// common in such files.
    pub fn refusal(&self) -> Option<Problem> {
        let (message, help) = refusal(&self.node, &self.kind, &self.api_version, self.source.text())?;
        let problem = self.problem("", message);
        Some(match help {
            Some(help) => problem.help(help),
            None => problem,
        })
    }

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

    /// The object as JSON, as kubectl reads it: if a key is given twice, the last one.
    ///
    /// # Errors
    /// A part without a meaning to kubectl, such as a tag that does not fit, or more aliases than any object needs.
    pub fn json(&self) -> Result<Json, Box<Mistake>> {
        self.value().map(Read::into_json)
    }

    /// The object as JSON, as [`Self::json`].
    ///
    /// # Errors
    /// Also a key that is given twice, which kubectl does not report.
    pub fn json_without_repetition(&self) -> Result<Json, Box<Mistake>> {
        let value = self.value()?;
        match value.repeated() {
            Some((path, key)) => Err(self.mistake(&value, Cause::Repeated, &path, Some(key))),
            None => Ok(value.into_json()),
        }
    }

    /// The bytes to point at for a line and column, from 1 and in characters, of the text at a path, as for an error
    /// in an expression: the rest of its word, or the whole text if the place is unknown.
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

    /// Reads the object as a type. A text that is not a text to kubectl, which reads YAML 1.1, must be quoted: `Off`, `yes`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Box<Mistake>> {
        self.read(false)
    }

    /// Reads a file that kubectl never sees: any scalar may be a text.
    pub fn parse_own<T: DeserializeOwned>(&self) -> Result<T, Box<Mistake>> {
        self.read(true)
    }

    fn read<T: DeserializeOwned>(&self, own: bool) -> Result<T, Box<Mistake>> {
        let value = self.value()?;
        yaml::from_value(&value, own).map_err(|mistake| {
            let yaml::Mistake { cause, path, key } = *mistake;
            self.mistake(&value, cause, &path, key)
        })
    }

    fn value(&self) -> Result<Read<'_, '_>, Box<Mistake>> {
        yaml::read(&self.node, &self.anchors, self.is_json).map_err(|invalid| {
            let yaml::InvalidValue { message, place } = invalid;
            let path = self.node.path(place.start);
            let message = if path.is_empty() { message } else { format!("{path}: {message}") };
            Box::new(Mistake { unknown_field: false, problem: Problem::new(message).at(self.source, place) })
        })
    }

    #[expect(clippy::unnecessary_box_returns, reason = "for its callers, whose error it is")]
    fn mistake(&self, value: &Read<'_, '_>, cause: Cause, path: &str, key: Option<Range<usize>>) -> Box<Mistake> {
        let unknown_field = matches!(cause, Cause::UnknownField { .. });
        let (message, help) = match cause {
            Cause::UnknownField { field, expected } => {
                (format!("unknown field {field:?}"), Some(suggestion(&field, expected)))
            }
            Cause::UnknownVariant { variant, expected } => {
                (format!("unknown value {variant:?}"), Some(suggestion(&variant, expected)))
            }
            Cause::Is { found, wanted } => match unquoted(value, path).filter(|_| wanted.contains("string")) {
                Some(text) => {
                    (format!("{text} without quotes is not a string in kubectl"), Some(format!("write {text:?}")))
                }
                None => (format!("is {found}, not {wanted}"), None),
            },
            Cause::Repeated => ("given twice".to_owned(), None),
            Cause::Missing(field) => (format!("missing field {field:?}"), None),
            // serde's message for an enum that is recognized by its content names only the Rust type.
            Cause::Other(message) if message.contains("untagged enum IntOrText") => {
                ("must be an integer or a string".to_owned(), None)
            }
            Cause::Other(message) => (message, None),
        };
        let message = if path.is_empty() { message } else { format!("{path}: {message}") };
        let problem = Problem::new(message).at(self.source, key.unwrap_or_else(|| self.node.place(path)));
        let problem = match help {
            Some(help) => problem.help(help),
            None => problem,
        };
        Box::new(Mistake { unknown_field, problem })
    }
}

/// The scalar without quotes at a path, which is therefore not a text.
fn unquoted<'r>(value: &'r Read<'_, '_>, path: &str) -> Option<&'r str> {
    let found = value.at(path)?;
    let scalar = matches!(found.value, Value::Scalar(_)) && found.node.form.plain;
    found.node.text().filter(|text| scalar && !text.is_empty())
}

/// Why an object could not be read.
#[derive(Debug)]
pub struct Mistake {
    /// True if the field is unknown.
    pub unknown_field: bool,
    /// The problem to report.
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
    fn unquoted_non_string_is_rejected_at_its_position() {
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
            assert!(found.contains(&format!("engine: {value} without quotes is not a string in kubectl")), "{found}");
            assert_eq!(read(&format!("'{value}'")).unwrap().as_deref(), Some(value));
        }
        assert_eq!(read("Auto").unwrap().as_deref(), Some("Auto"));
    }

    #[test]
    fn lists_are_expanded_into_their_items() {
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
---
just text
---
";
        assert_eq!(kinds(text), ["a/v1/A", "/B", "v1/Namespace", "/"]);
        let nested = "{kind: List, apiVersion: v1, items: [{kind: PodList, apiVersion: v1, items: [{}, {kind: X}]}, \
                      {kind: List, items: null}, {kind: List, items: [{kind: List, items: [{kind: A, apiVersion: a/v1}]}]}]}";
        assert_eq!(kinds(nested), ["v1/Pod", "v1/X", "a/v1/A"]);
    }

    /// All that reads an object finds the kind that it has by its list: as JSON, as a type, and by its parts.
    #[test]
    fn an_item_has_the_kind_of_its_list() {
        for text in [
            "kind: PodList\napiVersion: v1\nitems:\n- metadata: {name: x}\n- {metadata: {name: x}}\n- {}\n",
            "{\"kind\": \"PodList\", \"apiVersion\": \"v1\", \"items\": [{\"metadata\": {\"name\": \"x\"}}]}",
        ] {
            let source = Arc::new(Source::new("f", text.to_owned()));
            for object in objects(&source).unwrap() {
                let json = object.json().unwrap();
                assert_eq!((&json["kind"], &json["apiVersion"]), (&"Pod".into(), &"v1".into()), "{json}");
                let fields: BTreeMap<String, Json> = object.parse().unwrap();
                assert_eq!(fields["kind"], "Pod");
                assert_eq!(object.node.get("apiVersion").and_then(Node::text), Some("v1"));
                assert!(object.refusal().is_none());
                if object.node.get("metadata").is_some() {
                    assert!(text[object.place("metadata.name")].contains('x'), "{text}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_object_says_what_it_is() {
        for (name, text, expected) in [
            ("f", "[{kind: Pod, apiVersion: v1}]", "a list, not an object"),
            ("f", "just text", "a string"),
            ("f", "{{ if .Values.x }}\nkind: Pod\n{{ end }}", "not an object"),
            ("f", "{{ .Values.x }}", "not an object"),
            ("f", "{type: ADDED, object: {kind: Pod, apiVersion: v1}}", "a watch event"),
            ("f", "{kind: Table, apiVersion: meta.k8s.io/v1, rows: []}", "a Table"),
            ("f", "{kind: AdmissionReview, apiVersion: admission.k8s.io/v1, request: {}}", "an AdmissionReview"),
            ("f", "{request: {uid: a}}", "an AdmissionReview without its kind"),
            ("f", "{uid: a, operation: CREATE, object: {}}", "an admission request"),
            (
                "f",
                "{kind: EventList, apiVersion: audit.k8s.io/v1, items: [{level: Metadata}]}",
                "an event of an audit log",
            ),
            ("f", "{log: x, stream: stdout}", "a line of a container's log"),
            ("f", "{a: b}", "no kind and no apiVersion"),
            ("f", "{kind: Pod}", "this Pod has no apiVersion"),
            ("f", "{apiVersion: v1}", "it has no kind"),
            ("f", "{kind: List, apiVersion: v1, items: [{kind: Pod}]}", "this Pod has no apiVersion"),
            ("f", "{kind: Pod, apiVersion: v1}", ""),
            ("a/kustomization.yaml", "{resources: [a.yaml]}", ""),
            ("values.yaml", "{resources: [a.yaml]}", "no kind"),
        ] {
            let source = Arc::new(Source::new(name, text.to_owned()));
            let objects = objects(&source).unwrap();
            let found = objects[0].refusal().map(|problem| problem.message().to_owned()).unwrap_or_default();
            assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{text}: {found}");
        }
    }

    #[test]
    fn list_item_parses_like_a_document() {
        let text =
            "kind: List\nitems:\n  -   kind: A\n      text: |\n        one\n        two\n  - kind: B\n    text: ü\n";
        let source = Arc::new(Source::new("f", text.to_owned()));
        let read: Vec<BTreeMap<String, String>> =
            objects(&source).unwrap().iter().map(|object| object.parse().unwrap()).collect();
        assert_eq!(read[0]["text"], "one\ntwo\n");
        assert_eq!(read[1]["text"], "ü");
    }
}
