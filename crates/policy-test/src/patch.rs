//! Changes of objects: fields by path.

use serde_json::{Map, Value as Json};

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
}

/// Sets the value at a path, and creates missing objects on the way. An index may be one beyond the end of its list.
///
/// # Errors
/// Why that is not possible.
pub fn set(target: &mut Json, path: &str, value: Json) -> Result<(), String> {
    let mut at = target;
    for step in steps(path)? {
        at = match step {
            Step::Field(name) => {
                if at.is_null() {
                    *at = Json::Object(Map::new());
                }
                let fields = at.as_object_mut().ok_or_else(|| format!("the parent of {name:?} is not a mapping"))?;
                fields.entry(name).or_insert(Json::Null)
            }
            Step::Index(index) => {
                if at.is_null() {
                    *at = Json::Array(Vec::new());
                }
                let list = at.as_array_mut().ok_or_else(|| format!("the parent of [{index}] is not a list"))?;
                if index > list.len() {
                    return Err(format!("[{index}] is beyond the end of a list of {}", list.len()));
                }
                if index == list.len() {
                    list.push(Json::Null);
                }
                &mut list[index]
            }
        };
    }
    *at = value;
    Ok(())
}

/// Removes the value at a path.
///
/// # Errors
/// There is no value, or the path is invalid.
pub fn unset(target: &mut Json, path: &str) -> Result<(), String> {
    let nothing = || format!("there is nothing at {path}");
    let mut steps = steps(path)?;
    let last = steps.pop().ok_or_else(nothing)?;
    let mut at = target;
    for step in steps {
        at = match step {
            Step::Field(name) => at.get_mut(name),
            Step::Index(index) => at.get_mut(index),
        }
        .ok_or_else(nothing)?;
    }
    match (last, at) {
        (Step::Field(name), Json::Object(fields)) => fields.remove(&name).map(drop).ok_or_else(nothing),
        (Step::Index(index), Json::Array(list)) if index < list.len() => {
            list.remove(index);
            Ok(())
        }
        _ => Err(nothing()),
    }
}

/// `a.b[0]['c.d']` in its steps.
fn steps(path: &str) -> Result<Vec<Step>, String> {
    let wrong = |what: &str| format!("{path:?} is not a valid path: {what}");
    let (mut steps, mut rest) = (Vec::new(), path);
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            if let Some(quote @ ('\'' | '"')) = inner.chars().next() {
                let (name, tail) = inner[1..].split_once([quote]).ok_or_else(|| wrong("a quote is not closed"))?;
                steps.push(Step::Field(name.to_owned()));
                rest = tail.strip_prefix(']').ok_or_else(|| wrong("a bracket is not closed"))?;
            } else {
                let (index, tail) = inner.split_once(']').ok_or_else(|| wrong("a bracket is not closed"))?;
                steps.push(Step::Index(index.parse().map_err(|_| wrong("an index is a number"))?));
                rest = tail;
            }
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            if end == 0 {
                return Err(wrong("a name is empty"));
            }
            steps.push(Step::Field(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        if let Some(tail) = rest.strip_prefix('.') {
            if tail.is_empty() {
                return Err(wrong("it ends with a dot"));
            }
            rest = tail;
        }
    }
    if steps.is_empty() { Err(wrong("it is empty")) } else { Ok(steps) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn object_paths_can_be_set_and_unset() {
        let mut object = json!({"a": {"b": [1]}});
        set(&mut object, "a.b[1].c", json!(2)).unwrap();
        set(&mut object, "a['x.y/z'].w", json!("v")).unwrap();
        assert_eq!(object, json!({"a": {"b": [1, {"c": 2}], "x.y/z": {"w": "v"}}}));
        unset(&mut object, "a.b[0]").unwrap();
        unset(&mut object, "a[\"x.y/z\"].w").unwrap();
        assert_eq!(object, json!({"a": {"b": [{"c": 2}], "x.y/z": {}}}));
        for path in ["", ".", "a.", "a..b", "a[", "a[x]", "a['b", "a['b'", "a.b[7]", "a.b.c", "a[0]"] {
            assert!(set(&mut object, path, json!(1)).is_err(), "{path}");
            assert!(unset(&mut object, path).is_err(), "{path}");
        }
    }
}
