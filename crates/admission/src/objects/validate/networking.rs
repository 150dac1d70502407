//! Ingresses and network policies (`pkg/apis/networking/validation/validation.go`).

use palisade_cel::Minor;
use serde_json::Value;

use super::{
    super::{gates::Gate, warnings::addresses},
    formats,
    node::Node,
};
use crate::validation::{Checking, names};

pub(super) fn ingress(checking: &mut Checking<'_>, object: &Value) {
    let object = Node::new(object, "");
    let spec = object.get("spec");
    if spec.elements("rules").is_empty() && !spec.has("defaultBackend") {
        let text = "either `defaultBackend` or `rules` must be specified";
        let rules = spec.get("rules");
        let shown = match (checking.minor >= Minor::V1_34, rules.value) {
            (true, Value::Null) => "null",
            (true, _) => "[]",
            (false, Value::Null) => "[]networking.IngressRule(nil)",
            (false, _) => "[]networking.IngressRule{}",
        };
        checking.invalid_shown(&spec.path, shown, text);
    }
    if let Some(backend) = spec.part("defaultBackend") {
        self::backend(checking, &backend);
    }
    for rule in spec.list("rules") {
        let host = rule.text("host");
        if !host.is_empty() {
            if addresses::lenient(host).is_some() {
                checking.invalid(rule.field("host"), host, "must be a DNS name, not an IP address");
            }
            checking.each(rule.field("host"), host, &self::host(host));
        }
        let Some(http) = rule.part("http") else { continue };
        if http.elements("paths").is_empty() {
            checking.required(http.field("paths"), "");
        }
        for path in http.list("paths") {
            self::path(checking, &path);
        }
    }
    for tls in spec.list("tls") {
        for host in tls.list("hosts") {
            checking.each(&host.path, host.string(), &self::host(host.string()));
        }
        let secret = tls.text("secretName");
        if !secret.is_empty() {
            formats::subdomain(checking, tls.field("secretName"), secret);
        }
    }
    if let Some(class) = spec.part("ingressClassName") {
        formats::subdomain(checking, &class.path, class.string());
    }
    let key = "kubernetes.io/ingress.class";
    let annotated = object.get("metadata").map("annotations").and_then(|map| map.get(key)).and_then(Value::as_str);
    if let (Some(said), Some(class), None) = (annotated, spec.part("ingressClassName"), checking.old)
        && said != class.string()
    {
        let text = "must match `ingressClassName` when both are specified";
        checking.invalid(format!("annotations.{key}"), said, text);
    }
}

fn host(host: &str) -> Vec<String> {
    if host.contains('*') { formats::wildcard_host(host) } else { names::subdomain(host) }
}

fn path(checking: &mut Checking<'_>, of: &Node<'_>) {
    let Some(kind) = of.part("pathType") else {
        checking.required(of.field("pathType"), "pathType must be specified");
        return;
    };
    let (path, field) = (of.text("path"), of.field("path"));
    let absolute = path.starts_with('/');
    match kind.string() {
        "Exact" | "Prefix" => {
            if !absolute {
                checking.invalid(&field, path, "must be an absolute path");
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|part| path.contains(**part)) {
                checking.invalid(&field, path, &format!("must not contain '{part}'"));
            }
            for end in ["/..", "/."].iter().filter(|end| path.ends_with(**end)) {
                checking.invalid(&field, path, &format!("cannot end with '{end}'"));
            }
        }
        "ImplementationSpecific" => {
            if !path.is_empty() && !absolute {
                checking.invalid(field, path, "must be an absolute path");
            }
        }
        _ => checking.one_of(&kind, &["Exact", "ImplementationSpecific", "Prefix"]),
    }
    backend(checking, &of.get("backend"));
}

fn backend(checking: &mut Checking<'_>, of: &Node<'_>) {
    let (resource, service) = (of.part("resource"), of.part("service"));
    match (resource, service) {
        (Some(_), Some(_)) => checking.invalid(&of.path, "", "cannot set both resource and service backends"),
        (Some(resource), None) => reference(checking, &resource),
        (None, Some(service)) => {
            let name = service.text("name");
            if name.is_empty() {
                checking.required(service.field("name"), "");
            } else if Gate::RelaxedServiceNameValidation.is_on(checking.minor) {
                formats::label(checking, service.field("name"), name);
            } else {
                checking.each(service.field("name"), name, &names::label_1035(name));
            }
            let port = service.get("port");
            let number = port.int("number").filter(|number| *number != 0);
            match (port.text("name"), number) {
                ("", None) => checking.required(&of.path, "port name or number is required"),
                ("", Some(_)) => formats::port_number(checking, &port.get("number")),
                (name, None) => checking.each(port.field("name"), name, &formats::port_name(name)),
                (_, Some(_)) => checking.invalid(&of.path, "", "cannot set both port name & port number"),
            }
        }
        (None, None) => checking.invalid(&of.path, "", "resource or service backend is required"),
    }
}

fn reference(checking: &mut Checking<'_>, of: &Node<'_>) {
    if let Some(group) = of.part("apiGroup") {
        formats::subdomain(checking, &group.path, group.string());
    }
    for key in ["kind", "name"] {
        let value = of.text(key);
        if value.is_empty() {
            let text = if checking.minor >= Minor::V1_34 { String::new() } else { format!("{key} is required") };
            checking.required(of.field(key), &text);
        } else {
            checking.each(of.field(key), value, &names::path_segment(value));
        }
    }
}

pub(super) fn policy(checking: &mut Checking<'_>, spec: &Node<'_>) {
    formats::selector(checking, &spec.get("podSelector"));
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.list(rules) {
            for port in rule.list("ports") {
                policy_port(checking, &port);
            }
            for peer in rule.list(peers) {
                self::peer(checking, &peer);
            }
        }
    }
    let types = spec.get("policyTypes");
    if spec.elements("policyTypes").len() > 2 {
        checking.invalid_go(
            &types.path,
            "[]networking.PolicyType",
            types.value,
            "may not specify more than two policyTypes",
        );
        return;
    }
    for kind in spec.list("policyTypes") {
        checking.one_of(&kind, &["Ingress", "Egress"]);
    }
}

fn policy_port(checking: &mut Checking<'_>, of: &Node<'_>) {
    if let Some(protocol) = of.part("protocol") {
        checking.one_of(&protocol, &["TCP", "UDP", "SCTP"]);
    }
    let (port, end) = (of.get("port"), of.part("endPort"));
    match port.value {
        Value::Null => {
            if let Some(end) = end {
                checking.wrong(&end, "may not be specified when `port` is not specified");
            }
        }
        Value::String(name) => {
            if let Some(end) = end {
                checking.wrong(&end, "may not be specified when `port` is non-numeric");
            }
            checking.each(&port.path, name, &formats::port_name(name));
        }
        number => {
            formats::port_number(checking, &port);
            let Some(end) = end else { return };
            if end.value.as_i64() < number.as_i64() {
                // Until 1.36 it shows the other one.
                let shown = if checking.minor >= Minor::V1_37 { end.value } else { number };
                checking.invalid_value(&end.path, shown, "must be greater than or equal to `port`");
            }
            formats::port_number(checking, &end);
        }
    }
}

fn peer(checking: &mut Checking<'_>, of: &Node<'_>) {
    let mut count = 0;
    for key in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = of.part(key) {
            count += 1;
            formats::selector(checking, &selector);
        }
    }
    let block = of.part("ipBlock");
    if let Some(block) = &block {
        count += 1;
        ip_block(checking, block);
    }
    if count == 0 {
        checking.required(&of.path, "must specify a peer");
    } else if count > 1 && block.is_some() {
        checking.forbidden(&of.path, "may not specify both ipBlock and another peer");
    }
}

fn ip_block(checking: &mut Checking<'_>, block: &Node<'_>) {
    let text = block.text("cidr");
    if text.is_empty() {
        checking.required(block.field("cidr"), "");
        return;
    }
    let Some((network, bits)) = formats::cidr(checking, &block.field("cidr"), text) else { return };
    for except in block.list("except") {
        let Some((inner, inner_bits)) = formats::cidr(checking, &except.path, except.string()) else { continue };
        let within = addresses::network(inner, bits).is_some_and(|(outer, _)| outer == network)
            && inner.is_ipv4() == network.is_ipv4();
        if !within || bits >= inner_bits {
            checking.invalid(&except.path, except.string(), "must be a strict subset of `cidr`");
        }
    }
}
