//! The values that the API server allocates for a Service, and those that it releases when the type changes
//! (`pkg/registry/core/service/strategy.go` and `storage/storage.go`).

use palisade_kube_json::json::Change as _;
use serde_json::{Map, Value, json};

use crate::validation::{list, text};

type Object = Map<String, Value>;

/// The first of the addresses and ports that a Service would get at random.
const INVENTED_CLUSTER_IP: &str = "10.96.0.10";
const INVENTED_NODE_PORT: usize = 30000;

/// Sets the values that the allocators of addresses and ports would choose in an IPv4 cluster.
pub(super) fn allocate(service: &mut Object) {
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind == "ExternalName" {
        return;
    }
    let ip = spec.entry("clusterIP").or_insert_with(|| json!(INVENTED_CLUSTER_IP)).clone();
    spec.entry("clusterIPs").or_insert_with(|| json!([ip]));
    let headless_without_pods =
        ip == "None" && spec.get("selector").and_then(Value::as_object).is_none_or(Map::is_empty);
    let policy = if headless_without_pods { "RequireDualStack" } else { "SingleStack" };
    spec.entry("ipFamilyPolicy").or_insert_with(|| json!(policy));
    let families = if headless_without_pods { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) };
    spec.entry("ipFamilies").or_insert(families);
    let ports = matches!(kind.as_str(), "NodePort" | "LoadBalancer")
        && spec.get("allocateLoadBalancerNodePorts") != Some(&json!(false));
    if ports {
        let list = spec.get_mut("ports").and_then(Value::as_array_mut);
        for (i, port) in list.into_iter().flatten().enumerate() {
            if port["nodePort"].is_null() {
                *port.at_mut(&["nodePort"]) = json!(INVENTED_NODE_PORT + i);
            }
        }
    }
    let checked = kind == "LoadBalancer" && spec.get("externalTrafficPolicy") == Some(&json!("Local"));
    if checked {
        let count = spec.get("ports").and_then(Value::as_array).map_or(0, Vec::len);
        spec.entry("healthCheckNodePort").or_insert_with(|| json!(INVENTED_NODE_PORT + count));
    }
}

fn type_of(spec: &Value) -> &str {
    text(spec, "type")
}

fn needs_cluster_ip(spec: &Value) -> bool {
    type_of(spec) != "ExternalName"
}

fn needs_node_port(spec: &Value) -> bool {
    matches!(type_of(spec), "NodePort" | "LoadBalancer")
}

fn needs_health_check(spec: &Value) -> bool {
    type_of(spec) == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

/// `apiservice.ExternallyAccessible`
fn is_external(spec: &Value) -> bool {
    needs_node_port(spec) || (type_of(spec) == "ClusterIP" && !list(spec, "externalIPs").is_empty())
}

fn node_port(port: &Value) -> i64 {
    port["nodePort"].as_i64().unwrap_or(0)
}

/// Applies an update to the new object: values that were allocated for the old object are kept
/// (`patchAllocatedValues`), missing values are allocated, and values that the new object does not use are removed
/// (`dropTypeDependentFields`).
pub(super) fn update(service: &mut Object, old: &Object) {
    let Some(before) = old.get("spec") else { return };
    let changes = service.get("spec").is_some_and(|spec| type_of(spec) != type_of(before));
    if let Some(spec) = service.get_mut("spec") {
        keep(spec, before);
    }
    if changes {
        allocate(service);
    }
    let Some(spec) = service.get_mut("spec") else { return };
    release(spec, before);
    let balanced = type_of(spec) == "LoadBalancer";
    // Reading what is absent leaves a null.
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|_, value| !value.is_null());
    }
    if changes && !balanced && service.get("status").is_some_and(|status| !status["loadBalancer"].is_null()) {
        *service.at_mut(&["status", "loadBalancer"]) = json!({});
    }
}

fn keep(spec: &mut Value, before: &Value) {
    let keep = |spec: &mut Value, key: &str| {
        if spec[key].is_null() && !before[key].is_null() {
            *spec.at_mut(&[key]) = before[key].clone();
        }
    };
    if needs_cluster_ip(before) && needs_cluster_ip(spec) {
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            keep(spec, key);
        }
    }
    if needs_health_check(before) && needs_health_check(spec) {
        keep(spec, "healthCheckNodePort");
    }
    if !(needs_node_port(before) && needs_node_port(spec)) {
        return;
    }
    let now: Vec<i64> = list(spec, "ports").iter().map(node_port).collect();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if node_port(port) == 0
            && let Some(known) = list(before, "ports").iter().find(|one| text(one, "name") == text(port, "name"))
            && node_port(known) != 0
            && !now.contains(&node_port(known))
        {
            *port.at_mut(&["nodePort"]) = known["nodePort"].clone();
        }
    }
}

/// A field goes only if the client has not changed it: then its validation finds that.
fn release(spec: &mut Value, before: &Value) {
    let same = |spec: &Value, keys: &[&str]| keys.iter().all(|key| spec[key] == before[key]);
    let mut dropped = Vec::new();
    if needs_cluster_ip(before) && !needs_cluster_ip(spec) {
        if same(spec, &["clusterIP", "clusterIPs"]) {
            dropped.extend(["clusterIP", "clusterIPs"]);
        }
        dropped.extend(["ipFamilies", "ipFamilyPolicy"].into_iter().filter(|key| same(spec, &[key])));
    }
    if needs_health_check(before) && !needs_health_check(spec) && same(spec, &["healthCheckNodePort"]) {
        dropped.push("healthCheckNodePort");
    }
    if type_of(before) == "LoadBalancer" && type_of(spec) != "LoadBalancer" {
        let keys = ["allocateLoadBalancerNodePorts", "loadBalancerClass"];
        dropped.extend(keys.into_iter().filter(|key| same(spec, &[key])));
    }
    if is_external(before) && !is_external(spec) && same(spec, &["externalTrafficPolicy"]) {
        dropped.push("externalTrafficPolicy");
    }
    if needs_node_port(before) && !needs_node_port(spec) {
        let known: Vec<i64> = list(before, "ports").iter().map(node_port).collect();
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut).map_or(&mut [][..], Vec::as_mut_slice);
        if ports.iter().map(node_port).all(|port| port == 0 || known.contains(&port)) {
            for port in ports.iter_mut().filter_map(Value::as_object_mut) {
                port.remove("nodePort");
            }
        }
    }
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|key, _| !dropped.contains(&key.as_str()));
    }
}
