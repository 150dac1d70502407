//! Changes of JSON, whatever is in it. `value["a"]["b"] = ...` panics if a part of the path is a text or a list, and
//! users may write anything.

use serde_json::{Map, Value as Json};

/// JSON that can be changed.
pub trait Change {
    /// The value at a path, to change it; replaces everything on the path that is not an object.
    fn at_mut(&mut self, path: &[&str]) -> &mut Json;
}

impl Change for Json {
    fn at_mut(&mut self, path: &[&str]) -> &mut Json {
        let mut at = self;
        for key in path {
            if !at.is_object() {
                *at = Json::Object(Map::new());
            }
            // An index creates a missing field of an object. Here, it is known to be an object.
            at = &mut at[*key];
        }
        at
    }
}

impl Change for Map<String, Json> {
    fn at_mut(&mut self, path: &[&str]) -> &mut Json {
        let (first, rest) = path.split_first().map_or(("", path), |(first, rest)| (*first, rest));
        self.entry(first).or_insert(Json::Null).at_mut(rest)
    }
}

/// Sets the field at a path, as [`Change::at_mut`] finds it.
pub fn set(value: &mut Json, path: &[&str], to: impl Into<Json>) {
    *value.at_mut(path) = to.into();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn set_replaces_values_in_the_way() {
        for before in
            [json!(null), json!("x"), json!([1]), json!({"a": 7}), json!({"a": ["x"]}), json!({"a": {"b": 1}})]
        {
            let mut after = before.clone();
            set(&mut after, &["a", "b"], true);
            assert_eq!(after, json!({"a": {"b": true}}), "{before}");
        }
        let mut kept = json!({"a": {"c": 1}});
        set(&mut kept, &["a", "b"], json!(null));
        assert_eq!(kept, json!({"a": {"b": null, "c": 1}}));
    }
}
