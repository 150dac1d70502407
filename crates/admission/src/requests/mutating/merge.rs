//! Merging an `Object` into the object of a request, by the schema of its kind (structured-merge-diff `typed`, apiserver
//! `pkg/admission/plugin/policy/mutating/patch/smd.go`).

use palisade_cel::{Minor, quote, schema::Schemas};
use serde_json::Value as Json;

use super::{
    schema::{Atom, Kind, ListType, MapType, Scalar, TypeRef, deduce},
    value::Native,
};

/// An error, and its path: `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mistake {
    path: String,
    text: String,
}

type Mistakes = Vec<Mistake>;

/// Merges a patch into an object.
///
/// # Errors
/// The API server's text.
pub(super) fn apply(
    schemas: &Schemas,
    schema: &Json,
    live: &Json,
    patch: Native,
    minor: Minor,
) -> Result<Json, String> {
    let of = TypeRef::of(schema);
    let walker = Walker { schemas };
    walker.validate(of, &patch).map_err(|text| format!("failed to convert patch object to typed object: {text}"))?;
    let mut atomics = Vec::new();
    walker.atomics(of, &patch, "", &mut atomics);
    if !atomics.is_empty() {
        let paths = atomics.join(", ");
        return Err(format!("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {paths}"));
    }
    // Until 1.34 the object itself could not be merged into if a list in it has two elements with the same keys.
    if minor < Minor::V1_35 && walker.has_duplicates(of, live) {
        return Err("failed to convert original object to typed object: a list in it has duplicate entries".to_owned());
    }
    let patch = patch.into_json();
    let merged = walker.merge(of, Some(live), Some(&patch)).map_err(|text| format!("failed to merge patch: {text}"))?;
    Ok(merged.unwrap_or_default())
}

/// The identity of an element of a list that is merged.
#[derive(Clone, Debug, PartialEq)]
enum Key {
    Fields(Vec<(String, Json)>),
    Value(Json),
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fields(fields) => {
                let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={value}]"),
        }
    }
}

#[derive(Clone, Copy)]
struct Walker<'s> {
    schemas: &'s Schemas,
}

impl<'s> Walker<'s> {
    /// Whether a patch is of the type.
    fn validate(self, of: TypeRef<'s>, value: &Native) -> Result<(), String> {
        let mut mistakes = Vec::new();
        self.check(of, value, "", &mut mistakes);
        match mistakes.as_slice() {
            [] => Ok(()),
            [one] => Err(one.to_string()),
            all => Err(format!("errors:\n{}", all.iter().map(|one| format!("  {one}")).collect::<Vec<_>>().join("\n"))),
        }
    }

    fn check(self, of: TypeRef<'s>, value: &Native, path: &str, mistakes: &mut Mistakes) {
        let mut wrong = |text: String| mistakes.push(Mistake { path: path.to_owned(), text });
        let Some(atom) = of.resolve(self.schemas) else { return wrong("schema error: no type found".to_owned()) };
        let atom = deduce(atom, kind_of_native(value));
        let pointer = || format!("&{{{}}}", value.plain());
        match (atom, value) {
            (Atom { map: Some(of), .. }, Native::Map(fields)) => {
                for (name, value) in fields {
                    let path = format!("{path}.{name}");
                    match of.field(name) {
                        Some(of) => self.check(of, value, &path, mistakes),
                        None => mistakes.push(Mistake { path, text: "field not declared in schema".to_owned() }),
                    }
                }
            }
            (Atom { map: Some(_), .. } | Atom { list: Some(_), .. }, Native::Null) => {}
            (Atom { map: Some(_), .. }, _) => wrong(format!("expected map, got {}", pointer())),
            (Atom { scalar: Some(of), .. }, value) => {
                if let Some(text) = scalar_mistake(of, value) {
                    wrong(text);
                }
            }
            (Atom { list: Some(of), .. }, Native::List(items)) => self.check_items(&of, items, path, mistakes),
            (Atom { list: Some(_), .. }, _) => wrong(format!("expected list, got {}", pointer())),
            _ => wrong("schema error: invalid atom: inlined".to_owned()),
        }
    }

    fn check_items(self, of: &ListType<'s>, items: &[Native], path: &str, mistakes: &mut Mistakes) {
        let mut seen = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let place = if of.atomic {
                format!("[{index}]")
            } else {
                match self.key(of, &item.clone().into_json(), index) {
                    Ok(key) => {
                        if seen.contains(&key) {
                            let text = format!("duplicate entries for key {key}");
                            mistakes.push(Mistake { path: path.to_owned(), text });
                        }
                        let place = key.to_string();
                        seen.push(key);
                        place
                    }
                    Err(text) => return mistakes.push(Mistake { path: path.to_owned(), text }),
                }
            };
            self.check(of.element, item, &format!("{path}{place}"), mistakes);
        }
    }

    fn key(self, of: &ListType<'s>, item: &Json, index: usize) -> Result<Key, String> {
        self.element_key(of, item).map_err(|text| format!("element {index}: {text}"))
    }

    fn element_key(self, of: &ListType<'s>, item: &Json) -> Result<Key, String> {
        if of.keys.is_empty() {
            return match item {
                Json::Object(_) => Err("associative list without keys has an element that's a map type"),
                Json::Array(_) => Err("not supported: associative list with lists as elements"),
                Json::Null => Err("associative list without keys has an element that's an explicit null"),
                scalar => Ok(Key::Value(scalar.clone())),
            }
            .map_err(str::to_owned);
        }
        let fields = match item {
            Json::Null => return Err("associative list with keys may not have a null element".to_owned()),
            Json::Object(fields) => fields,
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let element = of.element.resolve(self.schemas).and_then(|atom| atom.map);
        let default = |name: &str| element.as_ref().and_then(|element| element.default(name));
        let mut key: Vec<(String, Json)> = Vec::new();
        for name in &of.keys {
            if let Some(value) = fields.get(*name).or_else(|| default(name)) {
                key.push(((*name).to_owned(), value.clone()));
            }
        }
        if key.is_empty() {
            let names: Vec<_> = of.keys.iter().map(|name| quote(name)).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
                 values for any key fields)",
                names.join(" ")
            ));
        }
        key.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Key::Fields(key))
    }

    /// Paths of what the patch has in it and could only replace as a whole.
    fn atomics(self, of: TypeRef<'s>, value: &Native, path: &str, found: &mut Vec<String>) {
        let Some(atom) = of.resolve(self.schemas) else { return };
        match value {
            Native::Map(fields) => {
                let Some(of) = atom.map else { return };
                if of.atomic {
                    found.push(path.to_owned());
                }
                for (name, value) in fields {
                    if let Some(of) = of.declared(name) {
                        self.atomics(of, value, &format!("{path}.{name}"), found);
                    }
                }
            }
            Native::List(items) => {
                let Some(of) = atom.list else { return };
                if of.atomic {
                    found.push(path.to_owned());
                }
                for (index, item) in items.iter().enumerate() {
                    self.atomics(of.element, item, &format!("{path}[{index}]"), found);
                }
            }
            _ => {}
        }
    }

    fn has_duplicates(self, of: TypeRef<'s>, value: &Json) -> bool {
        let Some(atom) = of.resolve(self.schemas) else { return false };
        match (value, atom) {
            (Json::Object(fields), Atom { map: Some(of), .. }) => {
                fields.iter().any(|(name, value)| of.field(name).is_some_and(|of| self.has_duplicates(of, value)))
            }
            (Json::Array(items), Atom { list: Some(of), .. }) => {
                let mut seen = Vec::new();
                for item in items {
                    if self.has_duplicates(of.element, item) {
                        return true;
                    }
                    if let (false, Ok(key)) = (of.atomic, self.element_key(&of, item)) {
                        if seen.contains(&key) {
                            return true;
                        }
                        seen.push(key);
                    }
                }
                false
            }
            _ => false,
        }
    }

    /// Merges: what the patch has wins. None if nothing is left.
    fn merge(self, of: TypeRef<'s>, live: Option<&Json>, patch: Option<&Json>) -> Result<Option<Json>, String> {
        let atom = of.resolve(self.schemas).ok_or("schema error: no type found")?;
        let decisive = patch.or(live);
        let atom = deduce(atom, decisive.map_or(Kind::Null, kind_of));
        let leaf = || Ok(decisive.cloned());
        match atom {
            Atom { map: Some(of), .. } => {
                let live = live.and_then(Json::as_object);
                let patch_fields = patch.and_then(Json::as_object);
                let empty = |map: Option<&serde_json::Map<String, Json>>| map.is_none_or(serde_json::Map::is_empty);
                if of.atomic || (empty(live) && empty(patch_fields)) {
                    return leaf();
                }
                self.merge_maps(&of, live, patch_fields)
            }
            Atom { scalar: Some(_), .. } => leaf(),
            Atom { list: Some(of), .. } => {
                let (live, patch_items) = (items(live), items(patch));
                if of.atomic || (live.is_empty() && patch_items.is_empty()) {
                    return leaf();
                }
                self.merge_lists(&of, &live, &patch_items)
            }
            Atom { .. } => Err("schema error: invalid atom: inlined".to_owned()),
        }
    }

    fn merge_maps(
        self,
        of: &MapType<'s>,
        live: Option<&serde_json::Map<String, Json>>,
        patch: Option<&serde_json::Map<String, Json>>,
    ) -> Result<Option<Json>, String> {
        let mut out = serde_json::Map::new();
        let live_names = live.into_iter().flatten().map(|(name, _)| name);
        let names = live_names.chain(patch.into_iter().flatten().map(|(name, _)| name));
        for name in names {
            if out.contains_key(name) {
                continue;
            }
            let field = |map: Option<&'_ serde_json::Map<String, Json>>| map.and_then(|map| map.get(name)).cloned();
            let (left, right) = (field(live), field(patch));
            let merged = match of.field(name) {
                Some(of) => self.merge(of, left.as_ref(), right.as_ref())?,
                None => return Err(format!(".{name}: field not declared in schema")),
            };
            if let Some(merged) = merged {
                out.insert(name.clone(), merged);
            }
        }
        Ok((!out.is_empty()).then_some(Json::Object(out)))
    }

    /// Merges lists by keys (`visitListItems`): the order of the patch wins for what both have, and what only the object
    /// has stays where it is relative to that.
    fn merge_lists(self, of: &ListType<'s>, live: &[&Json], patch: &[&Json]) -> Result<Option<Json>, String> {
        let keys = |items: &[&Json]| {
            items.iter().enumerate().map(|(index, item)| self.key(of, item, index)).collect::<Result<Vec<_>, _>>()
        };
        let (left_keys, right_keys) = (keys(live)?, keys(patch)?);
        let null = Json::Null;
        // Of elements with the same keys there is no telling which one is meant.
        let left = |key: &Key| {
            let mut found = left_keys.iter().zip(live).filter(|(other, _)| *other == key).map(|(_, item)| *item);
            match (found.next(), found.next()) {
                (Some(_), Some(_)) => Some(&null),
                (found, _) => found,
            }
        };
        let right = |key: &Key| right_keys.iter().zip(patch).find(|(other, _)| *other == key).map(|(_, item)| *item);
        let mut shared: std::collections::VecDeque<&Key> =
            right_keys.iter().filter(|key| left(key).is_some()).collect();
        let mut next = shared.pop_front();
        let mut merged_keys: Vec<&Key> = Vec::new();
        let mut out = Vec::new();
        let mut push = |item: Result<Option<Json>, String>| item.map(|item| out.extend(item));
        let (mut l, mut r) = (0, 0);
        while l < live.len() || r < patch.len() {
            if let (Some(key), Some(other)) = (left_keys.get(l), right_keys.get(r)) {
                if key == other {
                    merged_keys.push(key);
                    push(self.merge(of.element, left(key), right(key)))?;
                    l += 1;
                    r += 1;
                    next = shared.pop_front();
                    continue;
                }
                if right(key).is_some() && next.is_some_and(|next| next != key) {
                    // Shared, but not its turn.
                    l += 1;
                    continue;
                }
            }
            if let Some(key) = left_keys.get(l) {
                if right(key).is_none() {
                    push(self.merge(of.element, Some(live[l]), None))?;
                    l += 1;
                    continue;
                }
                if merged_keys.contains(&key) {
                    l += 1;
                }
            }
            if let Some(key) = right_keys.get(r) {
                merged_keys.push(key);
                push(self.merge(of.element, left(key), right(key)))?;
                r += 1;
                if next == Some(key) {
                    next = shared.pop_front();
                }
            }
        }
        Ok((!out.is_empty()).then_some(Json::Array(out)))
    }
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() { f.write_str(&self.text) } else { write!(f, "{}: {}", self.path, self.text) }
    }
}

fn items(value: Option<&Json>) -> Vec<&Json> {
    value.and_then(Json::as_array).map_or_else(Vec::new, |items| items.iter().collect())
}

fn kind_of(value: &Json) -> Kind {
    match value {
        Json::Null => Kind::Null,
        Json::Array(_) => Kind::List,
        Json::Object(_) => Kind::Map,
        _ => Kind::Scalar,
    }
}

fn kind_of_native(value: &Native) -> Kind {
    match value {
        Native::Null | Native::Other { .. } => Kind::Null,
        Native::List(_) => Kind::List,
        Native::Map(_) => Kind::Map,
        _ => Kind::Scalar,
    }
}

fn scalar_mistake(of: Scalar, value: &Native) -> Option<String> {
    let pointer = || format!("&{{{}}}", value.plain());
    match (of, value) {
        (_, Native::Null)
        | (Scalar::Numeric | Scalar::Untyped, Native::Number(_))
        | (Scalar::String | Scalar::Untyped, Native::String(_))
        | (Scalar::Boolean | Scalar::Untyped, Native::Bool(_)) => None,
        (Scalar::Numeric, _) => Some(format!("expected numeric (int or float), got {}", value.go_type())),
        (Scalar::String, _) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", value.sharp()))
        }
        (Scalar::Boolean, _) => Some(format!("expected boolean, got {}", pointer())),
        (Scalar::Untyped, _) => Some(format!("expected any scalar, got {}", pointer())),
    }
}
