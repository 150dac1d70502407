//! Where pods may run: affinity, tolerations, spreading, gates (`validateAffinity`, `ValidateTolerations` and
//! `validateTopologySpreadConstraints` in `pkg/apis/core/validation/validation.go`).

use std::collections::BTreeSet;

use palisade_cel::Minor;

use super::super::{super::gates::Gate, formats, node::Node};
use crate::validation::{Checking, names};

const SELECTS: &str = "not a valid selector operator";

pub(super) fn affinity(checking: &mut Checking<'_>, spec: &Node<'_>) {
    let affinity = spec.get("affinity");
    let (required, preferred) =
        ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution");
    let node = affinity.get("nodeAffinity");
    if let Some(selector) = node.part(required) {
        node_selector(checking, &selector);
    }
    for term in node.list(preferred) {
        weight(checking, &term);
        node_term(checking, &term.get("preference"), true);
    }
    for key in ["podAffinity", "podAntiAffinity"] {
        let of = affinity.get(key);
        for term in of.list(required) {
            pod_term(checking, &term);
        }
        for term in of.list(preferred) {
            weight(checking, &term);
            pod_term(checking, &term.get("podAffinityTerm"));
        }
    }
}

fn weight(checking: &mut Checking<'_>, term: &Node<'_>) {
    let weight = term.int("weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        checking.invalid_value(term.field("weight"), &weight.into(), "must be in the range 1-100");
    }
}

/// `ValidateNodeSelector`.
pub(in super::super) fn node_selector(checking: &mut Checking<'_>, selector: &Node<'_>) {
    if selector.elements("nodeSelectorTerms").is_empty() {
        checking.required(selector.field("nodeSelectorTerms"), "must have at least one node selector term");
    }
    let any_value = checking.minor < Minor::V1_33;
    for term in selector.list("nodeSelectorTerms") {
        node_term(checking, &term, any_value);
    }
}

fn node_term(checking: &mut Checking<'_>, term: &Node<'_>, any_value: bool) {
    for requirement in term.list("matchExpressions") {
        let (values, field) = (requirement.elements("values"), requirement.field("values"));
        match requirement.text("operator") {
            "In" | "NotIn" if values.is_empty() => {
                checking.required(field, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                checking.forbidden(field, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "Gt" | "Lt" if values.len() != 1 => {
                checking.required(field, "must be specified single value when `operator` is 'Lt' or 'Gt'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => checking.invalid(requirement.field("operator"), other, SELECTS),
        }
        formats::label_key(checking, requirement.field("key"), requirement.text("key"));
        if !any_value {
            for value in requirement.list("values") {
                let wrong = names::label_value(checking.minor, value.string());
                checking.each(&value.path, value.string(), &wrong);
            }
        }
    }
    for requirement in term.list("matchFields") {
        match requirement.text("operator") {
            "In" | "NotIn" if requirement.elements("values").len() != 1 => checking.required(
                requirement.field("values"),
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            ),
            "In" | "NotIn" => {}
            other => checking.invalid(requirement.field("operator"), other, SELECTS),
        }
        if requirement.text("key") == "metadata.name" {
            for value in requirement.list("values") {
                formats::subdomain(checking, &value.path, value.string());
            }
        } else {
            let text = "not a valid field selector key";
            checking.invalid(requirement.field("key"), requirement.text("key"), text);
        }
    }
}

fn pod_term(checking: &mut Checking<'_>, term: &Node<'_>) {
    formats::selector(checking, &term.get("labelSelector"));
    formats::selector(checking, &term.get("namespaceSelector"));
    for namespace in term.list("namespaces") {
        formats::label(checking, term.field("namespace"), namespace.string());
    }
    label_keys(checking, term, true);
    let key = term.text("topologyKey");
    if key.is_empty() {
        checking.required(term.field("topologyKey"), "can not be empty");
    }
    formats::label_key(checking, term.field("topologyKey"), key);
}

/// `ValidateMatchLabelKeysAndMismatchLabelKeys`. By now the selector has what was made of the keys.
fn label_keys(checking: &mut Checking<'_>, of: &Node<'_>, mismatch: bool) {
    let selector = of.part("labelSelector");
    let lists: &[&str] = if mismatch { &["matchLabelKeys", "mismatchLabelKeys"] } else { &["matchLabelKeys"] };
    for list in lists {
        if of.elements(list).is_empty() {
            continue;
        }
        if selector.is_none() {
            checking.forbidden(of.field(list), "must not be specified when labelSelector is not set");
            continue;
        }
        for key in of.list(list) {
            formats::label_key(checking, &key.path, key.string());
        }
    }
    let keys: Vec<&str> = of.list("matchLabelKeys").map(|key| key.string()).collect();
    if let Some(selector) = &selector {
        let mut seen: BTreeSet<&str> =
            selector.map("matchLabels").into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        for requirement in selector.list("matchExpressions") {
            let key = requirement.text("key");
            if let Some(i) = keys.iter().rposition(|other| *other == key)
                && seen.contains(key)
            {
                let field = format!("{}[{i}]", of.path);
                checking.invalid(field, key, "exists in both matchLabelKeys and labelSelector");
            }
            seen.insert(key);
        }
    }
    if mismatch {
        let others = of.elements("mismatchLabelKeys");
        for key in of.list("matchLabelKeys").filter(|key| others.contains(key.value)) {
            checking.invalid(&key.path, key.string(), "exists in both matchLabelKeys and mismatchLabelKeys");
        }
    }
}

/// `ValidateTolerations`, of a list by whatever name.
pub(in super::super) fn tolerations(checking: &mut Checking<'_>, of: &Node<'_>, list: &str) {
    for toleration in of.list(list) {
        let (key, operator) = (toleration.text("key"), toleration.text("operator"));
        let (value, effect) = (toleration.text("value"), toleration.text("effect"));
        if !key.is_empty() {
            formats::label_key(checking, toleration.field("key"), key);
        } else if operator != "Exists" {
            let text = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            checking.invalid(toleration.field("operator"), operator, text);
        }
        if toleration.has("tolerationSeconds") && effect != "NoExecute" {
            let text = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            checking.invalid(toleration.field("effect"), effect, text);
        }
        match operator {
            "Equal" | "" => {
                let wrong = names::label_value(checking.minor, value);
                if !wrong.is_empty() {
                    checking.invalid(toleration.field("operator"), value, &wrong.join(";"));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    let text = "value must be empty when `operator` is 'Exists'";
                    checking.invalid(toleration.field("operator"), value, text);
                }
            }
            "Lt" | "Gt" if Gate::TaintTolerationComparisonOperators.is_on(checking.minor) => {
                checking.each(toleration.field("value"), value, &decimal(value));
            }
            "Lt" | "Gt" if checking.minor >= Minor::V1_35 => {
                checking.unsupported(toleration.field("operator"), operator, &["Equal", "Exists", "Lt", "Gt"]);
            }
            _ => checking.unsupported(toleration.field("operator"), operator, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            checking.one_of(&toleration.get("effect"), &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        }
    }
}

/// A decimal integer in canonical form, of 64 bits.
fn decimal(value: &str) -> Vec<String> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let canonical = value == "0"
        || digits.starts_with(|c: char| ('1'..='9').contains(&c)) && digits.bytes().all(|b| b.is_ascii_digit());
    let mut wrong = Vec::new();
    if value.is_empty() {
        wrong.push("must be non-empty".to_owned());
    } else if !canonical {
        wrong.push("must be a valid decimal integer in canonical form".to_owned());
    }
    if value.parse::<i64>().is_err() {
        let why = if canonical { "value out of range" } else { "invalid syntax" };
        wrong.push(format!("strconv.ParseInt: parsing {}: {why}", crate::validation::quote(value)));
    }
    wrong
}

pub(super) fn spreading(checking: &mut Checking<'_>, spec: &Node<'_>) {
    let constraints = spec.elements("topologySpreadConstraints");
    for (i, of) in spec.list("topologySpreadConstraints").enumerate() {
        let (key, action) = (of.text("topologyKey"), of.text("whenUnsatisfiable"));
        let skew = of.int("maxSkew").unwrap_or(0);
        if skew <= 0 {
            checking.invalid_value(of.field("maxSkew"), &skew.into(), "must be greater than zero");
        }
        if key.is_empty() {
            checking.required(of.field("topologyKey"), "can not be empty");
        }
        checking.one_of(&of.get("whenUnsatisfiable"), &["DoNotSchedule", "ScheduleAnyway"]);
        let same = |other: &serde_json::Value| {
            let other = Node::new(other, "");
            other.text("topologyKey") == key && other.text("whenUnsatisfiable") == action
        };
        if constraints[i + 1..].iter().any(same) {
            checking.duplicate(of.field("{topologyKey, whenUnsatisfiable}"), &format!("{{{key}, {action}}}"));
        }
        if let Some(domains) = of.part("minDomains") {
            if domains.value.as_i64().is_some_and(|domains| domains <= 0) {
                checking.wrong(&domains, "must be greater than zero");
            }
            if action != "DoNotSchedule" {
                let text = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                checking.wrong(&domains, &text);
            }
        }
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if let Some(policy) = of.part(key) {
                checking.one_of(&policy, &["Honor", "Ignore"]);
            }
        }
        if Gate::MatchLabelKeysInPodTopologySpreadSelectorMerge.is_on(checking.minor) {
            label_keys(checking, &of, false);
        } else {
            keys_beside_selector(checking, &of);
        }
        formats::selector(checking, &of.get("labelSelector"));
    }
}

/// `ValidateMatchLabelKeysInTopologySpread`, where keys are not merged into the selector.
fn keys_beside_selector(checking: &mut Checking<'_>, of: &Node<'_>) {
    if of.elements("matchLabelKeys").is_empty() {
        return;
    }
    let selector = of.get("labelSelector");
    if selector.value.is_null() {
        checking.forbidden(of.field("matchLabelKeys"), "must not be specified when labelSelector is not set");
    }
    let exact = selector.map("matchLabels").into_iter().flatten().map(|(key, _)| key.as_str());
    let selected: BTreeSet<&str> =
        exact.chain(selector.list("matchExpressions").map(|requirement| requirement.text("key"))).collect();
    for key in of.list("matchLabelKeys") {
        formats::label_key(checking, &key.path, key.string());
        if selected.contains(key.string()) {
            checking.invalid(&key.path, key.string(), "exists in both matchLabelKeys and labelSelector");
        }
    }
}

/// Conditions that count for readiness, and gates before scheduling.
pub(super) fn gates(checking: &mut Checking<'_>, spec: &Node<'_>) {
    for gate in spec.list("readinessGates") {
        formats::label_key(checking, gate.field("conditionType"), gate.text("conditionType"));
    }
    let mut seen = BTreeSet::new();
    for gate in spec.list("schedulingGates") {
        let name = gate.text("name");
        formats::label_key(checking, &gate.path, name);
        if !seen.insert(name) {
            checking.duplicate(&gate.path, name);
        }
    }
}
