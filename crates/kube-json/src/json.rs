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

/// Applies a JSON merge patch (RFC 7396).
pub fn merge(target: &mut Json, patch: &Json) {
    let Json::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Json::Object(Map::new());
    }
    let Json::Object(fields) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Json::Null), value);
        }
    }
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

    #[test]
    fn merge_patch_follows_rfc_7396() {
        // Appendix A of RFC 7396.
        for (target, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut merged = target.clone();
            merge(&mut merged, &patch);
            assert_eq!(merged, expected, "{target} {patch}");
        }
    }
}
