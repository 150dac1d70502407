//! The amounts that an object uses of a quota (`pkg/quota/v1/evaluator/core` and
//! `k8s.io/apiserver/pkg/quota/v1/generic/evaluator.go`).

use std::collections::BTreeSet;

use palisade_cel::{Minor, Quantity};
use serde_json::Value as Json;

use super::{
    super::{
        Attributes, items,
        resources::{Amounts, Level, amounts, is_pod_level, read},
    },
    MissingResources, is_terminating,
};
use crate::{objects::Gate, requests::Operation};

/// The resources that quotas ignore (`pkg/quota/v1/install/registry.go`).
const IGNORED: &[(&str, &[&str])] = &[
    ("", &["bindings", "componentstatuses", "events"]),
    ("events.k8s.io", &["events"]),
    ("authentication.k8s.io", &["tokenreviews", "selfsubjectreviews"]),
    (
        "authorization.k8s.io",
        &["subjectaccessreviews", "selfsubjectaccessreviews", "localsubjectaccessreviews", "selfsubjectrulesreviews"],
    ),
];

/// Resources of pods whose limits demand that each container says them.
const DEMANDED: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// How the storage of a class is named in a quota.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
const CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];

/// By which rules an object counts.
pub(super) enum Counted {
    Pod {
        minor: Minor,
    },
    Claim {
        minor: Minor,
    },
    Service,
    /// By number alone, under these names.
    Object {
        names: Vec<String>,
    },
}

impl Counted {
    /// None if no quota applies to the request (`Handles`).
    pub fn of(attributes: &Attributes<'_>, object: &Json) -> Option<Self> {
        let request = attributes.request;
        let (group, resource) = (request.resource.group.as_str(), request.resource.resource.as_str());
        let minor = attributes.cluster.minor();
        let (creates, updates) = (request.operation == Operation::Create, request.operation == Operation::Update);
        let old = attributes.old;
        match (group, resource, request.subresource.as_str()) {
            ("", "pods", "") => {
                let changes_scope = updates && old.is_some_and(|old| is_terminating(old) != is_terminating(object));
                (creates || changes_scope).then_some(Self::Pod { minor })
            }
            ("", "pods", "resize") => updates.then_some(Self::Pod { minor }),
            ("", "services", "") => (creates || updates).then_some(Self::Service),
            ("", "persistentvolumeclaims", "") => (creates || updates).then_some(Self::Claim { minor }),
            (_, _, "") if creates && resource != "namespaces" => {
                let ignored = IGNORED.iter().any(|(of, list)| *of == group && list.contains(&resource));
                let mut names = vec![count(group, resource)];
                let has_name =
                    ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"].contains(&resource);
                names.extend((group.is_empty() && has_name).then(|| resource.to_owned()));
                (!ignored).then_some(Self::Object { names })
            }
            _ => None,
        }
    }

    /// Whether a name in a quota is one that the object counts for (`MatchingResources`).
    pub fn counts(&self, name: &str) -> bool {
        match self {
            Self::Pod { .. } => {
                const NAMES: [&str; 11] = [
                    "count/pods",
                    "cpu",
                    "memory",
                    "ephemeral-storage",
                    "requests.cpu",
                    "requests.memory",
                    "requests.ephemeral-storage",
                    "limits.cpu",
                    "limits.memory",
                    "limits.ephemeral-storage",
                    "pods",
                ];
                NAMES.contains(&name)
                    || name.starts_with("hugepages-")
                    || name.strip_prefix("requests.").is_some_and(|of| of.starts_with("hugepages-") || is_extended(of))
            }
            Self::Claim { .. } => {
                let of_class = |name: &str| CLAIMS.iter().any(|claim| name.ends_with(&format!("{OF_CLASS}{claim}")));
                name == "count/persistentvolumeclaims" || CLAIMS.contains(&name) || of_class(name)
            }
            Self::Service => {
                ["count/services", "services", "services.nodeports", "services.loadbalancers"].contains(&name)
            }
            Self::Object { names } => names.iter().any(|one| one == name),
        }
    }

    /// The fields that a pod must set and does not (`Constraints`).
    pub fn lacks(&self, object: &Json, limited: &BTreeSet<String>) -> Option<String> {
        let Self::Pod { minor } = self else { return None };
        let spec = &object["spec"];
        let of_pod =
            |key: &str| spec["resources"][key].as_object().is_some_and(|list| list.keys().any(|k| is_pod_level(k)));
        if Gate::PodLevelResources.is_on(*minor) && (of_pod("requests") || of_pod("limits")) {
            return None;
        }
        let mut lacking = MissingResources::new();
        for container in items(&spec["containers"]).chain(items(&spec["initContainers"])) {
            let resources = &container["resources"];
            let said = compute(&read(&resources["requests"]), &read(&resources["limits"]));
            let name = container["name"].as_str().unwrap_or_default();
            for missing in limited.iter().filter(|one| DEMANDED.contains(&one.as_str()) && !said.contains_key(*one)) {
                lacking.entry(missing.clone()).or_default().insert(name);
            }
        }
        let texts: Vec<_> = lacking
            .into_iter()
            .map(|(name, containers)| format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(",")))
            .collect();
        (!texts.is_empty()).then(|| format!("must specify {}", texts.join("; ")))
    }

    /// The usage that an object adds (`Usage`).
    pub fn usage(&self, object: &Json) -> Amounts {
        let one = |name: &str| (name.to_owned(), Quantity::count(1));
        match self {
            Self::Pod { minor } => {
                let mut usage = Amounts::from([one("count/pods")]);
                if matches!(object["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) {
                    return usage;
                }
                let on = Gate::PodLevelResources.is_on(*minor);
                let level = if on { Level::WithOverhead } else { Level::OverheadAlone };
                let of = |which: &str| amounts(&object["spec"], which, level);
                usage.extend(compute(&of("requests"), &of("limits")));
                usage
            }
            Self::Claim { .. } => claim(object),
            Self::Service => service(object),
            Self::Object { names } => names.iter().map(|name| one(name)).collect(),
        }
    }
}

/// `ObjectCountQuotaResourceNameFor`
fn count(group: &str, resource: &str) -> String {
    if group.is_empty() { format!("count/{resource}") } else { format!("count/{resource}.{group}") }
}

/// Whether a resource is one that devices add (`IsExtendedResourceName`).
fn is_extended(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    !native || name.starts_with("deviceclass.resource.kubernetes.io/")
}

/// Whether a name in a quota may stand for devices that a `ResourceClaim` requests (`MatchingResources`): those of a
/// class, or an extended resource of a class.
pub(super) fn counts_devices(name: &str) -> bool {
    name.ends_with(".deviceclass.resource.k8s.io/devices") || name.strip_prefix("requests.").is_some_and(is_extended)
}

/// `podComputeUsageHelper`
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::from([("pods".to_owned(), Quantity::count(1))]);
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(request) = requests.get(name) {
            usage.insert(name.to_owned(), request.clone());
            usage.insert(format!("requests.{name}"), request.clone());
        }
        if let Some(limit) = limits.get(name) {
            usage.insert(format!("limits.{name}"), limit.clone());
        }
    }
    for (name, request) in requests {
        if name.starts_with("hugepages-") {
            usage.insert(name.clone(), request.clone());
        }
        if name.starts_with("hugepages-") || is_extended(name) {
            usage.insert(format!("requests.{name}"), request.clone());
        }
    }
    usage
}

fn claim(claim: &Json) -> Amounts {
    let one = Quantity::count(1);
    let mut usage = Amounts::new();
    let annotation = claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"].as_str();
    let class = annotation.or_else(|| claim["spec"]["storageClassName"].as_str()).filter(|class| !class.is_empty());
    let mut add = |name: &str, amount: &Quantity| {
        usage.insert(name.to_owned(), amount.clone());
        if let Some(class) = class {
            usage.insert(format!("{class}{OF_CLASS}{name}"), amount.clone());
        }
    };
    add("persistentvolumeclaims", &one);
    let storage = |list: &Json| read(list).remove("storage");
    let allocated = storage(&claim["status"]["allocatedResources"]);
    if let Some(asked) = storage(&claim["spec"]["resources"]["requests"]) {
        let most = allocated.filter(|allocated| allocated.compare(&asked).is_gt()).unwrap_or(asked);
        add("requests.storage", &most);
    }
    usage.insert("count/persistentvolumeclaims".to_owned(), one);
    usage
}

fn service(service: &Json) -> Amounts {
    let spec = &service["spec"];
    let kind = spec["type"].as_str().unwrap_or_default();
    let with_ports =
        items(&spec["ports"]).filter(|port| port["nodePort"].as_i64().is_some_and(|port| port != 0)).count();
    let ports = match kind {
        "LoadBalancer" if spec["allocateLoadBalancerNodePorts"] == false => with_ports,
        "NodePort" | "LoadBalancer" => items(&spec["ports"]).count(),
        _ => 0,
    };
    let amount =
        |name: &str, value: usize| (name.to_owned(), Quantity::count(i64::try_from(value).unwrap_or(i64::MAX)));
    Amounts::from([
        amount("count/services", 1),
        amount("services", 1),
        amount("services.loadbalancers", usize::from(kind == "LoadBalancer")),
        amount("services.nodeports", ports),
    ])
}
