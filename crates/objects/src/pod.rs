//! Small helpers that build pods as JSON.

use serde_json::{Value as Json, json};

use crate::json::{self, Change as _};

/// The smallest pod that the API server accepts, named `name`: one container, no token, nothing set.
pub fn minimal(name: &str) -> Json {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [{"name": "main", "image": "palisade.invalid/main:1"}],
        },
    })
}

/// Sets the field below `spec`, and creates missing objects on the path.
pub fn set(pod: &mut Json, path: &[&str], value: Json) {
    json::set(pod.at_mut(&["spec"]), path, value);
}

/// Sets a field of every container.
pub fn set_containers(pod: &mut Json, path: &[&str], value: &Json) {
    for kind in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = pod.pointer_mut(&format!("/spec/{kind}")).and_then(Json::as_array_mut);
        for container in containers.into_iter().flatten() {
            json::set(container, path, value.clone());
        }
    }
}

/// Sets a field of the first container, if there is one.
pub fn set_container(pod: &mut Json, path: &[&str], value: Json) {
    if let Some(container) = pod.pointer_mut("/spec/containers/0") {
        json::set(container, path, value);
    }
}

/// RFC 7386 merge of `patch` into `target`: null removes a field. A list replaces a list, except that the
/// containers of a pod are merged one by one, so that a fixture need not repeat the whole container.
pub fn merge(target: &mut Json, patch: &Json) {
    let Json::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in fields {
        match value {
            Json::Null => {
                if let Some(object) = target.as_object_mut() {
                    object.remove(key);
                }
            }
            Json::Array(items) if key == "containers" && target[key].is_array() => {
                let Some(list) = target.get_mut(key).and_then(Json::as_array_mut) else { continue };
                for (index, item) in items.iter().enumerate() {
                    if list.len() <= index {
                        list.push(json!({"name": format!("added-{index}"), "image": "palisade.invalid/added:1"}));
                    }
                    merge(&mut list[index], item);
                }
            }
            _ => merge(target.at_mut(&[key]), value),
        }
    }
}
