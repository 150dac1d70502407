//! The subresource `scale`: how it shows an object, and how its change changes the object (`ScaleREST` in
//! `pkg/registry/apps/*/storage` and in apiextensions-apiserver `pkg/registry/customresource`).

use palisade_kube_json::json::Change as _;
use serde_json::{Map, Value, json};

use super::custom::Custom;
use crate::validation::{list, text};

/// Where an object has what its scale shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Paths {
    /// Where the wanted number is; below it the observed one.
    pub spec: Vec<String>,
    status: Vec<String>,
    /// Where a custom resource has the text of its selector. Built-in kinds have selectors.
    selector: Option<Vec<String>>,
    is_custom: bool,
}

/// Where the objects of a definition have it, or those of the built-in kinds that can be scaled.
pub(super) fn paths(custom: Option<&Custom>, version: &str) -> Paths {
    let split = |path: &str| path.trim_start_matches('.').split('.').map(str::to_owned).collect::<Vec<_>>();
    let declared = custom.and_then(|custom| custom.scale(version));
    let path = |key: &str| declared.map(|scale| text(scale, key)).filter(|path| !path.is_empty());
    Paths {
        spec: split(path("specReplicasPath").unwrap_or(".spec.replicas")),
        status: split(path("statusReplicasPath").unwrap_or(".status.replicas")),
        selector: path("labelSelectorPath").map(split),
        is_custom: custom.is_some(),
    }
}

fn at<'v>(object: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, key| value.get(key))
}

/// The scale of an object.
pub(super) fn of(object: &Value, paths: &Paths) -> Value {
    let mut metadata = Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(key).filter(|value| !value.is_null()) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    let number = |path: &[String]| at(object, path).and_then(Value::as_i64).unwrap_or(0);
    let selector = if paths.is_custom {
        paths.selector.as_ref().and_then(|path| at(object, path)).and_then(Value::as_str).unwrap_or_default().to_owned()
    } else {
        selector(&object["spec"]["selector"])
    };
    json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata,
        "spec": {"replicas": number(&paths.spec)},
        "status": {"replicas": number(&paths.status), "selector": selector},
    })
}

/// The object with the number of replicas of a scale.
pub(super) fn scaled(object: &Value, paths: &Paths, scale: &Value) -> Value {
    let mut object = object.clone();
    let mut place = &mut object;
    for key in &paths.spec {
        if !place.is_object() {
            *place = json!({});
        }
        place = place.at_mut(&[key.as_str()]);
    }
    *place = json!(scale["spec"]["replicas"].as_i64().unwrap_or(0));
    object
}

/// A selector as text (`labels.Selector.String`), in the order of its keys.
fn selector(selector: &Value) -> String {
    let is_map = selector.as_object().is_some_and(|of| of.values().all(Value::is_string));
    let exact = if is_map { selector } else { &selector["matchLabels"] };
    let mut parts: Vec<(String, String)> = exact
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect();
    if !is_map {
        parts.extend(list(selector, "matchExpressions").iter().map(|requirement| {
            let key = text(requirement, "key");
            let mut values: Vec<_> = list(requirement, "values").iter().filter_map(Value::as_str).collect();
            values.sort_unstable();
            let values = values.join(",");
            let shown = match text(requirement, "operator") {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "Exists" => key.to_owned(),
                _ => format!("!{key}"),
            };
            (key.to_owned(), shown)
        }));
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    parts.into_iter().map(|(_, shown)| shown).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_printed_like_the_api_server() {
        for (of, wanted) in [
            (json!({"b": "2", "a": "1"}), "a=1,b=2"),
            (
                json!({"matchLabels": {"m": ""}, "matchExpressions": [
                    {"key": "z", "operator": "NotIn", "values": ["2", "1"]}, {"key": "a", "operator": "DoesNotExist"},
                    {"key": "n", "operator": "Exists"}, {"key": "c", "operator": "In", "values": ["y"]},
                ]}),
                "!a,c in (y),m=,n,z notin (1,2)",
            ),
            (json!({}), ""),
        ] {
            assert_eq!(selector(&of), wanted);
        }
    }
}
