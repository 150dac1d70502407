//! Defaults of pods (`pkg/apis/core/v1/defaults.go`).

use palisade_cel::{Minor, Quantity};
use serde_json::{Map, Value};

use super::{Object, child, image, objects, set, text};
use crate::objects::gates::Gate;

pub(super) fn container(container: &mut Object) {
    let latest = image::tag(text(container, "image")) == "latest";
    set(container, "imagePullPolicy", if latest { "Always" } else { "IfNotPresent" });
    set(container, "terminationMessagePath", "/dev/termination-log");
    set(container, "terminationMessagePolicy", "File");
}

pub(super) fn volume(minor: Minor, volume: &mut Object) {
    if volume.keys().all(|key| key == "name") {
        volume.insert("emptyDir".to_owned(), Value::Object(Map::new()));
    }
    let image = volume.get_mut("image").and_then(Value::as_object_mut);
    if let Some(image) = image.filter(|_| Gate::ImageVolume.is_on(minor)) {
        let latest = image::tag(text(image, "reference")) == "latest";
        set(image, "pullPolicy", if latest { "Always" } else { "IfNotPresent" });
    }
}

pub(super) fn pod(minor: Minor, pod: &mut Object) {
    let spec = child(pod, "spec");
    for containers in ["containers", "initContainers"] {
        for container in objects(spec, containers) {
            let resources = child(container, "resources");
            let Some(Value::Object(limits)) = resources.get("limits").cloned() else { continue };
            let requests = child(resources, "requests");
            for (key, value) in limits {
                requests.entry(key).or_insert(value);
            }
        }
    }
    // With that fix the strategy completes them.
    if Gate::PodLevelResources.is_on(minor) && !Gate::PodLevelResourcesFixDefaulting.is_on(minor) {
        huge_page_limits(spec);
        requests(spec);
    }
    set(spec, "enableServiceLinks", true);
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        for containers in ["containers", "initContainers"] {
            for container in objects(spec, containers) {
                for port in objects(container, "ports") {
                    if let Some(number) = port.get("containerPort").cloned() {
                        port.entry("hostPort").or_insert(number);
                    }
                }
            }
        }
    }
}

/// Rounds quantities up to thousandths (`SetDefaults_ResourceList`).
pub(super) fn round_up(list: &mut Object) {
    for value in list.values_mut() {
        if let Some(quantity) = value.as_str().and_then(|text| Quantity::parse(text).ok()) {
            let rounded = quantity.round_up_to_milli();
            if rounded.compare(&quantity).is_ne() {
                *value = Value::from(rounded.to_string());
            }
        }
    }
}

/// `limits` or `requests` of all containers together, as a pod needs them (`AggregateContainerRequests`).
fn aggregate(spec: &Object, which: &str) -> Object {
    let list = |key: &str| spec.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let resources = |container: &Value| {
        container.pointer(&format!("/resources/{which}")).and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let mut total = Object::new();
    for container in list("containers") {
        add(&mut total, &resources(container));
    }
    let (mut sidecars, mut initial) = (Object::new(), Object::new());
    for container in list("initContainers") {
        let mut needed = resources(container);
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            add(&mut total, &needed);
            add(&mut sidecars, &needed);
            needed.clone_from(&sidecars);
        } else {
            add(&mut needed, &sidecars);
        }
        most(&mut initial, &needed);
    }
    most(&mut total, &initial);
    total
}

fn quantity(value: &Value) -> Option<Quantity> {
    Quantity::parse(value.as_str()?).ok()
}

fn add(total: &mut Object, more: &Object) {
    for (key, value) in more {
        let sum = match total.get(key) {
            Some(have) => quantity(have)
                .zip(quantity(value))
                .and_then(|(a, b)| a.add(&b).ok())
                .map_or_else(|| have.clone(), |sum| Value::from(sum.to_string())),
            None => value.clone(),
        };
        total.insert(key.clone(), sum);
    }
}

fn most(total: &mut Object, other: &Object) {
    for (key, value) in other {
        let larger = match total.get(key) {
            Some(have) => quantity(have).zip(quantity(value)).is_some_and(|(a, b)| b.compare(&a).is_gt()),
            None => true,
        };
        if larger {
            total.insert(key.clone(), value.clone());
        }
    }
}

fn is_huge_pages(key: &str) -> bool {
    key.starts_with("hugepages-")
}

/// May a pod as a whole ask for it?
pub(in super::super) fn is_pod_level(key: &str) -> bool {
    key == "cpu" || key == "memory" || is_huge_pages(key)
}

/// `defaultHugePagePodLimits`: the limits of a pod that names resources, from those of its containers.
fn huge_page_limits(spec: &mut Object) {
    let Some(resources) = spec.get("resources").and_then(Value::as_object) else { return };
    if !is_given(resources, "limits") && !is_given(resources, "requests") {
        return;
    }
    let of_containers = aggregate(spec, "limits");
    let huge: Vec<_> = of_containers.into_iter().filter(|(key, _)| is_huge_pages(key)).collect();
    if huge.is_empty() {
        return;
    }
    let resources = child(spec, "resources");
    let asked = resources.get("requests").cloned().unwrap_or_default();
    let limits = child(resources, "limits");
    for (key, value) in huge {
        if asked.get(&key).is_none() {
            limits.entry(key).or_insert(value);
        }
    }
    if limits.is_empty() {
        resources.remove("limits");
    }
}

/// `DefaultPodLevelResources` of 1.37.
pub(in super::super) fn pod_level(spec: &mut Object) {
    let Some(resources) = spec.get("resources").and_then(Value::as_object) else { return };
    if !is_given(resources, "limits") && !is_given(resources, "requests") {
        return;
    }
    huge_page_limits(spec);
    complete_requests(spec);
    let all = ["containers", "initContainers", "ephemeralContainers"].into_iter();
    let all: Vec<Value> = all.filter_map(|key| spec.get(key)?.as_array()).flatten().cloned().collect();
    let of_containers = aggregate(spec, "limits");
    let resources = child(spec, "resources");
    for (key, asked) in resources.get("requests").and_then(Value::as_object).cloned().unwrap_or_default() {
        let limited = all.iter().all(|container| container["resources"]["limits"].get(&key).is_some());
        if !is_pod_level(&key) || !limited || resources.get("limits").is_some_and(|limits| limits.get(&key).is_some()) {
            continue;
        }
        let Some(limit) = of_containers.get(&key) else { continue };
        let larger = quantity(&asked).zip(quantity(limit)).is_some_and(|(asked, limit)| asked.compare(&limit).is_gt());
        child(resources, "limits").insert(key, if larger { asked } else { limit.clone() });
    }
}

fn is_given(resources: &Object, key: &str) -> bool {
    resources.get(key).and_then(Value::as_object).is_some_and(|list| !list.is_empty())
}

/// `defaultPodRequests`: the requests of a pod that has limits, from those of its containers and from its limits.
fn requests(spec: &mut Object) {
    if spec.get("resources").and_then(Value::as_object).is_some_and(|resources| is_given(resources, "limits")) {
        complete_requests(spec);
    }
}

fn complete_requests(spec: &mut Object) {
    let limits = spec.get("resources").and_then(|resources| resources.get("limits")).and_then(Value::as_object);
    let limits = limits.cloned().unwrap_or_default();
    let of_containers = aggregate(spec, "requests");
    let requests = child(child(spec, "resources"), "requests");
    for (key, value) in of_containers {
        if is_pod_level(&key) && !is_huge_pages(&key) {
            requests.entry(key).or_insert(value);
        }
    }
    for (key, value) in limits {
        if is_pod_level(&key) {
            requests.entry(key).or_insert(value);
        }
    }
    if requests.is_empty() {
        child(spec, "resources").remove("requests");
    }
}
