//! Warnings of the resources' strategies (`WarningsOnCreate` and `WarningsOnUpdate` in `pkg/registry/*/*/strategy.go`).
//!
//! Left out: whether the key of a TLS secret fits its certificate, addresses in the status of pods, services and
//! ingresses, and warnings about deprecated kinds.

pub(super) mod addresses;
mod definitions;
mod nodes;
mod pods;
mod volumes;

use std::ops::Deref;

use palisade_cel::Minor;
use serde_json::Value;

use super::{Kinds, Submission};
use crate::validation::{list, names, part, quote, text};

/// In Go maps have no order; here keys are sorted.
type Warnings = Vec<String>;

const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const STORAGE_CLASS_DEPRECATED: &str = r#"deprecated since v1.8; use "storageClassName" attribute instead"#;

impl Kinds {
    /// The client's warnings, given the object that it sent (after mutating admission) and the result of
    /// [`Self::prepare`], if [`Self::validate`] finds no error. The texts are the server's.
    pub fn warnings(&self, sent: Submission<'_>, prepared: &Value) -> Vec<String> {
        let mut out = Warnings::new();
        if let Some(custom) = self.custom(sent.resource) {
            out.extend(custom.warnings(self.minor, sent, prepared));
        }
        out.extend(self.preparation_warnings(sent));
        if sent.subresource.is_empty() {
            warn(self.minor, sent, prepared, &mut out);
        }
        out
    }

    /// The warnings that the client gets even if [`Self::validate`] finds an error, a part of [`Self::warnings`].
    /// `PrepareForCreate` adds them, before validation (`applyAppArmorVersionSkew` in
    /// `pkg/registry/core/pod/strategy.go`).
    pub fn preparation_warnings(&self, sent: Submission<'_>) -> Vec<String> {
        let mut out = Warnings::new();
        let resource = (sent.resource.group.as_str(), sent.resource.kind.as_str());
        if resource == ("", "Pod") && sent.subresource.is_empty() && sent.old.is_none() {
            pods::app_armor_of_pod(sent.object, &mut out);
        }
        out
    }
}

fn warn(minor: Minor, sent: Submission<'_>, object: &Value, out: &mut Warnings) {
    let (spec, old) = (&object["spec"], sent.old.map(Deref::deref));
    let generation = |of: &Value| of["metadata"]["generation"].clone();
    let changed = old.is_none_or(|old| generation(old) != generation(object));
    let template = |object: &Value, out: &mut Warnings| {
        pods::template(minor, "spec.template", &object["spec"]["template"], out);
    };
    match (sent.resource.group.as_str(), sent.resource.kind.as_str()) {
        // Updates of pods are many, and made by no human.
        ("", "Pod") if old.is_none() => {
            hostname("the Pod's hostname", object, out);
            pods::pod(minor, object, out);
        }
        ("apps", "Deployment" | "ReplicaSet") => {
            if old.is_none() {
                hostname("Pod names and hostnames", object, out);
            }
            if changed {
                template(object, out);
            }
        }
        ("", "ReplicationController") => match old {
            None => {
                hostname("Pod names and hostnames", object, out);
                template(object, out);
            }
            // The server takes the old one for the new one.
            Some(old) if changed => template(old, out),
            Some(_) => {}
        },
        ("apps", "DaemonSet") if old.is_none_or(|old| old["spec"]["template"] != spec["template"]) => {
            template(object, out);
        }
        ("apps", "StatefulSet") => {
            if changed {
                template(object, out);
            }
            let suffix = if old.is_some() { ".Spec" } else { "" };
            for (i, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
                volumes::claim(&format!("spec.volumeClaimTemplates[{i}]{suffix}"), &claim["spec"], out);
            }
            if minor >= Minor::V1_33 && spec["revisionHistoryLimit"].as_i64().is_some_and(|limit| limit < 0) {
                let text = "a negative value retains all historical revisions; a value >= 0 is recommended";
                out.push(format!("spec.revisionHistoryLimit: {text}"));
            }
        }
        ("batch", "Job" | "CronJob") => jobs(minor, sent, object, changed, out),
        ("", "PodTemplate") if changed => pods::template(minor, "template", &object["template"], out),
        ("", "Service") => service(minor, object, out),
        ("", "PersistentVolumeClaim") => {
            if annotation(object, STORAGE_CLASS).is_some() {
                out.push(format!("metadata.annotations[{STORAGE_CLASS}]: {STORAGE_CLASS_DEPRECATED}"));
            }
            volumes::claim("spec", spec, out);
        }
        ("", "PersistentVolume") => volumes::persistent(object, out),
        ("", "Node" | "Endpoints") | ("discovery.k8s.io" | "networking.k8s.io", _) => network(minor, sent, object, out),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definitions::formats(minor, object, old, out),
        ("node.k8s.io", "RuntimeClass") => nodes::runtime_class(object, out),
        ("storage.k8s.io", _) => nodes::topology(object, out),
        _ => {}
    }
}

/// Names of pods become those of hosts.
fn hostname(what: &str, object: &Value, out: &mut Warnings) {
    let wrong = names::label(text(&object["metadata"], "name"));
    if !wrong.is_empty() {
        let wrong = wrong.join(" ");
        out.push(format!(
            "metadata.name: this is used in {what}, which can result in surprising behavior; a DNS label is \
             recommended: [{wrong}]"
        ));
    }
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"].get(key)?.as_str()
}

/// `WarningsForJobSpec` (`pkg/api/job/warnings.go`).
fn jobs(minor: Minor, sent: Submission<'_>, object: &Value, changed: bool, out: &mut Warnings) {
    let scheduled = sent.resource.kind == "CronJob";
    let (path, spec) = if scheduled {
        ("spec.jobTemplate.spec", &object["spec"]["jobTemplate"]["spec"])
    } else {
        ("spec", &object["spec"])
    };
    if sent.old.is_none() {
        hostname("Pod names and hostnames", object, out);
    }
    if changed {
        let over = |key: &str, limit: i64| spec[key].as_i64().is_some_and(|number| number > limit);
        if spec["completionMode"] == "Indexed" && over("completions", 100_000) && over("parallelism", 10_000) {
            out.push(format!(
                "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than \
                 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
            ));
        }
        pods::template(minor, &format!("{path}.template"), &spec["template"], out);
    }
    if scheduled && sent.old.is_some() && text(&object["spec"], "schedule").contains("TZ") {
        out.push(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .to_owned(),
        );
    }
}

/// `GetWarningsForService` (`pkg/api/service/warnings.go`).
fn service(minor: Minor, service: &Value, out: &mut Warnings) {
    let spec = &service["spec"];
    if annotation(service, "service.kubernetes.io/topology-aware-hints").is_some() {
        out.push(
            "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
             service.kubernetes.io/topology-mode instead"
                .to_owned(),
        );
    }
    let (external, external_name) = (list(spec, "externalIPs"), spec["type"] == "ExternalName");
    let headless = spec["type"] == "ClusterIP" && spec["clusterIP"] == "None";
    if minor < Minor::V1_33 {
        let clusters = list(spec, "clusterIPs").iter().filter(|_| !headless && !external_name);
        let of_list = |key: &str, out: &mut Warnings| {
            for (i, value) in list(spec, key).iter().enumerate() {
                addresses::of_service(&format!("spec.{key}[{i}]"), value.as_str().unwrap_or_default(), out);
            }
        };
        for (i, value) in clusters.enumerate() {
            addresses::of_service(&format!("spec.clusterIPs[{i}]"), value.as_str().unwrap_or_default(), out);
        }
        of_list("externalIPs", out);
        for ip in [text(spec, "loadBalancerIP")].into_iter().filter(|ip| !ip.is_empty()) {
            addresses::of_service("spec.loadBalancerIP", ip, out);
        }
        of_list("loadBalancerSourceRanges", out);
    }
    if !headless && !external_name {
        addresses::ips(minor, "spec.clusterIPs", list(spec, "clusterIPs"), out);
    }
    if headless && minor >= Minor::V1_34 {
        let ignored = [
            ("loadBalancerIP", !text(spec, "loadBalancerIP").is_empty()),
            ("externalIPs", !external.is_empty()),
            ("SessionAffinity", spec["sessionAffinity"] != "None"),
        ];
        for (key, _) in ignored.iter().filter(|(_, is_set)| *is_set) {
            out.push(format!("spec.{key} is ignored for headless services"));
        }
    }
    addresses::ips(minor, "spec.externalIPs", external, out);
    if minor >= Minor::V1_36 && !external.is_empty() && !headless && !external_name {
        out.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned());
    }
    addresses::ip(minor, "spec.loadBalancerIP", text(spec, "loadBalancerIP"), out);
    addresses::cidrs(minor, "spec.loadBalancerSourceRanges", list(spec, "loadBalancerSourceRanges"), out);
    if external_name && !external.is_empty() {
        out.push(r#"spec.externalIPs is ignored when spec.type is "ExternalName""#.to_owned());
    }
    if !external_name && !text(spec, "externalName").is_empty() {
        out.push(r#"spec.externalName is ignored when spec.type is not "ExternalName""#.to_owned());
    }
    if minor >= Minor::V1_35 && spec["trafficDistribution"] == "PreferClose" {
        out.push(r#"spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone""#.to_owned());
    }
}

/// Nodes, endpoints, ingresses and network policies.
fn network(minor: Minor, sent: Submission<'_>, object: &Value, out: &mut Warnings) {
    let spec = &object["spec"];
    let manager = |key: &str| object["metadata"]["labels"].get(key).and_then(Value::as_str).unwrap_or_default();
    match sent.resource.kind.as_str() {
        "Node" => {
            if part(spec, "configSource").is_some() {
                out.push("spec.configSource: the feature is removed".to_owned());
            }
            if !text(spec, "externalID").is_empty() {
                out.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
            }
            addresses::cidrs(minor, "spec.podCIDRs", list(spec, "podCIDRs"), out);
        }
        "Endpoints" if manager("endpoints.kubernetes.io/managed-by") != "endpoint-controller" => {
            for (i, subset) in list(object, "subsets").iter().enumerate() {
                for key in ["addresses", "notReadyAddresses"] {
                    for (j, address) in list(subset, key).iter().enumerate() {
                        addresses::ip(minor, &format!("subsets[{i}].{key}[{j}].ip"), text(address, "ip"), out);
                    }
                }
            }
        }
        "EndpointSlice" => {
            if sent.old.is_none() && object["addressType"] == "FQDN" {
                out.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
            }
            let known = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
            if known.contains(&manager("endpointslice.kubernetes.io/managed-by")) {
                return;
            }
            for (i, endpoint) in list(object, "endpoints").iter().enumerate() {
                addresses::ips(minor, &format!("endpoints[{i}].addresses"), list(endpoint, "addresses"), out);
            }
        }
        "Ingress" if sent.old.is_none() => {
            let class = "kubernetes.io/ingress.class";
            if annotation(object, class).is_some() && part(spec, "ingressClassName").is_none() {
                out.push(format!(
                    "annotation {} is deprecated, please use 'spec.ingressClassName' instead",
                    quote(class)
                ));
            }
        }
        "NetworkPolicy" => {
            for (key, peers) in [("ingress", "from"), ("egress", "to")] {
                for (i, rule) in list(spec, key).iter().enumerate() {
                    for (j, peer) in list(rule, peers).iter().enumerate() {
                        let Some(block) = part(peer, "ipBlock") else { continue };
                        let path = format!("spec.{key}[{i}].{peers}[{j}].ipBlock");
                        addresses::cidr(minor, &format!("{path}.cidr"), text(block, "cidr"), out);
                        addresses::cidrs(minor, &format!("{path}.except"), list(block, "except"), out);
                    }
                }
            }
        }
        _ => {}
    }
}

/// Warns of a part of a byte. Defaulting rounds quantities up to thousandths and writes them in the canonical form, in
/// which only what is not a whole number ends like this.
fn fractional(path: &str, resources: &Value, name: &str, out: &mut Warnings) {
    let value = text(resources, name);
    // So does what has more than 64 bits in thousandths, of which the API server computes the rest.
    let too_large = || palisade_cel::Quantity::parse(value).is_ok_and(|value| !value.is_whole());
    if value.ends_with(['m', 'u', 'n']) || value.contains("e-") || too_large() {
        let value = quote(value);
        out.push(format!("{path}[{name}]: fractional byte value {value} is invalid, must be an integer"));
    }
}
