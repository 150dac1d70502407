//! From a tree to its meaning (`go.yaml.in/yaml/v2` `decode.go`, `sigs.k8s.io/yaml`): resolves scalars, follows
//! aliases, and applies merge keys.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use serde_json::{Map, Value as Json};

use super::{
    limits::MAX_DEPTH,
    parse::Anchors,
    scalar::{self, CORE, Scalar},
};
use crate::node::{Content, Node};

/// The meaning of a part of a document, and its place.
#[derive(Debug)]
pub(crate) struct Read<'n, 'a> {
    pub node: &'n Node<'a>,
    pub value: Value<'n, 'a>,
}

#[derive(Debug)]
pub(crate) enum Value<'n, 'a> {
    Scalar(Scalar<'n>),
    List(Vec<Read<'n, 'a>>),
    /// In the order in which they are set: if two are the same, the last one counts.
    Map(Vec<Entry<'n, 'a>>),
}

/// A field.
#[derive(Debug)]
pub(crate) struct Entry<'n, 'a> {
    pub name: Cow<'n, str>,
    pub key: &'n Node<'a>,
    /// The value of the key before it becomes a name.
    resolved: Scalar<'n>,
    pub value: Read<'n, 'a>,
    /// True if a merge key brought it.
    pub merged: bool,
}

/// Why a part has no meaning to kubectl, and its place.
#[derive(Debug)]
pub(crate) struct InvalidValue {
    pub message: String,
    pub place: Range<usize>,
}

/// The meaning of a part of a document.
pub(crate) fn read<'n, 'a>(
    node: &'n Node<'a>,
    anchors: &'n Anchors<'a>,
    json: bool,
) -> Result<Read<'n, 'a>, InvalidValue> {
    Reader { anchors, json, followed: Vec::new(), depth: 0, parts: 0, of_aliases: 0 }.read(node)
}

impl Read<'_, '_> {
    /// As JSON.
    pub fn into_json(self) -> Json {
        match self.value {
            Value::Scalar(scalar) => scalar.into_json(),
            Value::List(items) => items.into_iter().map(Read::into_json).collect(),
            Value::Map(entries) => {
                let fields: Map<_, _> =
                    entries.into_iter().map(|entry| (entry.name.into_owned(), entry.value.into_json())).collect();
                Json::Object(fields)
            }
        }
    }

    /// The part at a path. Its steps follow the document, because keys may have dots in them.
    pub fn at(&self, path: &str) -> Option<&Self> {
        if path.is_empty() {
            return Some(self);
        }
        match &self.value {
            Value::Scalar(_) => None,
            Value::List(items) => {
                let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
                items.get(index.parse::<usize>().ok()?)?.at(rest)
            }
            Value::Map(entries) => {
                let path = path.strip_prefix('.').unwrap_or(path);
                entries.iter().find_map(|entry| {
                    let rest = path.strip_prefix(&*entry.name)?;
                    (rest.is_empty() || rest.starts_with(['.', '['])).then(|| entry.value.at(rest))?
                })
            }
        }
    }

    /// The first key that is given twice in the same place, with its path.
    pub fn repeated(&self) -> Option<(String, Range<usize>)> {
        match &self.value {
            Value::Scalar(_) => None,
            Value::List(items) => items.iter().enumerate().find_map(|(index, item)| {
                let (path, place) = item.repeated()?;
                Some((format!("[{index}]{}", below(&path)), place))
            }),
            Value::Map(entries) => {
                let mut seen = BTreeSet::new();
                entries.iter().find_map(|entry| {
                    if !entry.merged && !seen.insert(&*entry.name) {
                        return Some((entry.name.to_string(), entry.key.span.clone()));
                    }
                    let (path, place) = entry.value.repeated()?;
                    Some((format!("{}{}", entry.name, below(&path)), place))
                })
            }
        }
    }
}

/// A path that follows another one.
fn below(path: &str) -> String {
    if path.starts_with('[') { path.to_owned() } else { format!(".{path}") }
}

struct Reader<'n, 'a> {
    anchors: &'n Anchors<'a>,
    json: bool,
    /// The anchors of the aliases that are being followed.
    followed: Vec<usize>,
    depth: usize,
    parts: usize,
    of_aliases: usize,
}

impl<'n, 'a> Reader<'n, 'a> {
    fn read(&mut self, node: &'n Node<'a>) -> Result<Read<'n, 'a>, InvalidValue> {
        self.count(node)?;
        let value = match &node.content {
            Content::Alias(id) => {
                return self.follow(node, *id, |reader, target| {
                    reader.read(target).map(|read| Read { node, value: read.value })
                });
            }
            Content::Scalar(text) => Value::Scalar(self.scalar(node, text)?),
            Content::Sequence(items) => {
                Value::List(self.deeper(node, |reader| items.iter().map(|item| reader.read(item)).collect())?)
            }
            Content::Mapping(_) => {
                let mut entries = Vec::new();
                self.deeper(node, |reader| reader.fill(node, &mut entries, false))?;
                is_determined(&entries)?;
                Value::Map(entries)
            }
        };
        Ok(Read { node, value })
    }

    /// Follows an alias to its target.
    fn follow<T>(
        &mut self,
        alias: &'n Node<'a>,
        id: usize,
        then: impl FnOnce(&mut Self, &'n Node<'a>) -> Result<T, InvalidValue>,
    ) -> Result<T, InvalidValue> {
        let Some(target) = self.anchors.get(&id) else { return wrong(alias, "unknown anchor referenced") };
        if self.followed.contains(&id) {
            return wrong(alias, "the value of an anchor contains itself");
        }
        self.followed.push(id);
        let found = self.deeper(alias, |reader| then(reader, target));
        self.followed.pop();
        found
    }

    /// Aliases multiply the content of a file, which needs a limit (`allowedAliasRatio`).
    fn count(&mut self, node: &Node<'_>) -> Result<(), InvalidValue> {
        const LOW: f64 = 400_000.0;
        const HIGH: f64 = 4_000_000.0;
        self.parts += 1;
        if !self.followed.is_empty() {
            self.of_aliases += 1;
        }
        if self.of_aliases <= 100 || self.parts <= 1000 {
            return Ok(());
        }
        #[expect(clippy::cast_precision_loss, reason = "both are small")]
        let (parts, of_aliases) = (self.parts as f64, self.of_aliases as f64);
        let allowed = 0.99 - 0.89 * ((parts - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
        if of_aliases / parts > allowed { wrong(node, "document contains excessive aliasing") } else { Ok(()) }
    }

    fn deeper<T>(
        &mut self,
        node: &Node<'_>,
        then: impl FnOnce(&mut Self) -> Result<T, InvalidValue>,
    ) -> Result<T, InvalidValue> {
        if self.depth >= MAX_DEPTH {
            return wrong(node, format!("nested deeper than {MAX_DEPTH}"));
        }
        self.depth += 1;
        let found = then(self);
        self.depth -= 1;
        found
    }

    fn scalar<'s>(&self, node: &'s Node<'_>, text: &'s str) -> Result<Scalar<'s>, InvalidValue> {
        let form = &node.form;
        let found = if self.json {
            Ok(if form.plain { scalar::json(text) } else { Scalar::Text(text.into()) })
        } else {
            scalar::yaml(text, form.tag.as_deref(), form.plain).and_then(Scalar::through_json)
        };
        match found {
            Ok(Scalar::Float(number)) if !number.is_finite() => wrong(node, format!("{text} is out of range")),
            Ok(found) => Ok(found),
            Err(message) => wrong(node, message),
        }
    }

    /// Adds the fields of a mapping.
    fn fill(
        &mut self,
        mapping: &'n Node<'a>,
        entries: &mut Vec<Entry<'n, 'a>>,
        merged: bool,
    ) -> Result<(), InvalidValue> {
        for (key, value) in mapping.entries() {
            if !self.json && is_merge(key) {
                self.merge(value, entries)?;
                continue;
            }
            let (name, resolved) = self.name(key)?;
            let value = self.read(value)?;
            entries.push(Entry { name, key, resolved, value, merged });
        }
        Ok(())
    }

    /// The name of a field, and its value before it becomes a name.
    fn name(&mut self, key: &'n Node<'a>) -> Result<(Cow<'n, str>, Scalar<'n>), InvalidValue> {
        self.count(key)?;
        let (text, node) = match &key.content {
            Content::Scalar(text) => (text, key),
            Content::Alias(id) => return self.follow(key, *id, Self::name),
            Content::Sequence(_) | Content::Mapping(_) => return wrong(key, "invalid map key"),
        };
        if self.json || (!node.form.plain && node.form.tag.is_none()) {
            return Ok((Cow::Borrowed(text), Scalar::Text(Cow::Borrowed(text))));
        }
        // The name of a number is that of its resolved value, before it becomes JSON.
        let scalar = match scalar::yaml(text, node.form.tag.as_deref(), node.form.plain) {
            Ok(scalar) => scalar,
            Err(message) => return wrong(key, message),
        };
        match scalar.key() {
            Ok(name) => Ok((name, scalar)),
            Err(kind) => wrong(key, format!("unsupported map key of type {kind}")),
        }
    }

    /// Adds the fields of a merge key. It overrides fields before it, and fields after it override it.
    fn merge(&mut self, value: &'n Node<'a>, entries: &mut Vec<Entry<'n, 'a>>) -> Result<(), InvalidValue> {
        match &value.content {
            // In a list, the first one wins.
            Content::Sequence(maps) => maps.iter().rev().try_for_each(|map| self.merge_one(map, value, entries)),
            _ => self.merge_one(value, value, entries),
        }
    }

    fn merge_one(
        &mut self,
        map: &'n Node<'a>,
        of: &Node<'_>,
        entries: &mut Vec<Entry<'n, 'a>>,
    ) -> Result<(), InvalidValue> {
        self.count(map)?;
        match &map.content {
            Content::Mapping(_) => self.deeper(map, |reader| reader.fill(map, entries, true)),
            Content::Alias(id) => self.follow(map, *id, |reader, target| match &target.content {
                Content::Mapping(_) => {
                    reader.count(target)?;
                    reader.fill(target, entries, true)
                }
                _ => wrong(map, WANT_MAP),
            }),
            _ => wrong(of, WANT_MAP),
        }
    }
}

/// Rejects different keys with the same name, such as `1` and `"1"`: kubectl takes the value of either one, in the
/// order of a Go map (`sigs.k8s.io/yaml`, `convertToJSONableObject`), so nothing is certain about such an object.
fn is_determined(entries: &[Entry<'_, '_>]) -> Result<(), InvalidValue> {
    let mut names = BTreeMap::new();
    for entry in entries {
        if let Some(other) = names.insert(&*entry.name, &entry.resolved)
            && *other != entry.resolved
        {
            let name = &*entry.name;
            return wrong(
                entry.key,
                format!(
                    "{name:?} is the name of two keys of different types, and kubectl uses one of them at \
                     random: remove one"
                ),
            );
        }
    }
    Ok(())
}

const WANT_MAP: &str = "map merge requires map or sequence of maps as the value";

fn is_merge(key: &Node<'_>) -> bool {
    let merges = |tag: &str| tag.strip_prefix(CORE) == Some("merge");
    key.text() == Some("<<") && key.form.tag.as_deref().map_or(key.form.plain, merges)
}

fn wrong<T>(node: &Node<'_>, message: impl Into<String>) -> Result<T, InvalidValue> {
    Err(InvalidValue { message: message.into(), place: node.span.clone() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use crate::{Source, objects};

    fn data(text: &str) -> Result<serde_json::Value, String> {
        let source = Arc::new(Source::new("f", format!("apiVersion: v1\nkind: ConfigMap\ndata:\n{text}")));
        let objects = objects(&source).map_err(|problem| problem.to_string())?;
        let json = objects[0].json().map_err(|mistake| mistake.problem.to_string())?;
        Ok(json.get("data").cloned().unwrap_or_default())
    }

    #[test]
    fn yaml_keys_with_the_same_string_form_are_rejected() {
        for text in
            ["  1: a\n  '1': b\n", "  yes: a\n  'true': b\n", "  <<: {1: a}\n  '1': b\n", "  .nan: a\n  .nan: b\n"]
        {
            let found = data(text);
            assert!(
                found.as_ref().is_err_and(|message| message.contains("kubectl uses one of them at random")),
                "{text}: {found:?}"
            );
        }
        assert_eq!(data("  1: a\n  0x1: b\n"), Ok(json!({ "1": "b" })));
        assert_eq!(data("  yes: a\n  true: b\n"), Ok(json!({ "true": "b" })));
    }
}
