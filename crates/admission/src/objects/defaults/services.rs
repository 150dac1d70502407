//! Defaults of services and of other kinds that run no pods.

use palisade_cel::Minor;
use serde_json::{Map, Value, json};

use super::{Object, child, constants::PERSISTENT, is_empty_list, objects, set, text};

pub(super) fn service(service: &mut Object) {
    let spec = child(service, "spec");
    set(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let config = spec.get("sessionAffinityConfig");
            if config.and_then(|config| config.pointer("/clientIP/timeoutSeconds")).is_none() {
                spec.insert("sessionAffinityConfig".to_owned(), json!({"clientIP": {"timeoutSeconds": 10800}}));
            }
        }
        _ => {}
    }
    set(spec, "type", "ClusterIP");
    for port in objects(spec, "ports") {
        set(port, "protocol", "TCP");
        let target = port.get("targetPort");
        if target.is_none_or(|target| *target == json!(0) || *target == json!("")) {
            let number = port.get("port").cloned().unwrap_or_else(|| json!(0));
            port.insert("targetPort".to_owned(), number);
        }
    }
    let kind = text(spec, "type").to_owned();
    let external = matches!(kind.as_str(), "LoadBalancer" | "NodePort")
        || (kind == "ClusterIP" && !is_empty_list(spec, "externalIPs"));
    if external {
        set(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        set(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", true);
        for ingress in objects(child(child(service, "status"), "loadBalancer"), "ingress") {
            if !text(ingress, "ip").is_empty() {
                set(ingress, "ipMode", "VIP");
            }
        }
    }
}

pub(super) fn endpoints(endpoints: &mut Object) {
    for subset in objects(endpoints, "subsets") {
        for port in objects(subset, "ports") {
            set(port, "protocol", "TCP");
        }
    }
}

pub(super) fn namespace(namespace: &mut Object) {
    let metadata = child(namespace, "metadata");
    let name = text(metadata, "name").to_owned();
    if !name.is_empty() {
        child(metadata, "labels").insert("kubernetes.io/metadata.name".to_owned(), Value::from(name));
    }
}

pub(super) fn node_status(status: &mut Object) {
    if let Some(capacity) = status.get("capacity").cloned() {
        status.entry("allocatable").or_insert(capacity);
    }
}

pub(super) fn limit_range_item(item: &mut Object) {
    if text(item, "type") != "Container" {
        return;
    }
    let list = |item: &Object, key: &str| item.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let values = list(item, from);
        let into = child(item, to);
        for (key, value) in values {
            into.entry(key).or_insert(value);
        }
    }
    child(item, "default");
}

pub(super) fn network_policy(spec: &mut Object) {
    if is_empty_list(spec, "policyTypes") {
        let types = if is_empty_list(spec, "egress") { json!(["Ingress"]) } else { json!(["Ingress", "Egress"]) };
        spec.insert("policyTypes".to_owned(), types);
    }
}

pub(super) fn ingress_class(spec: &mut Object) {
    if let Some(parameters) = spec.get_mut("parameters").and_then(Value::as_object_mut) {
        set(parameters, "scope", "Cluster");
    }
}

pub(super) fn subject(subject: &mut Object) {
    if matches!(text(subject, "kind"), "User" | "Group") {
        set(subject, "apiGroup", "rbac.authorization.k8s.io");
    }
}

pub(super) fn csi_driver(minor: Minor, spec: &mut Object) {
    set(spec, "attachRequired", true);
    set(spec, "podInfoOnMount", false);
    set(spec, "storageCapacity", false);
    set(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    if is_empty_list(spec, "volumeLifecycleModes") {
        spec.insert("volumeLifecycleModes".to_owned(), PERSISTENT.to_json());
    }
    set(spec, "requiresRepublish", false);
    set(spec, "seLinuxMount", false);
    // The feature VolumeLimitScaling is on by default since then.
    if minor >= Minor::V1_37 {
        set(spec, "preventPodSchedulingIfMissing", false);
    }
}

/// Of dynamic resource allocation.
pub(super) fn device(minor: Minor, part: &str, object: &mut Object) {
    let kind = part.rsplit('.').next().unwrap_or(part);
    if matches!(kind, "Device" | "BasicDevice") {
        let mappings = object.get_mut("nodeAllocatableResourceMappings").and_then(Value::as_object_mut);
        for mapping in mappings.into_iter().flat_map(|mappings| mappings.values_mut()).filter_map(Value::as_object_mut)
        {
            set(mapping, "allocationMultiplier", "1");
        }
    }
    let is_request = match kind {
        "ExactDeviceRequest" | "DeviceSubRequest" => true,
        // Until v1beta2 it is a request itself, unless it is a list of them.
        "DeviceRequest" => {
            let of_old = ["resource/v1beta1.", "resource/v1alpha3."].iter().any(|version| part.starts_with(version));
            of_old && (minor < Minor::V1_33 || !text(object, "deviceClassName").is_empty())
        }
        _ => false,
    };
    if is_request {
        set(object, "allocationMode", "ExactCount");
        if text(object, "allocationMode") == "ExactCount" {
            set(object, "count", 1);
        }
    }
}

pub(super) fn definition(definition: &mut Object) {
    let spec = child(definition, "spec");
    let names = child(spec, "names");
    let kind = text(names, "kind").to_owned();
    set(names, "singular", kind.to_lowercase());
    if !kind.is_empty() {
        set(names, "listKind", format!("{kind}List"));
    }
    set(spec, "conversion", Value::Object(Map::from_iter([("strategy".to_owned(), json!("None"))])));
    let stored = objects(spec, "versions").find(|version| version.get("storage") == Some(&json!(true)));
    let stored = stored.map(|version| text(version, "name").to_owned());
    let status = child(definition, "status");
    if let Some(stored) = stored.filter(|_| is_empty_list(status, "storedVersions")) {
        status.insert("storedVersions".to_owned(), json!([stored]));
    }
}
