//! JSON patches as the API server applies them (`gopkg.in/evanphx/json-patch.v4`), which is not quite RFC 6902: a
//! replaced value need not exist, and negative indices count from the end.

use palisade_cel::quote;
use serde_json::{Map, Value as Json};

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operation {
    pub op: String,
    pub path: String,
    pub from: String,
    /// None if it is absent, which is not the same as null.
    pub value: Option<Json>,
}

/// Why a patch is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// A `test` does not hold; the object stays as it is, and that is not an error.
    Test,
    /// The library's text.
    Error(String),
}

type PatchResult<T> = Result<T, Failure>;

/// The library's texts for a missing value and for an index outside of a list.
const MISSING: &str = "missing value";
const INVALID_INDEX: &str = "invalid index referenced";

fn error<T>(text: String) -> PatchResult<T> {
    Err(Failure::Error(text))
}

/// Applies all operations in order, or none.
pub(super) fn apply(document: &Json, operations: &[Operation]) -> PatchResult<Json> {
    let mut document = document.clone();
    for operation in operations {
        let Operation { op, path, from, value } = operation;
        match op.as_str() {
            "add" => {
                let (container, key) = find(&mut document, path).ok_or_else(|| missing_of("add", path))?;
                add(container, &key, value.clone().unwrap_or_default())
                    .or_else(|text| error(format!("error in add for path: '{path}': {text}")))?;
            }
            "remove" => {
                let (container, key) = find(&mut document, path).ok_or_else(|| missing_of("remove", path))?;
                remove(container, &key).or_else(|text| error(format!("error in remove for path: '{path}': {text}")))?;
            }
            "replace" => replace(&mut document, path, value.as_ref())?,
            "move" => relocate(&mut document, from, path)?,
            "copy" => copy(&mut document, from, path)?,
            "test" => test(&mut document, path, value.as_ref())?,
            _ => return error(format!("Unexpected kind: {op}")),
        }
    }
    Ok(document)
}

fn missing_of(op: &str, path: &str) -> Failure {
    Failure::Error(format!("{op} operation does not apply: doc is missing path: \"{path}\": {MISSING}"))
}

fn replace(document: &mut Json, path: &str, value: Option<&Json>) -> PatchResult<()> {
    if path.is_empty() {
        return match value {
            Some(value @ (Json::Object(_) | Json::Array(_))) => {
                *document = value.clone();
                Ok(())
            }
            _ => error("replace operation value must be object or array: %!w(<nil>)".to_owned()),
        };
    }
    let missing = |what: &str| format!("replace operation does not apply: doc is missing {what}: {path}: {MISSING}");
    let (container, key) = find(document, path).ok_or_else(|| Failure::Error(missing("path")))?;
    let value = value.cloned().unwrap_or_default();
    match container {
        Json::Array(items) => match index_of(&key, items.len()) {
            Ok(index) => items[index] = value,
            Err(_) => return error(missing("key")),
        },
        // What is not there is added.
        container => fields(container).insert(key, value).map_or((), drop),
    }
    Ok(())
}

fn relocate(document: &mut Json, from: &str, path: &str) -> PatchResult<()> {
    let missing = |what: &str, path: &str| {
        Failure::Error(format!("move operation does not apply: doc is missing {what} path: {path}: {MISSING}"))
    };
    check_from("move", from)?;
    let (container, key) = find(document, from).ok_or_else(|| missing("from", from))?;
    let in_move = |path: &str, text: String| Failure::Error(format!("error in move for path: '{path}': {text}"));
    let value = get(container, &key).map_err(|text| in_move(&key, text))?.cloned().unwrap_or_default();
    remove(container, &key).map_err(|text| in_move(&key, text))?;
    let (container, key) = find(document, path).ok_or_else(|| missing("destination", path))?;
    add(container, &key, value).map_err(|text| in_move(path, text))
}

fn copy(document: &mut Json, from: &str, path: &str) -> PatchResult<()> {
    let missing = |what: &str, path: &str| {
        Failure::Error(format!("copy operation does not apply: doc is missing {what} path: {path}: {MISSING}"))
    };
    check_from("copy", from)?;
    let (container, key) = find(document, from).ok_or_else(|| missing("from", from))?;
    let value = get(container, &key)
        .map_err(|text| Failure::Error(format!("error in copy for from: '{from}': {text}")))?
        .cloned()
        .unwrap_or_default();
    let (container, key) = find(document, path).ok_or_else(|| missing("destination", path))?;
    add(container, &key, value).or_else(|text| error(format!("error while adding value during copy: {text}")))
}

/// An empty `from` is not written into the patch.
fn check_from(op: &str, from: &str) -> PatchResult<()> {
    if from.is_empty() {
        return error(format!("{op} operation failed to decode from: operation, missing from field: {MISSING}"));
    }
    Ok(())
}

fn test(document: &mut Json, path: &str, value: Option<&Json>) -> PatchResult<()> {
    if path.is_empty() {
        return if value.is_some_and(|value| equal(document, value)) { Ok(()) } else { Err(Failure::Test) };
    }
    let (container, key) = find(document, path)
        .ok_or_else(|| Failure::Error(format!("test operation does not apply: is missing path: {path}: {MISSING}")))?;
    let found = get(container, &key)
        .map_err(|text| Failure::Error(format!("error in test for path: '{path}': {text}")))?
        // A null is absent in the document, and not in the patch.
        .filter(|found| !found.is_null());
    match (found, value) {
        (None, None) => Ok(()),
        (Some(found), Some(value)) if equal(found, value) => Ok(()),
        _ => Err(Failure::Test),
    }
}

/// The list or map that a path ends in, and the last part of the path. The first part, which is the text before the
/// first slash, is ignored.
fn find<'d>(document: &'d mut Json, path: &str) -> Option<(&'d mut Json, String)> {
    let parts: Vec<String> = path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    let [_, between @ .., last] = parts.as_slice() else { return None };
    let mut container = document;
    for part in between {
        container = match container {
            Json::Array(items) => {
                let index = index_of(part, items.len()).ok()?;
                &mut items[index]
            }
            Json::Object(fields) => fields.get_mut(part)?,
            _ => return None,
        };
    }
    matches!(container, Json::Array(_) | Json::Object(_)).then(|| (container, last.clone()))
}

fn get<'d>(container: &'d Json, key: &str) -> Result<Option<&'d Json>, String> {
    match container {
        Json::Array(items) => Ok(Some(&items[index_of(key, items.len())?])),
        container => Ok(container.get(key)),
    }
}

fn add(container: &mut Json, key: &str, value: Json) -> Result<(), String> {
    let Json::Array(items) = container else {
        fields(container).insert(key.to_owned(), value);
        return Ok(());
    };
    if key == "-" {
        items.push(value);
        return Ok(());
    }
    let index = parse(key).map_err(|text| format!("value was not a proper array index: '{key}': {text}"))?;
    let index = place(index, items.len() + 1)?;
    items.insert(index, value);
    Ok(())
}

fn remove(container: &mut Json, key: &str) -> Result<(), String> {
    if let Json::Array(items) = container {
        let index = index_of(key, items.len())?;
        items.remove(index);
        return Ok(());
    }
    match fields(container).remove(key) {
        Some(_) => Ok(()),
        None => Err(format!("Unable to remove nonexistent key: {key}: {MISSING}")),
    }
}

/// The fields of what [`find`] found.
fn fields(container: &mut Json) -> &mut Map<String, Json> {
    if !container.is_object() {
        *container = Json::Object(Map::new());
    }
    match container {
        Json::Object(fields) => fields,
        _ => unreachable!("made an object above"),
    }
}

fn index_of(key: &str, length: usize) -> Result<usize, String> {
    place(parse(key)?, length)
}

/// As `strconv.Atoi`.
fn parse(key: &str) -> Result<i64, String> {
    key.parse().map_err(|error: std::num::ParseIntError| {
        let what = match error.kind() {
            std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.Atoi: parsing {}: {what}", quote(key))
    })
}

fn place(index: i64, length: usize) -> Result<usize, String> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let placed = if index < 0 { index.saturating_add(length) } else { index };
    match usize::try_from(placed) {
        Ok(place) if placed < length => Ok(place),
        _ => Err(format!("Unable to access invalid index: {index}: {INVALID_INDEX}")),
    }
}

/// Whether both are the same JSON. Inside of `null` the library sees an empty map or list.
fn equal(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal_inside(value, other)))
        }
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal_inside(a, b)),
        (Json::Object(a), Json::Null) => a.is_empty(),
        (Json::Array(a), Json::Null) => a.is_empty(),
        (Json::Number(a), Json::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

fn equal_inside(a: &Json, b: &Json) -> bool {
    a.is_null() == b.is_null() && (a.is_null() || equal(a, b))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patch(op: &str, path: &str, from: &str, value: Option<Json>) -> Operation {
        Operation { op: op.to_owned(), path: path.to_owned(), from: from.to_owned(), value }
    }

    fn applied(op: &str, path: &str, from: &str, value: Option<Json>) -> PatchResult<Json> {
        let document = json!({"a": {"b": 1}, "l": [1, 2, 3], "n": null, "x/y": {"~": 1}});
        apply(&document, &[patch(op, path, from, value)])
    }

    #[test]
    fn json_patch_indexes_count_from_both_ends() {
        let list = |outcome: PatchResult<Json>| outcome.map(|document| document["l"].clone());
        assert_eq!(list(applied("add", "/l/-", "", Some(json!(4)))), Ok(json!([1, 2, 3, 4])));
        assert_eq!(list(applied("add", "/l/0", "", Some(json!(0)))), Ok(json!([0, 1, 2, 3])));
        assert_eq!(list(applied("add", "/l/-1", "", Some(json!(4)))), Ok(json!([1, 2, 3, 4])));
        assert_eq!(list(applied("remove", "/l/-1", "", None)), Ok(json!([1, 2])));
        assert_eq!(list(applied("replace", "/l/1", "", Some(json!(9)))), Ok(json!([1, 9, 3])));
        assert_eq!(
            applied("add", "/l/5", "", Some(json!(4))),
            Err(Failure::Error(
                "error in add for path: '/l/5': Unable to access invalid index: 5: invalid index referenced".to_owned()
            ))
        );
    }

    #[test]
    fn json_patch_replace_needs_only_an_existing_parent() {
        assert_eq!(applied("replace", "/a/c", "", Some(json!(2))).unwrap()["a"], json!({"b": 1, "c": 2}));
        assert!(matches!(applied("replace", "/c/d", "", Some(json!(2))), Err(Failure::Error(_))));
        assert!(matches!(applied("add", "/n/d", "", Some(json!(2))), Err(Failure::Error(_))));
    }

    #[test]
    fn keys_are_unescaped() {
        assert_eq!(applied("replace", "/x~1y/~0", "", Some(json!(2))).unwrap()["x/y"], json!({"~": 2}));
    }

    #[test]
    fn failed_test_operation_is_not_an_error() {
        assert_eq!(applied("test", "/a/b", "", Some(json!(2))), Err(Failure::Test));
        assert!(applied("test", "/a", "", Some(json!({"b": 1.0}))).is_ok());
        // Null in the object is nothing, in the patch it is something.
        assert!(applied("test", "/n", "", None).is_ok());
        assert_eq!(applied("test", "/n", "", Some(Json::Null)), Err(Failure::Test));
    }

    #[test]
    fn move_and_copy_operations_are_applied() {
        assert_eq!(applied("move", "/b", "/a/b", None).unwrap()["b"], json!(1));
        assert_eq!(applied("copy", "/a/c", "/l", None).unwrap()["a"]["c"], json!([1, 2, 3]));
        assert!(
            matches!(applied("move", "/b", "/a/zz", None), Err(Failure::Error(text)) if text.contains("nonexistent"))
        );
        assert!(
            matches!(applied("move", "/b", "", None), Err(Failure::Error(text)) if text.contains("missing from field"))
        );
    }
}
