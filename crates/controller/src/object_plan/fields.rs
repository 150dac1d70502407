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
    use proptest::{
        collection::{btree_map, btree_set, vec},
        prelude::*,
    };
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

    /// A value with the entry that the API server writes for it: scalars, values that are owned as a whole, maps, lists by
    /// key and sets.
    fn owned() -> impl Strategy<Value = (Json, Json)> {
        let scalar =
            || prop_oneof![any::<i32>().prop_map(Json::from), "[a-z~/\\.]{0,4}".prop_map(Json::from), Just(Json::Null)];
        let whole = vec(scalar(), 0..3).prop_map(Json::from);
        let leaf = prop_oneof![3 => scalar(), 1 => whole].prop_map(|value| (value, json!({})));
        leaf.prop_recursive(4, 24, 4, move |inner| {
            let map = btree_map("[a-z/]{1,4}", inner, 1..4);
            let object = map.clone().prop_map(|map| {
                let (value, set): (Map<_, _>, Map<_, _>) = map
                    .into_iter()
                    .map(|(key, (value, set))| ((key.clone(), value), (format!("f:{key}"), set)))
                    .unzip();
                (Json::from(value), Json::from(set))
            });
            let by_key = btree_map(0..9_u8, map, 1..4).prop_map(|elements| {
                let (list, set): (Vec<_>, Map<_, _>) = elements
                    .into_iter()
                    .map(|(port, map)| {
                        let mut element = Map::from_iter([("port#".to_owned(), Json::from(port))]);
                        let mut parts =
                            Map::from_iter([(".".to_owned(), json!({})), ("f:port#".to_owned(), json!({}))]);
                        for (key, (value, set)) in map {
                            element.insert(key.clone(), value);
                            parts.insert(format!("f:{key}"), set);
                        }
                        let key = format!("k:{}", json!({"port#": port, "protocol#": "TCP"}));
                        (Json::from(element), (key, Json::from(parts)))
                    })
                    .unzip();
                (Json::from(list), Json::from(set))
            });
            let values = btree_set("[a-z\"]{0,3}", 1..4).prop_map(|values| {
                let set: Map<_, _> = values.iter().map(|one| (format!("v:{}", json!(one)), json!({}))).collect();
                (Json::from_iter(values), Json::from(set))
            });
            prop_oneof![object, by_key, values]
        })
    }

    /// All entries without one of their parts. A part without parts goes with the last of them.
    fn losses(set: &Json) -> Vec<Json> {
        let mut found = Vec::new();
        for (key, parts) in set.as_object().into_iter().flatten().filter(|(key, _)| *key != ".") {
            let with = |parts: Option<Json>| {
                let mut set = set.clone();
                let all = set.as_object_mut().unwrap();
                match parts {
                    Some(parts) => all.insert(key.clone(), parts),
                    None => all.remove(key),
                };
                set
            };
            if parts.as_object().is_none_or(Map::is_empty) {
                found.push(with(None));
            }
            let empty = |parts: &Json| parts.as_object().is_none_or(Map::is_empty);
            found.extend(losses(parts).into_iter().map(|parts| with(Some(parts).filter(|parts| !empty(parts)))));
        }
        found
    }

    proptest! {
        /// Whatever is lost is written again, and nothing is written without a loss.
        #[test]
        fn every_lost_field_is_found(
            spec in owned(), labels in btree_map("[a-z/]{1,4}", "[a-z]{0,3}", 1..3), foreign in "[A-Z]{1,4}",
        ) {
            let marks: Map<_, _> = labels.keys().map(|key| (format!("f:{key}"), json!({}))).collect();
            let applied = json!({"kind": "X", "metadata": {"name": "x", "labels": labels}, "spec": spec.0});
            let mut set = json!({"f:metadata": {"f:labels": marks}, "f:spec": spec.1});
            prop_assert!(contains(&set, &applied));
            for lost in losses(&set) {
                prop_assert!(!contains(&lost, &applied), "{lost}");
            }
            // A field of the same manager that is no longer in the template does not hide a loss, and is none.
            set.as_object_mut().unwrap().insert(format!("f:{foreign}"), json!({}));
            prop_assert!(contains(&set, &applied));
        }
    }
}
