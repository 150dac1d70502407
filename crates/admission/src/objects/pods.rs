//! The fields that the strategy of pods sets (`pkg/registry/core/pod/strategy.go`).

use palisade_cel::{Minor, Quantity};
use palisade_kube_json::json::Change as _;
use serde_json::{Map, Value, json};

use super::{
    defaults::pods::{is_pod_level, pod_level},
    gates::Gate,
    strategy::metadata,
};

type Object = Map<String, Value>;

/// `PrepareForCreate`.
pub(super) fn create(minor: Minor, pod: &mut Object, given: Option<&Value>, now: &str) {
    let labels = pod.get("metadata").map(|metadata| metadata["labels"].clone()).unwrap_or_default();
    let Some(spec) = pod.get_mut("spec") else { return };
    if Gate::PodLevelResourcesFixDefaulting.is_on(minor)
        && let Some(spec) = spec.as_object_mut()
    {
        pod_level(spec);
    }
    // The one that a client gives is believed, until then.
    let given = given.filter(|_| minor < Minor::V1_37);
    let given = given.and_then(|status| status["qosClass"].as_str()).filter(|class| !class.is_empty());
    let class = given.unwrap_or_else(|| quality(minor, spec));
    let mut status = json!({"phase": "Pending", "qosClass": class});
    if spec["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        *status.at_mut(&["conditions"]) = json!([{
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "lastTransitionTime": now,
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    for affinity in ["podAffinity", "podAntiAffinity"] {
        let list = |which: &str| format!("/affinity/{affinity}/{which}DuringSchedulingIgnoredDuringExecution");
        for term in spec.pointer_mut(&list("preferred")).and_then(Value::as_array_mut).into_iter().flatten() {
            by_keys(term.at_mut(&["podAffinityTerm"]), &labels);
        }
        for term in spec.pointer_mut(&list("required")).and_then(Value::as_array_mut).into_iter().flatten() {
            by_keys(term, &labels);
        }
    }
    if Gate::MatchLabelKeysInPodTopologySpreadSelectorMerge.is_on(minor) {
        for constraint in spec.at_mut(&["topologySpreadConstraints"]).as_array_mut().into_iter().flatten() {
            by_keys(constraint, &labels);
        }
    }
    app_armor(minor, pod);
    pod.insert("status".to_owned(), status);
}

/// Requires of other pods the labels that this one has, or others, for the keys that are listed.
fn by_keys(term: &mut Value, labels: &Value) {
    if term["labelSelector"].is_null() {
        return;
    }
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in term[keys].as_array().cloned().unwrap_or_default() {
            let Some(key) = key.as_str() else { continue };
            let value = &labels[key];
            if value.is_null() {
                continue;
            }
            let expressions = term.at_mut(&["labelSelector", "matchExpressions"]);
            if expressions.is_null() {
                *expressions = json!([]);
            }
            if let Some(expressions) = expressions.as_array_mut() {
                expressions.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    // Reading an absent key of a value makes it null.
    if let Some(term) = term.as_object_mut() {
        term.retain(|_, value| !value.is_null());
    }
}

/// The profiles of the former annotations become those of the containers; before 1.34 also the other way round.
fn app_armor(minor: Minor, pod: &mut Object) {
    let mut annotations = pod.get("metadata").map(|metadata| metadata["annotations"].clone()).unwrap_or_default();
    let Some(spec) = pod.get_mut("spec") else { return };
    if spec.pointer("/os/name").is_some_and(|os| os == "windows") {
        return;
    }
    let of_pod = spec.pointer("/securityContext/appArmorProfile").cloned();
    let mut added = false;
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default();
            let key = format!("container.apparmor.security.beta.kubernetes.io/{name}");
            let of_container = container.pointer("/securityContext/appArmorProfile");
            let Some(annotation) = annotations.get(&key) else {
                if let Some(text) = of_container.or(of_pod.as_ref()).and_then(app_armor_annotation)
                    && minor < Minor::V1_34
                {
                    *annotations.at_mut(&[&key]) = Value::from(text);
                    added = true;
                }
                continue;
            };
            let Some(profile) = annotation.as_str().and_then(app_armor_profile) else { continue };
            if of_container.is_none() && of_pod.as_ref() != Some(&profile) {
                *container.at_mut(&["securityContext", "appArmorProfile"]) = profile;
            }
        }
    }
    if added {
        metadata(pod).insert("annotations".to_owned(), annotations);
    }
}

/// The former annotation of a profile (`appArmorAnnotationForField`).
fn app_armor_annotation(profile: &Value) -> Option<String> {
    match profile["type"].as_str()? {
        "Unconfined" => Some("unconfined".to_owned()),
        "RuntimeDefault" => Some("runtime/default".to_owned()),
        "Localhost" => profile["localhostProfile"].as_str().map(|name| format!("localhost/{name}")),
        _ => None,
    }
}

/// The profile in an annotation, if it is valid.
pub(super) fn app_armor_profile(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        other => {
            let name = other.strip_prefix("localhost/").filter(|name| !name.is_empty() && name.trim() == *name)?;
            (name.len() <= 4095).then(|| json!({"type": "Localhost", "localhostProfile": name}))
        }
    }
}

/// The `QoS` class (`pkg/apis/core/helper/qos`).
pub(super) fn quality(minor: Minor, spec: &Value) -> &'static str {
    let pod_level =
        spec.get("resources").filter(|resources| Gate::PodLevelResources.is_on(minor) && !resources.is_null());
    // Since 1.37 only if they ask for something.
    let pod_level = pod_level.filter(|resources| {
        let names = ["requests", "limits"].into_iter().filter_map(|list| resources[list].as_object());
        minor < Minor::V1_37 || names.flat_map(Map::keys).any(|key| is_pod_level(key))
    });
    let lists = ["containers", "initContainers"].iter().filter_map(|key| spec.get(*key).and_then(Value::as_array));
    let all: Vec<&Value> = match pod_level {
        Some(resources) => vec![resources],
        None => lists.flatten().filter_map(|container| container.get("resources")).collect(),
    };
    let positive = |resources: &Value, which: &str, key: &str| -> Option<Quantity> {
        let quantity = Quantity::parse(resources.get(which)?.get(key)?.as_str()?).ok()?;
        (quantity.sign() > 0).then_some(quantity)
    };
    let total = |which: &str, key: &str| -> Option<Quantity> {
        let mut found = all.iter().filter_map(|resources| positive(resources, which, key));
        let first = found.next()?;
        Some(found.fold(first, |sum, next| sum.add(&next).unwrap_or(sum)))
    };
    let keys = ["cpu", "memory"];
    let requests = keys.map(|key| total("requests", key));
    let limits = keys.map(|key| total("limits", key));
    if requests.iter().chain(&limits).all(Option::is_none) {
        return "BestEffort";
    }
    let limited = all.iter().all(|resources| keys.iter().all(|key| positive(resources, "limits", key).is_some()));
    let equal = requests.iter().zip(&limits).all(|(request, limit)| match (request, limit) {
        (Some(request), Some(limit)) => request.compare(limit).is_eq(),
        (None, None) => true,
        _ => false,
    });
    if limited && equal { "Guaranteed" } else { "Burstable" }
}

/// The subresource `resize` changes resources alone, of each container and, since 1.36, of the pod
/// (`dropNonResizeUpdates`). False if there are others, or they have other names: that is left to validation.
pub(super) fn resize(minor: Minor, pod: &mut Object, old: &Object) -> bool {
    const LISTS: [&str; 2] = ["containers", "initContainers"];
    let containers = |of: &Object, key: &str| -> Vec<Value> {
        of.get("spec").and_then(|spec| spec[key].as_array()).cloned().unwrap_or_default()
    };
    if LISTS.iter().any(|key| containers(pod, key).len() != containers(old, key).len()) {
        return false;
    }
    let mut spec = old.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    for key in LISTS {
        let (wanted, mut kept) = (containers(pod, key), containers(old, key));
        if wanted.iter().zip(&kept).any(|(new, old)| new["name"] != old["name"]) {
            kept = wanted;
        } else {
            for (container, wanted) in kept.iter_mut().filter_map(Value::as_object_mut).zip(&wanted) {
                for key in ["resources", "resizePolicy"] {
                    match wanted.get(key) {
                        Some(value) => drop(container.insert(key.to_owned(), value.clone())),
                        None => drop(container.remove(key)),
                    }
                }
            }
        }
        if !kept.is_empty() {
            spec.insert(key.to_owned(), Value::Array(kept));
        }
    }
    if Gate::InPlacePodLevelResourcesVerticalScaling.is_on(minor) {
        match pod.get("spec").and_then(|spec| spec.get("resources")) {
            Some(resources) => drop(spec.insert("resources".to_owned(), resources.clone())),
            None => drop(spec.remove("resources")),
        }
    }
    pod.insert("spec".to_owned(), Value::Object(spec));
    match old.get("status") {
        Some(status) => drop(pod.insert("status".to_owned(), status.clone())),
        None => drop(pod.remove("status")),
    }
    true
}

/// The fields that the subresource `status` adds to a status (`podStatusStrategy.PrepareForUpdate`): the class of
/// quality, and the observed generations, if the client does not set them.
pub(super) fn status(pod: &mut Object, old: &Object) {
    let before = old.get("status").cloned().unwrap_or_default();
    let status = pod.entry("status").or_insert_with(|| json!({}));
    for key in ["qosClass", "observedGeneration"] {
        if status[key].is_null() && !before[key].is_null() {
            *status.at_mut(&[key]) = before[key].clone();
        }
    }
    let mut known = before["conditions"].as_array().cloned().unwrap_or_default();
    for condition in status.at_mut(&["conditions"]).as_array_mut().into_iter().flatten() {
        let Some(at) = known.iter().position(|known| known["type"] == condition["type"]) else { continue };
        let generation = known.remove(at)["observedGeneration"].clone();
        if condition["observedGeneration"].is_null() && !generation.is_null() {
            *condition.at_mut(&["observedGeneration"]) = generation;
        }
    }
    // Reading what is absent leaves a null.
    if let Some(status) = status.as_object_mut() {
        status.retain(|_, value| !value.is_null());
        for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
            condition.as_object_mut().into_iter().for_each(|of| of.retain(|_, value| !value.is_null()));
        }
    }
}
