//! Quantities, and the names of the resources that they are of (`ValidateResourceQuantityValue` and
//! `validateResourceName` in `pkg/apis/core/validation/validation.go`, `pkg/apis/core/helper`).

use palisade_cel::{Minor, Quantity};
use serde_json::Value;

use super::node::Node;
use crate::validation::{Checking, names, quote};

const COMPUTE: [&str; 9] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const STORAGE: [&str; 2] = ["storage", "requests.storage"];
pub(super) const PAGES: &str = "hugepages-";

/// A quantity of a decoded object.
pub(super) fn quantity(value: &Value) -> Option<Quantity> {
    Quantity::parse(value.as_str()?).ok()
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified(Minor::DEFAULT, &format!("requests.{name}")).is_empty()
}

pub(super) fn may_overcommit(name: &str) -> bool {
    is_native(name) && !name.starts_with(PAGES)
}

/// `ValidateResourceQuantityValue`.
pub(super) fn amount(checking: &mut Checking<'_>, name: &str, node: &Node<'_>) {
    let Some(quantity) = quantity(node.value) else { return };
    if quantity.sign() < 0 {
        checking.invalid(&node.path, &quantity.to_string(), "must be greater than or equal to 0");
    }
    if (COUNTED.contains(&name) || is_extended(name)) && !quantity.is_whole() {
        checking.invalid(&node.path, &quantity.to_string(), "must be an integer");
    }
}

/// `validateResourceName`; whether it is valid.
pub(super) fn name(checking: &mut Checking<'_>, node: &Node<'_>, name: &str) -> bool {
    let wrong = names::qualified(checking.minor, name);
    checking.each(&node.path, name, &wrong);
    if !wrong.is_empty() {
        return false;
    }
    let listed = COMPUTE.contains(&name) || COUNTED.contains(&name) || STORAGE.contains(&name);
    let standard = listed || name.starts_with(PAGES) || name.starts_with("requests.hugepages-");
    if !name.contains('/') && !standard {
        checking.invalid(&node.path, name, "must be a standard resource type or fully qualified");
        return false;
    }
    true
}

/// Until 1.33 names of resources are shown without quotes in what was said since `from`.
pub(super) fn without_quotes(checking: &mut Checking<'_>, from: usize, name: &str) {
    if checking.minor < Minor::V1_34 {
        for error in &mut checking.errors[from..] {
            error.body = error.body.replacen(&format!("value: {}", quote(name)), &format!("value: {name}"), 1);
        }
    }
}

/// `validateContainerResourceName`.
pub(super) fn container_name(checking: &mut Checking<'_>, node: &Node<'_>, of: &str) {
    name(checking, node, of);
    if of.split('/').count() == 1 {
        if !["cpu", "memory", "ephemeral-storage"].contains(&of) && !of.starts_with(PAGES) {
            checking.invalid(&node.path, of, "must be a standard resource for containers");
        }
    } else if !is_native(of) && !is_extended(of) {
        checking.invalid(&node.path, of, "doesn't follow extended resource name standard");
    }
}

/// The same of what an autoscaler measures.
pub(super) fn measured(checking: &mut Checking<'_>, node: &Node<'_>) {
    let (of, from) = (node.string(), checking.errors.len());
    container_name(checking, node, of);
    // The error for a wrong form quotes the value.
    let form = names::qualified(checking.minor, of).len();
    without_quotes(checking, from + form, of);
}
