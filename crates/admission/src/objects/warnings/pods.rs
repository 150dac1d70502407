//! Pods and templates of pods (`pkg/api/pod/warnings.go`).

use std::collections::{BTreeMap, BTreeSet};

use palisade_cel::Minor;
use serde_json::Value;

use super::{Warnings, addresses, annotation, fractional, nodes, volumes};
use crate::{
    objects::pods::app_armor_profile,
    validation::{list, part, quote, text},
};

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const APP_ARMOR_DEPRECATED: &str = r#"deprecated since v1.30; use the "appArmorProfile" field instead"#;
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const SECCOMP_GONE: &str = r#"non-functional in v1.27+; use the "seccompProfile" field instead"#;
const MATCHES_NONE: &str = "a null labelSelector results in matching no pod";

/// `GetWarningsForPod`.
pub(super) fn pod(minor: Minor, pod: &Value, out: &mut Warnings) {
    warn(minor, "", pod, out);
}

/// `GetWarningsForPodTemplate`.
pub(super) fn template(minor: Minor, path: &str, template: &Value, out: &mut Warnings) {
    if !template.is_null() {
        warn(minor, &format!("{path}."), template, out);
    }
}

/// Says which annotations become fields (`applyAppArmorVersionSkew` in `pkg/registry/core/pod/strategy.go`), before they
/// do.
pub(super) fn app_armor_of_pod(pod: &Value, out: &mut Warnings) {
    let spec = &pod["spec"];
    if spec["os"]["name"] == "windows" {
        return;
    }
    let of_pod = part(&spec["securityContext"], "appArmorProfile");
    for (_, container) in containers("", spec) {
        let key = format!("{APP_ARMOR}{}", text(container, "name"));
        let Some(value) = annotation(pod, &key) else { continue };
        let profile = app_armor_profile(value);
        let same = profile.is_some() && profile.as_ref() == of_pod;
        if part(&container["securityContext"], "appArmorProfile").is_none() && !same {
            out.push(format!("metadata.annotations[{key}]: {APP_ARMOR_DEPRECATED}"));
        }
    }
}

/// All containers, each with its path.
fn containers<'a>(path: &str, spec: &'a Value) -> Vec<(String, &'a Value)> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let of = |key: &'static str| {
        let one = move |(i, container)| (format!("{path}spec.{key}[{i}]"), container);
        list(spec, key).iter().enumerate().map(one)
    };
    lists.into_iter().flat_map(of).collect()
}

/// `warningsForPodSpecAndMeta`; `path` is the prefix before `spec`.
fn warn(minor: Minor, path: &str, pod: &Value, out: &mut Warnings) {
    let spec = &pod["spec"];
    node_selection(minor, path, spec, out);
    for (key, message) in [
        (
            "scheduler.alpha.kubernetes.io/critical-pod",
            r#"non-functional in v1.16+; use the "priorityClassName" field instead"#,
        ),
        ("security.alpha.kubernetes.io/sysctls", r#"non-functional in v1.11+; use the "sysctls" field instead"#),
        ("security.alpha.kubernetes.io/unsafe-sysctls", r#"non-functional in v1.11+; use the "sysctls" field instead"#),
    ] {
        if annotation(pod, key).is_some() {
            out.push(format!("{path}metadata.annotations[{key}]: {message}"));
        }
    }
    volumes::pod(minor, path, spec, out);
    duplicates(path, spec, out);
    for resource in ["memory", "ephemeral-storage"] {
        fractional(&format!("{path}spec.overhead"), &spec["overhead"], resource, out);
    }
    if part(&spec["securityContext"], "seccompProfile").is_none() && annotation(pod, SECCOMP_POD).is_some() {
        out.push(format!("{path}metadata.annotations[{SECCOMP_POD}]: {SECCOMP_GONE}"));
    }
    let containers = containers(path, spec);
    for (at, one) in &containers {
        container(minor, path, pod, at, one, out);
    }
    ports(&containers, out);
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        let text = "must be >= 0; negative values are invalid and will be treated as 1";
        out.push(format!("{path}spec.terminationGracePeriodSeconds: {text}"));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        for (key, within) in [
            ("requiredDuringSchedulingIgnoredDuringExecution", ""),
            ("preferredDuringSchedulingIgnoredDuringExecution", ".podAffinityTerm"),
        ] {
            for (i, term) in list(&spec["affinity"][kind], key).iter().enumerate() {
                let selects = if within.is_empty() { term } else { &term["podAffinityTerm"] };
                if part(selects, "labelSelector").is_none() {
                    out.push(format!("{path}spec.affinity.{kind}.{key}[{i}]{within}.labelSelector: {MATCHES_NONE}"));
                }
            }
        }
    }
    addresses::ips(minor, &format!("{path}spec.dnsConfig.nameservers"), list(&spec["dnsConfig"], "nameservers"), out);
    for (i, alias) in list(spec, "hostAliases").iter().enumerate() {
        addresses::ip(minor, &format!("{path}spec.hostAliases[{i}].ip"), text(alias, "ip"), out);
    }
}

/// Which nodes are selected.
fn node_selection(minor: Minor, path: &str, spec: &Value, out: &mut Warnings) {
    for (key, message) in nodes::labels(&spec["nodeSelector"]) {
        out.push(format!("{path}spec.nodeSelector[{key}]: {message}"));
    }
    let affinity = &spec["affinity"]["nodeAffinity"];
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    for (i, term) in list(&affinity[required], "nodeSelectorTerms").iter().enumerate() {
        let at = format!("{path}spec.affinity.nodeAffinity.{required}.nodeSelectorTerms[{i}]");
        nodes::expressions(&at, term, None, out);
    }
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    for (i, term) in list(affinity, preferred).iter().enumerate() {
        let at = format!("{path}spec.affinity.nodeAffinity.{preferred}[{i}].preference");
        nodes::expressions(&at, &term["preference"], Some(minor), out);
    }
    for (i, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let at = format!("{path}spec.topologySpreadConstraints[{i}]");
        let key = text(constraint, "topologyKey");
        if let Some(message) = nodes::deprecated(key) {
            out.push(format!("{at}.topologyKey: {key} is {message}"));
        }
        if part(constraint, "labelSelector").is_none() {
            out.push(format!("{at}.labelSelector: {MATCHES_NONE}"));
        }
    }
}

/// Entries of lists that a merge takes for one.
fn duplicates(path: &str, spec: &Value, out: &mut Warnings) {
    for (key, name) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let mut seen = BTreeSet::new();
        for (i, item) in list(spec, key).iter().enumerate() {
            if !seen.insert(text(item, name)) {
                out.push(format!("{path}spec.{key}[{i}].{name}: duplicate {name} {}", quote(text(item, name))));
            }
        }
    }
    for (i, item) in list(spec, "imagePullSecrets").iter().enumerate() {
        if text(item, "name").is_empty() {
            out.push(format!(r#"{path}spec.imagePullSecrets[{i}].name: invalid empty name """#));
        }
    }
}

fn container(minor: Minor, path: &str, pod: &Value, at: &str, container: &Value, out: &mut Warnings) {
    let (name, context) = (text(container, "name"), &container["securityContext"]);
    let key = format!("{SECCOMP_CONTAINER}{name}");
    if part(context, "seccompProfile").is_none() && annotation(pod, &key).is_some() {
        out.push(format!("{path}metadata.annotations[{key}]: {SECCOMP_GONE}"));
    }
    let key = format!("{APP_ARMOR}{name}");
    // Of pods this is reported where the annotation becomes the field.
    if let (false, None, Some(value)) = (path.is_empty(), part(context, "appArmorProfile"), annotation(pod, &key)) {
        let of_pod = part(&pod["spec"]["securityContext"], "appArmorProfile");
        let same = |profile: &Value| minor < Minor::V1_34 || app_armor_profile(value).as_ref() == Some(profile);
        if !of_pod.is_some_and(same) {
            out.push(format!("{path}metadata.annotations[{key}]: {APP_ARMOR_DEPRECATED}"));
        }
    }
    for resource in ["memory", "ephemeral-storage"] {
        for which in ["limits", "requests"] {
            fractional(&format!("{at}.resources.{which}"), &container["resources"][which], resource, out);
        }
    }
    let mut seen = BTreeSet::new();
    for (i, variable) in list(container, "env").iter().enumerate() {
        let (name, value) = (text(variable, "name"), text(variable, "value"));
        if seen.insert(name) {
            continue;
        }
        // A value that has the former one as a part of it is meant so.
        let former = format!("$({name})");
        if part(variable, "valueFrom").is_some() || value == former || !value.contains(&former) {
            let name = quote(name);
            out.push(format!(
                "{at}.env[{i}]: hides previous definition of {name}, which may be dropped when using apply"
            ));
        }
    }
}

/// Ports of all containers, which share one address.
fn ports(containers: &[(String, &Value)], out: &mut Warnings) {
    let all = containers.iter().flat_map(|(at, container)| {
        list(container, "ports").iter().enumerate().map(move |(i, port)| (format!("{at}.ports[{i}]"), port))
    });
    let all: Vec<_> = all.collect();
    let number = |port: &Value, key: &str| port[key].as_i64().unwrap_or_default();
    let mut taken: BTreeMap<_, Vec<(&str, &Value)>> = BTreeMap::new();
    for (at, port) in &all {
        let (ip, host, inner) = (text(port, "hostIP"), number(port, "hostPort"), number(port, "containerPort"));
        let protocol = text(port, "protocol");
        if !ip.is_empty() && host == 0 {
            out.push(format!(
                "{at}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{inner} Protocol:{protocol} \
                 HostIP:{ip}}}",
                text(port, "name")
            ));
        }
        let others = taken.entry((inner, protocol)).or_default();
        for (other_at, other) in others.iter() {
            let (other_ip, other_host) = (text(other, "hostIP"), number(other, "hostPort"));
            let what = if (ip, host) == (other_ip, other_host) {
                "duplicate"
            } else if host == 0 || other_host == 0 {
                "overlapping"
            } else if host == other_host && ip.is_empty() != other_ip.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            out.push(format!("{at}: {what} port definition with {other_at}"));
        }
        others.push((at, port));
    }
    let mut named: BTreeMap<&str, &str> = BTreeMap::new();
    for (at, port) in &all {
        let name = text(port, "name");
        if name.is_empty() {
            continue;
        }
        let first = *named.entry(name).or_insert(at);
        if first != at {
            let name = quote(name);
            out.push(format!(
                "{at}: duplicate port name {name} with {first}, services and probes that select ports by name will use \
                 {first}"
            ));
        }
    }
}
