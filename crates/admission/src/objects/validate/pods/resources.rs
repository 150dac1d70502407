//! Resources of containers and pods (`validateResourceRequirements` and `validatePodResources` in
//! `pkg/apis/core/validation/validation.go`, `pkg/apis/core/helper`).

use std::collections::{BTreeMap, BTreeSet};

use palisade_cel::Quantity;

use super::{
    super::{
        formats,
        node::Node,
        quantities::{PAGES, amount, container_name, may_overcommit, name, quantity, without_quotes},
    },
    Pod,
};
use crate::validation::{Checking, FieldError};

/// The same of a key.
fn container_key(checking: &mut Checking<'_>, node: &Node<'_>, of: &str) {
    let from = checking.errors.len();
    container_name(checking, node, of);
    without_quotes(checking, from, of);
}

/// `validatePodResourceName`.
fn pod_name(checking: &mut Checking<'_>, node: &Node<'_>, of: &str) {
    let from = checking.errors.len();
    if name(checking, node, of) && !["cpu", "memory"].contains(&of) && !of.starts_with(PAGES) {
        checking.unsupported(&node.path, of, &["cpu", PAGES, "memory"]);
    }
    without_quotes(checking, from, of);
}

/// `validateOverhead`: limits of a container, reported by that name.
pub(super) fn overhead(checking: &mut Checking<'_>, spec: &Node<'_>) {
    let Some(overhead) = spec.part("overhead") else { return };
    let limits = serde_json::json!({"limits": overhead.value});
    let nobody = BTreeSet::new();
    requirements(checking, &Node::new(&limits, overhead.path), &nobody, container_key);
}

type Name = fn(&mut Checking<'_>, &Node<'_>, &str);

/// `ValidateContainerResourceRequirements`.
pub(super) fn container(checking: &mut Checking<'_>, of: &Node<'_>, claims: &BTreeSet<&str>) {
    requirements(checking, of, claims, container_key);
}

fn requirements(checking: &mut Checking<'_>, of: &Node<'_>, claims: &BTreeSet<&str>, check_name: Name) {
    let (mut pages, mut compute) = (false, false);
    for (side, list) in [("limits", true), ("requests", false)] {
        for (key, node) in of.entries(side) {
            check_name(checking, &node, key);
            amount(checking, key, &node);
            if !list {
                against_limit(checking, of, key, &node);
            }
            if key.starts_with(PAGES) {
                pages = true;
                whole_pages(checking, key, &node);
            }
            compute |= ["cpu", "memory"].contains(&key);
        }
    }
    if pages && !compute {
        checking.forbidden(&of.path, "HugePages require cpu or memory");
    }
    claim_names(checking, of, claims);
}

/// A request is at most its limit, and equal to it where nothing can be overcommitted.
fn against_limit(checking: &mut Checking<'_>, of: &Node<'_>, key: &str, request: &Node<'_>) {
    let limit = of.map("limits").and_then(|limits| limits.get(key)).and_then(quantity);
    let (Some(asked), Some(limit)) = (quantity(request.value), &limit) else {
        if limit.is_none() && !may_overcommit(key) {
            checking.required(of.field("limits"), "Limit must be set for non overcommitable resources");
        }
        return;
    };
    let order = asked.compare(limit);
    if order.is_ne() && !may_overcommit(key) {
        let text = format!("must be equal to {key} limit of {limit}");
        checking.invalid(of.field("requests"), &asked.to_string(), &text);
    } else if order.is_gt() {
        let text = format!("must be less than or equal to {key} limit of {limit}");
        checking.invalid(of.field("requests"), &asked.to_string(), &text);
    }
}

fn whole_pages(checking: &mut Checking<'_>, key: &str, node: &Node<'_>) {
    let Some(quantity) = quantity(node.value) else { return };
    let size = key.strip_prefix(PAGES).and_then(|size| Quantity::parse(size).ok());
    let size = size.filter(|size| size.sign() > 0 && size.is_whole()).and_then(|size| size.rounded_up());
    let divides = size.zip(quantity.rounded_up()).is_some_and(|(size, value)| value % size == 0);
    if !divides {
        let text = format!("{quantity} is not positive integer multiple of {key}");
        checking.invalid(&node.path, &quantity.to_string(), &text);
    }
}

/// `validateResourceClaimNames`.
fn claim_names(checking: &mut Checking<'_>, of: &Node<'_>, claims: &BTreeSet<&str>) {
    let mut seen = BTreeSet::new();
    for claim in of.list("claims") {
        let (name, request) = (claim.text("name"), claim.text("request"));
        if name.is_empty() {
            checking.required(&claim.path, "");
            continue;
        }
        if seen.contains(name) {
            checking.duplicate(&claim.path, name);
        } else {
            let mut key = name.to_owned();
            if !request.is_empty() {
                formats::label(checking, claim.field("request"), request);
                key = format!("{name}/{request}");
            }
            if seen.contains(&key) {
                checking.duplicate(&claim.path, &key);
            } else if request.is_empty() {
                let parts = seen.iter().filter(|key: &&String| key.split_once('/').is_some_and(|(of, _)| of == name));
                for _ in 0..parts.count() {
                    checking.duplicate(&claim.path, name);
                }
            }
            seen.insert(key);
        }
        if !claims.contains(name) {
            let known: Vec<_> = claims.iter().copied().collect();
            let known = if known.is_empty() { " which is empty".to_owned() } else { format!(": {}", known.join(", ")) };
            let mut error = FieldError::not_found(&claim.path, name);
            error.body = format!("{}: must be one of the names in pod.spec.resourceClaims{known}", error.body);
            checking.errors.push(error);
        }
    }
}

/// Resources of the whole pod (`validatePodResources`).
pub(super) fn of_pod(checking: &mut Checking<'_>, pod: &Pod<'_>) {
    let Some(of) = pod.spec.part("resources") else { return };
    if pod.os() == Some("windows") {
        checking.forbidden(&of.path, "may not be set for a windows pod");
        return;
    }
    if of.has("claims") {
        checking.forbidden(of.field("claims"), "claims may not be set for Resources at pod-level");
    }
    requirements(checking, &of, &pod.claims, pod_name);
    let get = |side: &str, key: &str| of.map(side).and_then(|map| map.get(key)).and_then(quantity);
    for (key, total) in total(pod, "requests") {
        let Some(own) = get("requests", &key).filter(|own| total.compare(own).is_gt()) else { continue };
        let text = format!("must be greater than or equal to aggregate container requests of {total}");
        checking.invalid(format!("{}[{key}]", of.field("requests")), &own.to_string(), &text);
    }
    for (key, total) in total(pod, "limits") {
        let Some(own) = get("limits", &key).filter(|own| key.starts_with(PAGES) && total.compare(own).is_gt()) else {
            continue;
        };
        let text = format!("must be greater than or equal to aggregate container limits of {total}");
        checking.invalid(format!("{}[{key}]", of.field("limits")), &own.to_string(), &text);
    }
    for (i, container) in pod.spec.list("containers").enumerate() {
        for (key, limit) in container.get("resources").entries("limits") {
            let Some((limit, own)) = quantity(limit.value).zip(get("limits", key)) else { continue };
            if limit.compare(&own).is_gt() {
                let field = format!("{}.containers[{i}][{key}].limits", of.path);
                let text = format!("must be less than or equal to pod limits of {own}");
                checking.invalid(field, &limit.to_string(), &text);
            }
        }
    }
}

type Amounts = BTreeMap<String, Quantity>;

fn add(to: &mut Amounts, more: &Amounts) {
    for (key, amount) in more {
        let sum = to.get(key).and_then(|have| have.add(amount).ok()).unwrap_or_else(|| amount.clone());
        to.insert(key.clone(), sum);
    }
}

fn largest(to: &mut Amounts, of: &Amounts) {
    for (key, amount) in of {
        if to.get(key).is_none_or(|have| amount.compare(have).is_gt()) {
            to.insert(key.clone(), amount.clone());
        }
    }
}

/// The total amounts of all containers: `side` is `requests` or `limits` (`AggregateContainerRequests`).
fn total(pod: &Pod<'_>, side: &str) -> Amounts {
    let of = |container: &Node<'_>| -> Amounts {
        let resources = container.get("resources");
        let entries = resources.entries(side);
        entries.filter_map(|(key, node)| Some((key.to_owned(), quantity(node.value)?))).collect()
    };
    let mut sum = Amounts::new();
    for container in pod.spec.list("containers") {
        add(&mut sum, &of(&container));
    }
    let (mut sidecars, mut first) = (Amounts::new(), Amounts::new());
    for container in pod.spec.list("initContainers") {
        let mut own = of(&container);
        if container.text("restartPolicy") == "Always" {
            add(&mut sum, &own);
            add(&mut sidecars, &own);
            own.clone_from(&sidecars);
        } else {
            add(&mut own, &sidecars);
        }
        largest(&mut first, &own);
    }
    largest(&mut sum, &first);
    sum
}
