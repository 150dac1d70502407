//! Changing JSON whatever is in it. `value["a"]["b"] = ...` panics where something on the way is a text or a list, and
//! what a user has written may be anything.

use serde_json::{Map, Value as Json};

/// The part at a path, to be changed: with objects on the way to it, in place of whatever else is there.
pub fn at<'j>(value: &'j mut Json, path: &[&str]) -> &'j mut Json {
    let mut at = value;
    for key in path {
        if !at.is_object() {
            *at = Json::Object(Map::new());
        }
        // Of an object this makes the field if there is none. It is the only place where a mistake could not panic.
        at = &mut at[*key];
    }
    at
}

/// Sets the field at a path, as [`at`] finds it.
pub fn set(value: &mut Json, path: &[&str], to: impl Into<Json>) {
    *at(value, path) = to.into();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whatever_is_there_makes_place() {
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
