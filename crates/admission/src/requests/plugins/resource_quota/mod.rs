//! `ResourceQuota`: no more in a namespace than its quotas allow
//! (`k8s.io/apiserver/pkg/admission/plugin/resourcequota`).
//!
//! The amounts in use are in `status.used` of the quota, which a controller maintains. If a quota in a file has no
//! status, there is a verdict only where the amounts in use make no difference: the request asks for nothing that is
//! limited, or for more than the whole quota.

mod usage;

use std::collections::{BTreeMap, BTreeSet};

use palisade_cel::Quantity;
use serde_json::Value as Json;

use super::{
    Attributes, PluginRemarks,
    resources::{Amounts, add, read},
};
use crate::objects::{Gate, Refused};
use usage::Counted;

pub(super) fn validate(
    attributes: &Attributes<'_>,
    object: Option<&Json>,
    said: &mut PluginRemarks,
) -> Result<(), Refused> {
    let Some(object) = object.filter(|_| !attributes.namespace().is_empty()) else { return Ok(()) };
    said.unjudged.extend(devices(attributes));
    let Some(counted) = Counted::of(attributes, object) else { return Ok(()) };
    let quotas = attributes.all("", "ResourceQuota", attributes.namespace());
    let mut pertinent = Vec::new();
    for quota in quotas.filter(|quota| matches(&counted, quota, object)) {
        let quota = Quota::new(quota);
        let limited: BTreeSet<String> = quota.hard.keys().filter(|name| counted.counts(name)).cloned().collect();
        if let Some(why) = counted.lacks(object, &limited) {
            return Err(attributes.forbidden(format!("failed quota: {}: {why}", quota.name)));
        }
        let unknown: Vec<_> = limited.iter().filter(|name| !quota.used.contains_key(*name)).cloned().collect();
        if quota.is_observed && !unknown.is_empty() {
            let resources: Vec<_> = limited.into_iter().collect();
            let why = format!("status unknown for quota: {}, resources: {}", quota.name, resources.join(","));
            return Err(attributes.forbidden(why));
        }
        pertinent.push(quota);
    }
    if pertinent.is_empty() {
        return Ok(());
    }
    let wanted = counted.usage(object);
    let negative: Vec<_> =
        wanted.iter().filter(|(_, amount)| amount.sign() < 0).map(|(name, _)| name.clone()).collect();
    if !negative.is_empty() {
        let why = format!("quota usage is negative for resource(s): {}", negative.join(","));
        return Err(attributes.forbidden(why));
    }
    let before = attributes.old.filter(|_| attributes.updates());
    let more = before.map_or_else(|| wanted.clone(), |old| increase(&wanted, &counted.usage(old)));
    for quota in pertinent {
        // What did not count before counts as a whole.
        let counted_before = before.is_none_or(|old| matches(&counted, quota.object, old));
        let delta = if counted_before { &more } else { &wanted };
        quota.check(attributes, delta, said)?;
    }
    Ok(())
}

/// Why nothing is known of the devices that a `ResourceClaim` asks for, if a quota may limit them
/// (`pkg/quota/v1/evaluator/core/resource_claims.go`): how many there are depends on device classes and allocations.
fn devices(attributes: &Attributes<'_>) -> Option<String> {
    let claims = attributes.is("resource.k8s.io", "resourceclaims", "");
    let mut quotas = attributes.all("", "ResourceQuota", attributes.namespace()).map(Quota::new);
    let quota = quotas.find(|quota| quota.hard.keys().any(|name| usage::counts_devices(name)))?;
    (claims && (attributes.creates() || attributes.updates())).then(|| {
        format!(
            "admission plugin ResourceQuota: the quota {:?} limits devices, which are not counted offline",
            quota.name
        )
    })
}

/// A quota, and what is in use of it.
struct Quota<'a> {
    object: &'a Json,
    name: &'a str,
    hard: Amounts,
    used: Amounts,
    /// Whether it has a status, which a controller wrote.
    is_observed: bool,
}

impl<'a> Quota<'a> {
    fn new(object: &'a Json) -> Self {
        let status = &object["status"];
        let is_observed = status["used"].is_object();
        let hard = if status["hard"].is_object() { &status["hard"] } else { &object["spec"]["hard"] };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Self { object, name, hard: read(hard), used: read(&status["used"]), is_observed }
    }

    fn check(&self, attributes: &Attributes<'_>, delta: &Amounts, said: &mut PluginRemarks) -> Result<(), Refused> {
        let requested: Amounts = delta
            .iter()
            .filter(|(name, amount)| amount.sign() != 0 && self.hard.contains_key(*name))
            .map(|(name, amount)| (name.clone(), amount.clone()))
            .collect();
        if requested.is_empty() {
            return Ok(());
        }
        let mut total = requested.clone();
        add(&mut total, &self.used);
        let exceeds = |name: &&String| total[*name].compare(&self.hard[*name]).is_gt();
        let exceeded: Vec<&String> = requested.keys().filter(exceeds).collect();
        if !exceeded.is_empty() {
            let zero = Quantity::count(0);
            let list = |of: &Amounts| {
                let amount = |name: &&&String| of.get(**name).unwrap_or(&zero).to_string();
                let texts = exceeded.iter().map(|name| format!("{name}={}", amount(&name)));
                texts.collect::<Vec<_>>().join(",")
            };
            return Err(attributes.forbidden(format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                self.name,
                list(&requested),
                list(&self.used),
                list(&self.hard)
            )));
        }
        if !self.is_observed {
            let names: Vec<_> = requested.keys().map(String::as_str).collect();
            said.unjudged.push(format!(
                "admission plugin ResourceQuota: the quota {:?} limits {}, and how much is in use already is not in its \
                 file: add status.used to it",
                self.name,
                names.join(", ")
            ));
        }
        Ok(())
    }
}

/// The increase of each amount; zero if the amount decreases.
fn increase(now: &Amounts, before: &Amounts) -> Amounts {
    let more = |(name, amount): (&String, &Quantity)| {
        let more =
            before.get(name).map_or_else(|| amount.clone(), |had| amount.sub(had).unwrap_or_else(|_| amount.clone()));
        (name.clone(), if more.sign() > 0 { more } else { Quantity::count(0) })
    };
    now.iter().map(more).collect()
}

/// Whether a quota is about an object: it limits something of it, and all its scopes have it (`generic.Matches`).
fn matches(counted: &Counted, quota: &Json, object: &Json) -> bool {
    let hard = Quota::new(quota).hard;
    let mut scopes: Vec<Scope> = Vec::new();
    let list = |value: &Json| value.as_array().cloned().unwrap_or_default();
    for name in list(&quota["spec"]["scopes"]) {
        scopes.push(Scope { name: text(&name), operator: "Exists".to_owned(), values: vec![] });
    }
    for one in list(&quota["spec"]["scopeSelector"]["matchExpressions"]) {
        let values = list(&one["values"]).iter().map(text).collect();
        scopes.push(Scope { name: text(&one["scopeName"]), operator: text(&one["operator"]), values });
    }
    hard.keys().any(|name| counted.counts(name)) && scopes.iter().all(|scope| scope.has(counted, object))
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A scope, which restricts the objects of a quota.
struct Scope {
    name: String,
    operator: String,
    values: Vec<String>,
}

impl Scope {
    fn has(&self, counted: &Counted, object: &Json) -> bool {
        let spec = &object["spec"];
        match (counted, self.name.as_str()) {
            (Counted::Pod { .. }, "Terminating") => is_terminating(object),
            (Counted::Pod { .. }, "NotTerminating") => !is_terminating(object),
            (Counted::Pod { .. }, "BestEffort") => object["status"]["qosClass"] == "BestEffort",
            (Counted::Pod { .. }, "NotBestEffort") => object["status"]["qosClass"] != "BestEffort",
            (Counted::Pod { .. }, "PriorityClass") => self.selects(&[spec["priorityClassName"].as_str()]),
            (Counted::Pod { .. }, "CrossNamespacePodAffinity") => crosses_namespaces(spec),
            (Counted::Claim { minor }, "VolumeAttributesClass") if Gate::VolumeAttributesClass.is_on(*minor) => {
                let status = &object["status"];
                self.selects(&[
                    spec["volumeAttributesClassName"].as_str(),
                    status["currentVolumeAttributesClassName"].as_str(),
                    status["modifyVolumeStatus"]["targetVolumeAttributesClassName"].as_str(),
                ])
            }
            _ => false,
        }
    }

    /// Whether one of the names is selected. Having no name is like having no label.
    fn selects(&self, names: &[Option<&str>]) -> bool {
        let names: BTreeSet<&str> = names.iter().flatten().copied().filter(|name| !name.is_empty()).collect();
        let listed = |name: &&str| self.values.iter().any(|value| value == name);
        match self.operator.as_str() {
            "Exists" => !names.is_empty(),
            "DoesNotExist" => names.is_empty(),
            "In" => names.iter().any(listed),
            "NotIn" => names.is_empty() || names.iter().any(|name| !listed(name)),
            _ => false,
        }
    }
}

pub(super) fn is_terminating(pod: &Json) -> bool {
    pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0)
}

/// Whether a pod is to be near to, or far from, pods of other namespaces.
fn crosses_namespaces(spec: &Json) -> bool {
    let crosses = |term: &Json| {
        let named = term["namespaces"].as_array().is_some_and(|list| !list.is_empty());
        named || !term["namespaceSelector"].is_null()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let affinity = &spec["affinity"][*kind];
        let required = super::items(&affinity["requiredDuringSchedulingIgnoredDuringExecution"]);
        let preferred = super::items(&affinity["preferredDuringSchedulingIgnoredDuringExecution"]);
        required.chain(preferred.map(|term| &term["podAffinityTerm"])).any(crosses)
    })
}

/// Resources that some containers do not specify, with these containers.
pub(super) type MissingResources<'a> = BTreeMap<String, BTreeSet<&'a str>>;
