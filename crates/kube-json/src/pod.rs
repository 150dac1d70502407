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

/// Applies a JSON merge patch, except that the containers of a pod are merged one by one, so that a fixture need not
/// repeat the whole container.
pub fn merge(target: &mut Json, patch: &Json) {
    let mut patch = patch.clone();
    complete(target, &mut patch);
    json::merge(target, &patch);
}

/// Replaces the containers in a patch by the merged containers.
fn complete(target: &Json, patch: &mut Json) {
    for (key, value) in patch.as_object_mut().into_iter().flatten() {
        match (&target[key], value) {
            (Json::Array(list), Json::Array(items)) if key == "containers" => {
                let mut list = list.clone();
                for (index, item) in items.iter().enumerate() {
                    if list.len() <= index {
                        list.push(json!({"name": format!("added-{index}"), "image": "palisade.invalid/added:1"}));
                    }
                    merge(&mut list[index], item);
                }
                *items = list;
            }
            (target, value) => complete(target, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_merged_one_by_one() {
        let mut pod = minimal("a");
        let patch = json!({"metadata": null, "spec": {
            "automountServiceAccountToken": null,
            "containers": [{"image": "b", "command": ["x"]}, {"image": "c"}],
            "volumes": [{"name": "v"}],
        }});
        merge(&mut pod, &patch);
        let containers = json!([{"name": "main", "image": "b", "command": ["x"]}, {"name": "added-1", "image": "c"}]);
        let spec = json!({"containers": containers, "volumes": [{"name": "v"}]});
        assert_eq!(pod, json!({"apiVersion": "v1", "kind": "Pod", "spec": spec}));
    }
}
