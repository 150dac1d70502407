//! Services (`validateService` in `pkg/apis/core/validation/validation.go`).

use std::{collections::BTreeSet, net::IpAddr};

use palisade_cel::Minor;
use serde_json::Value;

use super::{
    super::{gates::Gate, warnings::addresses},
    formats,
    node::Node,
    shown,
};
use crate::validation::{Checking, FieldError};

const KUBELET_PORT: i64 = 10250;
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

pub(super) fn service(checking: &mut Checking<'_>, object: &Value) {
    let object = Node::new(object, "");
    let (metadata, spec) = (object.get("metadata"), object.get("spec"));
    let kind = spec.text("type");
    let annotation = |key: &str| metadata.map("annotations").and_then(|map| map.get(key)).and_then(Value::as_str);
    let (hints, mode) = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode");
    if let (Some(said), Some(hinted)) = (annotation(mode), annotation(hints))
        && said != hinted
    {
        let text = format!("must match annotations[{hints}] when both are specified");
        checking.invalid(format!("metadata.annotations[{mode}]"), said, &text);
    }
    let ips = spec.elements("clusterIPs");
    let headless = ips.len() == 1 && ips[0] == "None";
    if spec.elements("ports").is_empty() && !headless && kind != "ExternalName" {
        checking.required("spec.ports", "");
    }
    if kind == "LoadBalancer" && checking.minor < Minor::V1_33 {
        for port in spec.list("ports").filter(|port| port.int("port") == Some(KUBELET_PORT)) {
            let text = format!("may not expose port {KUBELET_PORT} externally since it is used by kubelet");
            checking.invalid_value(&port.path, &KUBELET_PORT.into(), &text);
        }
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let text = format!("may not be set to 'None' for {kind} services");
            checking.invalid("spec.clusterIPs[0]", "None", &text);
        }
        "ExternalName" => external_name(checking, &spec),
        _ => {}
    }
    ports(checking, &spec);
    formats::labels(checking, &spec.get("selector"));
    affinity(checking, &spec);
    if kind != "ExternalName" {
        cluster_ips(checking, &spec, spec.elements("clusterIPs"));
    }
    for ip in spec.list("externalIPs") {
        let before = checking.errors.len();
        formats::ip(checking, &ip.path, ip.string());
        if checking.errors.len() == before {
            formats::endpoint_ip(checking, &ip.path, ip.string());
        }
    }
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    checking.required_one_of(&spec.get("type"), &kinds);
    repeated_ports(checking, &spec);
    balancer(checking, &spec, annotation(SOURCE_RANGES));
    traffic(checking, &spec);
}

fn external_name(checking: &mut Checking<'_>, spec: &Node<'_>) {
    let text = "may not be set for ExternalName services";
    for key in ["clusterIPs", "ipFamilies"] {
        if !spec.elements(key).is_empty() {
            checking.forbidden(spec.field(key), text);
        }
    }
    if spec.has("ipFamilyPolicy") {
        checking.forbidden("spec.ipFamilyPolicy", text);
    }
    let name = spec.text("externalName");
    match name.strip_suffix('.').unwrap_or(name) {
        "" => checking.required("spec.externalName", ""),
        name => formats::subdomain(checking, "spec.externalName", name),
    }
}

fn ports(checking: &mut Checking<'_>, spec: &Node<'_>) {
    let (mut names, several) = (BTreeSet::new(), spec.elements("ports").len() > 1);
    for port in spec.list("ports") {
        let name = port.text("name");
        if name.is_empty() {
            if several {
                checking.required(port.field("name"), "");
            }
        } else {
            formats::label(checking, port.field("name"), name);
            if !names.insert(name) {
                checking.duplicate(port.field("name"), name);
            }
        }
        formats::port_number(checking, &port.get("port"));
        checking.required_one_of(&port.get("protocol"), formats::PROTOCOLS);
        formats::port(checking, &port.get("targetPort"));
        if let Some(protocol) = port.part("appProtocol") {
            formats::label_key(checking, &protocol.path, protocol.string());
        }
    }
}

fn affinity(checking: &mut Checking<'_>, spec: &Node<'_>) {
    checking.required_one_of(&spec.get("sessionAffinity"), &["ClientIP", "None"]);
    let config = spec.get("sessionAffinityConfig");
    match spec.text("sessionAffinity") {
        "ClientIP" => {
            let text = "when session affinity type is ClientIP";
            let (client, timeout) = (config.get("clientIP"), config.get("clientIP").get("timeoutSeconds"));
            if let Some(missing) = [&config, &client, &timeout].into_iter().find(|node| node.value.is_null()) {
                checking.required(&missing.path, text);
            } else if timeout.value.as_i64().is_some_and(|seconds| !(1..=86_400).contains(&seconds)) {
                checking.wrong(&timeout, "must be greater than 0 and less than 86400");
            }
        }
        "None" if !config.value.is_null() => {
            checking.forbidden(config.path, "must not be set when session affinity is None");
        }
        _ => {}
    }
}

/// Checks the addresses as the allocator sees them. If only `clusterIP` is set, it is also the list of all addresses
/// (`normalizeClusterIPs` in `pkg/registry/core/service/storage/storage.go`).
pub(super) fn before_allocation(checking: &mut Checking<'_>, object: &Value) {
    let spec = Node::new(object, "").get("spec");
    if spec.text("type") == "ExternalName" {
        return;
    }
    let (one, all) = (spec.text("clusterIP"), spec.elements("clusterIPs"));
    if all.is_empty() && !one.is_empty() {
        cluster_ips(checking, &spec, &[one.into()]);
    } else {
        cluster_ips(checking, &spec, all);
    }
}

/// `ValidateServiceClusterIPsRelatedFields`.
fn cluster_ips(checking: &mut Checking<'_>, spec: &Node<'_>, all: &[Value]) {
    let (field, one) = ("spec.clusterIPs", spec.text("clusterIP"));
    let headless = all.len() == 1 && all[0] == "None";
    let list = Value::Array(all.to_vec());
    let wrong = |checking: &mut Checking<'_>, text: &str| checking.invalid_texts(field, &list, text);
    let each = || {
        let at = |(i, value)| Node::new(value, format!("{field}[{i}]"));
        all.iter().enumerate().map(at)
    };
    if one.is_empty() {
        if !all.is_empty() {
            wrong(checking, "must be empty when `clusterIP` is not specified");
        }
    } else if all.is_empty() {
        checking.required(field, "");
    } else if all[0] != one {
        wrong(checking, "first value must match `clusterIP`");
    }
    let mut seen = BTreeSet::new();
    for family in spec.list("ipFamilies") {
        checking.one_of(&family, &["IPv4", "IPv6"]);
        if !seen.insert(family.string()) {
            checking.duplicate(&family.path, family.string());
        }
    }
    if let Some(policy) = spec.part("ipFamilyPolicy") {
        checking.one_of(&policy, &["PreferDualStack", "RequireDualStack", "SingleStack"]);
    }
    let mut invalid = false;
    for (i, ip) in each().enumerate() {
        let before = checking.errors.len();
        if i == 0 && ip.string() == "None" {
            if all.len() > 1 {
                wrong(checking, "'None' must be the first and only value");
            }
        } else {
            formats::ip(checking, &ip.path, ip.string());
        }
        invalid |= checking.errors.len() > before;
    }
    if all.len() > 2 {
        wrong(checking, "may only hold up to 2 values");
    }
    if invalid {
        return;
    }
    let parsed: Vec<Option<IpAddr>> =
        all.iter().map(|ip| ip.as_str().and_then(addresses::lenient).map(|ip| ip.to_canonical())).collect();
    let is_v6 = |ip: &Option<IpAddr>| ip.is_some_and(|ip| ip.is_ipv6());
    if all.len() > 1 && parsed.iter().all(is_v6) | !parsed.iter().any(is_v6) {
        wrong(checking, "may specify no more than one IP for each IP family");
    }
    if headless {
        return;
    }
    for (i, ((ip, parsed), family)) in each().zip(&parsed).zip(spec.list("ipFamilies")).enumerate() {
        let expected = match (family.string(), is_v6(parsed)) {
            ("IPv4", true) => "IPv4",
            ("IPv6", false) => "IPv6",
            _ => continue,
        };
        let text = format!("expected an {expected} value as indicated by `ipFamilies[{i}]`");
        checking.invalid(&ip.path, ip.string(), &text);
    }
}

fn repeated_ports(checking: &mut Checking<'_>, spec: &Node<'_>) {
    let node_port = |port: &Node<'_>| port.int("nodePort").filter(|number| *number != 0);
    if spec.text("type") == "ClusterIP" {
        for port in spec.list("ports").filter(|port| node_port(port).is_some()) {
            checking.forbidden(port.field("nodePort"), "may not be used when `type` is 'ClusterIP'");
        }
    }
    let mut seen = BTreeSet::new();
    for port in spec.list("ports") {
        let Some(number) = node_port(&port) else { continue };
        if !seen.insert((port.text("protocol"), number)) {
            checking.errors.push(FieldError::duplicate_value(checking.minor, port.field("nodePort"), &number.into()));
        }
    }
    let mut seen = BTreeSet::new();
    for port in spec.list("ports") {
        if !seen.insert((port.text("protocol"), port.int("port"))) {
            checking.errors.push(FieldError::duplicate_shown(&port.path, &shown::service_port(&port)));
        }
    }
}

fn balancer(checking: &mut Checking<'_>, spec: &Node<'_>, annotated: Option<&str>) {
    let only = "may only be used when `type` is 'LoadBalancer'";
    let balances = spec.text("type") == "LoadBalancer";
    // Its place begins with a capital.
    if spec.elements("loadBalancerSourceRanges").is_empty() {
        if let Some(ranges) = annotated {
            let field = format!("metadata.annotations[{SOURCE_RANGES}]");
            if !balances {
                checking.forbidden(&field, only);
            }
            for range in ranges.trim().split(',').filter(|_| !ranges.trim().is_empty()) {
                formats::cidr(checking, &field, range.trim());
            }
        }
    } else {
        let field = "spec.LoadBalancerSourceRanges";
        if !balances {
            checking.forbidden(field, only);
        }
        for (i, range) in spec.list("loadBalancerSourceRanges").enumerate() {
            formats::cidr(checking, &format!("{field}[{i}]"), range.string().trim());
        }
    }
    let allocate = spec.has("allocateLoadBalancerNodePorts");
    if allocate && !balances {
        checking.forbidden("spec.allocateLoadBalancerNodePorts", only);
    }
    if balances && !allocate {
        checking.required("allocateLoadBalancerNodePorts", "");
    }
    if let Some(class) = spec.part("loadBalancerClass") {
        if balances {
            formats::label_key(checking, &class.path, class.string());
        } else {
            checking.forbidden(class.path, only);
        }
    }
}

fn traffic(checking: &mut Checking<'_>, spec: &Node<'_>) {
    let kind = spec.text("type");
    let external =
        matches!(kind, "LoadBalancer" | "NodePort") || kind == "ClusterIP" && !spec.elements("externalIPs").is_empty();
    let policy = spec.get("externalTrafficPolicy");
    if external {
        checking.required_one_of(&policy, &["Cluster", "Local"]);
    } else if !policy.string().is_empty() {
        checking.wrong(&policy, "may only be set for externally-accessible services");
    }
    let (port, needed) = (spec.get("healthCheckNodePort"), kind == "LoadBalancer" && policy.string() == "Local");
    let number = port.value.as_i64().unwrap_or(0);
    if needed {
        if number == 0 {
            checking.required(&port.path, "");
        } else {
            formats::port_number(checking, &port);
        }
    } else if number != 0 {
        let text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        checking.wrong(&port, text);
    }
    match spec.part("internalTrafficPolicy") {
        Some(policy) => checking.one_of(&policy, &["Cluster", "Local"]),
        None if matches!(kind, "NodePort" | "LoadBalancer" | "ClusterIP") => {
            checking.required("spec.internalTrafficPolicy", "");
        }
        None => {}
    }
    if let Some(distribution) = spec.part("trafficDistribution") {
        let all = ["PreferClose", "PreferSameZone", "PreferSameNode"];
        let same = Gate::PreferSameTrafficDistribution.is_on(checking.minor);
        checking.one_of(&distribution, if same { &all } else { &all[..1] });
    }
}
