//! Roles and bindings (`pkg/apis/rbac/validation/validation.go`).

use palisade_cel::Minor;
use serde_json::Value;

use super::{formats, node::Node, selectors::is_selector};
use crate::validation::{Checking, names};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn role(checking: &mut Checking<'_>, object: &Value, namespaced: bool) {
    let role = Node::new(object, "");
    for rule in role.list("rules") {
        if rule.elements("verbs").is_empty() {
            let text = if checking.minor < Minor::V1_37 { "verbs must contain at least one value" } else { "" };
            checking.required(rule.field("verbs"), text);
        }
        let urls = rule.get("nonResourceURLs");
        if rule.elements("nonResourceURLs").is_empty() {
            for (key, what) in [("apiGroups", "api group"), ("resources", "resource")] {
                if rule.elements(key).is_empty() {
                    let text = format!("resource rules must supply at least one {what}");
                    checking.required(rule.field(key), &text);
                }
            }
            continue;
        }
        if namespaced {
            let text = "namespaced rules cannot apply to non-resource URLs";
            checking.invalid_texts(&urls.path, urls.value, text);
        }
        if ["apiGroups", "resources", "resourceNames"].iter().any(|key| !rule.elements(key).is_empty()) {
            let text = "rules cannot apply to both regular resources and non-resource URLs";
            checking.invalid_texts(urls.path, urls.value, text);
        }
    }
    let Some(aggregation) = role.part("aggregationRule").filter(|_| !namespaced) else { return };
    if aggregation.elements("clusterRoleSelectors").is_empty() {
        let text = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        checking.required(aggregation.field("clusterRoleSelectors"), text);
    }
    for selector in aggregation.list("clusterRoleSelectors") {
        formats::selector(checking, &selector);
        if !is_selector(checking.minor, &selector) {
            // What it shows is what could not be made.
            let shown = if checking.minor < Minor::V1_34 { "\"null\"" } else { "null" };
            checking.invalid_shown(&selector.path, shown, "invalid label selector.");
        }
    }
}

pub(super) fn binding(checking: &mut Checking<'_>, object: &Value, namespaced: bool) {
    let binding = Node::new(object, "");
    let of = binding.get("roleRef");
    checking.one_of(&of.get("apiGroup"), &[GROUP]);
    checking.one_of(&of.get("kind"), if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] });
    let name = of.text("name");
    if name.is_empty() {
        checking.required(of.field("name"), "");
    } else {
        checking.each(of.field("name"), name, &names::path_segment(name));
    }
    for subject in binding.list("subjects") {
        let name = subject.text("name");
        if name.is_empty() {
            checking.required(subject.field("name"), "");
        }
        match subject.text("kind") {
            "ServiceAccount" => {
                if !name.is_empty() {
                    formats::subdomain(checking, subject.field("name"), name);
                }
                checking.one_of(&subject.get("apiGroup"), &[""]);
                if !namespaced && subject.text("namespace").is_empty() {
                    checking.required(subject.field("namespace"), "");
                }
            }
            "User" | "Group" => checking.one_of(&subject.get("apiGroup"), &[GROUP]),
            _ => checking.one_of(&subject.get("kind"), &["ServiceAccount", "User", "Group"]),
        }
    }
}
