//! Small helpers that build pods as JSON.

use serde_json::{Value as Json, json};

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

/// Sets the field below `spec`, making the objects on the way to it.
pub fn set(pod: &mut Json, path: &[&str], value: Json) {
    set_below(&mut pod["spec"], path, value);
}

/// Sets a field of every container.
pub fn set_containers(pod: &mut Json, path: &[&str], value: &Json) {
    for kind in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = pod["spec"].get_mut(kind).and_then(Json::as_array_mut);
        for container in containers.into_iter().flatten() {
            set_below(container, path, value.clone());
        }
    }
}

/// Sets a field of the first container.
pub fn set_container(pod: &mut Json, path: &[&str], value: Json) {
    set_below(&mut pod["spec"]["containers"][0], path, value);
}

fn set_below(object: &mut Json, path: &[&str], value: Json) {
    let mut at = object;
    for key in path {
        at = &mut at[*key];
    }
    *at = value;
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
                for (index, item) in items.iter().enumerate() {
                    if target[key].get(index).is_none() {
                        let added = json!({"name": format!("added-{index}"), "image": "palisade.invalid/added:1"});
                        if let Some(list) = target[key].as_array_mut() {
                            list.push(added);
                        }
                    }
                    merge(&mut target[key][index], item);
                }
            }
            _ => merge(&mut target[key], value),
        }
    }
}
