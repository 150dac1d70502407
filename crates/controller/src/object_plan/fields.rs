//! Whether an object still has all fields as they were applied, by the `managedFields` of server-side apply.
//!
//! The API server removes a field from the entry of its owner when another client changes the value. So the entry lists
//! exactly the applied fields that no other client has changed since. This also finds changes in values that the API server
//! writes differently, such as quantities, and in lists and maps that are replaced as a whole.

use serde_json::{Map, Value as Json};

/// True if the fields of the entry contain all fields of the applied object.
pub fn contains(fields: &Json, applied: &Json) -> bool {
    let Json::Object(applied) = applied else { return false };
    applied.iter().all(|(key, value)| match key.as_str() {
        "apiVersion" | "kind" => true,
        // The name and the namespace are not fields of an owner.
        "metadata" => ["labels", "annotations"].into_iter().all(|part| {
            let empty = Json::Object(Map::new());
            let metadata = fields.get("f:metadata").unwrap_or(&empty);
            value.get(part).is_none_or(|value| field(metadata, part, value))
        }),
        _ => field(fields, key, value),
    })
}

/// True if a field with all its parts is in the set.
fn field(set: &Json, key: &str, value: &Json) -> bool {
    set.get(format!("f:{key}")).is_some_and(|set| covers(set, value))
}

fn covers(set: &Json, value: &Json) -> bool {
    // A value that is owned as a whole has no parts in the set.
    if set.as_object().is_none_or(Map::is_empty) {
        return true;
    }
    match value {
        Json::Object(fields) => fields.iter().all(|(key, value)| field(set, key, value)),
        Json::Array(elements) => elements.iter().enumerate().all(|(index, element)| is_in(set, index, element)),
        _ => true,
    }
}

/// True if an element of a list is in the set: by its value, by its key fields, or by its index.
fn is_in(set: &Json, index: usize, element: &Json) -> bool {
    set.as_object().into_iter().flatten().any(|(key, parts)| match key.split_once(':') {
        Some(("v", value)) => serde_json::from_str::<Json>(value).is_ok_and(|value| value == *element),
        Some(("k", keys)) => {
            let Ok(Json::Object(keys)) = serde_json::from_str::<Json>(keys) else { return false };
            // A key field that is not set has its default.
            keys.iter().all(|(key, value)| element.get(key).is_none_or(|found| found == value))
                && covers(parts, element)
        }
        Some(("i", at)) => at.parse() == Ok(index) && covers(parts, element),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn applied() -> Json {
        json!({
            "apiVersion": "v1", "kind": "X",
            "metadata": {"name": "x", "namespace": "a", "labels": {"l": "1"}, "annotations": {"a/b": "2"}},
            "spec": {
                "hard": {"pods": 10}, "podSelector": {}, "ingress": [],
                "ports": [{"port": 80, "name": "http"}], "finalizers": ["x"],
            },
        })
    }

    fn fields() -> Json {
        json!({
            "f:metadata": {"f:labels": {"f:l": {}}, "f:annotations": {"f:a/b": {}}},
            "f:spec": {
                "f:hard": {"f:pods": {}}, "f:podSelector": {}, "f:ingress": {},
                "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}}},
                "f:finalizers": {".": {}, "v:\"x\"": {}},
            },
        })
    }

    #[test]
    fn unchanged_object_has_all_applied_fields() {
        assert!(contains(&fields(), &applied()));
    }

    #[test]
    fn each_field_that_another_client_changed_is_missing() {
        let lost = [
            "/f:metadata/f:labels/f:l",
            "/f:metadata/f:annotations/f:a~1b",
            "/f:metadata/f:annotations",
            "/f:metadata",
            "/f:spec/f:hard/f:pods",
            "/f:spec/f:podSelector",
            "/f:spec/f:ingress",
            "/f:spec/f:ports/k:{\"port\":80,\"protocol\":\"TCP\"}",
            "/f:spec/f:ports/k:{\"port\":80,\"protocol\":\"TCP\"}/f:name",
            "/f:spec/f:finalizers/v:\"x\"",
            "/f:spec",
        ];
        for pointer in lost {
            let mut fields = fields();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let parent = fields.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            assert!(parent.remove(&key.replace("~1", "/")).is_some(), "{pointer}");
            // A parent without parts would be owned as a whole.
            parent.entry(".").or_insert(json!({}));
            assert!(!contains(&fields, &applied()), "{pointer}");
        }
        assert!(!contains(&Json::Null, &applied()));
    }

    /// Entries are data of the cluster.
    #[test]
    fn malformed_entry_lists_no_element() {
        for key in ["", ":", "v:", "v:{", "k:", "k:[]", "k:7", "k:{\"port\":81}", "i:", "i:x", "i:-1", "x:1", "."] {
            let fields = json!({"f:spec": {"f:ports": {key: {"f:port": "x"}}}});
            let applied = json!({"spec": {"ports": [{"port": 80}]}});
            assert!(!contains(&fields, &applied), "{key}");
        }
    }
}
