//! Workloads that keep pods running (`pkg/apis/apps/validation/validation.go`, and replication controllers in
//! `pkg/apis/core/validation/validation.go`).

use palisade_cel::Minor;
use serde_json::{Value, json};

use super::{
    claims, formats,
    node::Node,
    pods,
    selectors::{is_empty, is_selector, mismatch, selects, wrong_selector},
    shown,
};
use crate::validation::Checking;

/// A selector that must be there and select something; whether it is one.
fn selector(checking: &mut Checking<'_>, spec: &Node<'_>, kind: &str) -> bool {
    let Some(selector) = spec.part("selector") else {
        checking.required(spec.field("selector"), "");
        return true;
    };
    formats::selector(checking, &selector);
    if is_empty(&selector) {
        wrong_selector(checking, &selector, &format!("empty selector is invalid for {kind}"));
    }
    is_selector(checking.minor, &selector)
}

/// Checks the requirements for the template of pods that are kept running.
fn always(checking: &mut Checking<'_>, template: &Node<'_>, kind: &str) {
    let spec = template.get("spec");
    if spec.text("restartPolicy") != "Always" {
        checking.unsupported(spec.field("restartPolicy"), spec.text("restartPolicy"), &["Always"]);
    }
    if spec.has("activeDeadlineSeconds") {
        let text = format!("activeDeadlineSeconds in {kind} is not Supported");
        checking.forbidden(spec.field("activeDeadlineSeconds"), &text);
    }
}

/// `ValidatePodTemplateSpecForReplicaSet`.
fn replicated(checking: &mut Checking<'_>, spec: &Node<'_>, kind: &str) {
    let template = spec.get("template");
    let of = spec.get("selector");
    // Without a selector nothing is selected, which no labels match.
    let matched =
        !of.value.is_null() && (is_empty(&of) || selects(of.value, template.get("metadata").get("labels").value));
    if !matched {
        mismatch(checking, &template);
    }
    pods::template(checking, &template);
    always(checking, &template, kind);
}

pub(super) fn deployment(checking: &mut Checking<'_>, spec: &Node<'_>) {
    checking.not_negative(spec, "replicas");
    if selector(checking, spec, "deployment") {
        replicated(checking, spec, "ReplicaSet");
    } else {
        wrong_selector(checking, &spec.get("selector"), "invalid label selector");
    }
    let strategy = spec.get("strategy");
    match strategy.text("type") {
        "Recreate" => {
            if strategy.has("rollingUpdate") {
                let text = "may not be specified when strategy `type` is 'Recreate'";
                checking.forbidden(strategy.field("rollingUpdate"), text);
            }
        }
        "RollingUpdate" => match strategy.part("rollingUpdate") {
            None => {
                let text = "this should be defaulted and never be nil";
                checking.required(strategy.field("rollingUpdate"), text);
            }
            Some(rolling) => {
                let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
                formats::amount(checking, &unavailable);
                formats::amount(checking, &surge);
                if formats::amount_of(&unavailable) == 0 && formats::amount_of(&surge) == 0 {
                    formats::wrong_amount(checking, &unavailable, "may not be 0 when `maxSurge` is 0");
                }
                formats::at_most_all(checking, &unavailable);
            }
        },
        _ => unknown_strategy(checking, &strategy, &["Recreate", "RollingUpdate"]),
    }
    for key in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        checking.not_negative(spec, key);
    }
    if let Some(deadline) = spec.int("progressDeadlineSeconds")
        && deadline <= spec.int("minReadySeconds").unwrap_or(0)
    {
        checking.wrong(&spec.get("progressDeadlineSeconds"), "must be greater than minReadySeconds");
    }
}

/// A strategy of a type that there is not: the whole is shown.
fn unknown_strategy(checking: &mut Checking<'_>, strategy: &Node<'_>, supported: &[&str]) {
    let mut error = crate::validation::FieldError::not_supported(checking.minor, &strategy.path, "", supported);
    error.body = error.body.replacen("\"\"", &shown::strategy(strategy), 1);
    checking.errors.push(error);
}

pub(super) fn replica_set(checking: &mut Checking<'_>, spec: &Node<'_>) {
    checking.not_negative(spec, "replicas");
    checking.not_negative(spec, "minReadySeconds");
    if selector(checking, spec, "deployment") {
        replicated(checking, spec, "ReplicaSet");
    } else {
        wrong_selector(checking, &spec.get("selector"), "invalid label selector");
    }
}

pub(super) fn daemon_set(checking: &mut Checking<'_>, spec: &Node<'_>, generation: Option<i64>) {
    let (of, template) = (spec.get("selector"), spec.get("template"));
    formats::selector(checking, &of);
    let labels = template.get("metadata").get("labels");
    if is_selector(checking.minor, &of) && (of.value.is_null() || !selects(of.value, labels.value)) {
        mismatch(checking, &template);
    }
    if !of.value.is_null() && is_empty(&of) {
        wrong_selector(checking, &of, "empty selector is invalid for daemonset");
    }
    pods::template(checking, &template);
    always(checking, &template, "DaemonSet");
    checking.not_negative(spec, "minReadySeconds");
    if let Some(generation) = generation.filter(|generation| *generation < 0) {
        let text = "must be greater than or equal to 0";
        checking.invalid_value(spec.field("templateGeneration"), &generation.into(), text);
    }
    let strategy = spec.get("updateStrategy");
    match (strategy.text("type"), strategy.part("rollingUpdate")) {
        ("OnDelete", _) => {}
        ("RollingUpdate", None) => checking.required(strategy.field("rollingUpdate"), ""),
        ("RollingUpdate", Some(rolling)) => {
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            formats::amount(checking, &unavailable);
            formats::amount(checking, &surge);
            formats::at_most_all(checking, &unavailable);
            formats::at_most_all(checking, &surge);
            match (formats::amount_of(&unavailable) != 0, formats::amount_of(&surge) != 0) {
                (true, true) => {
                    formats::wrong_amount(checking, &surge, "may not be set when maxUnavailable is non-zero");
                }
                (false, false) => checking.required(unavailable.path, "cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        _ => unknown_strategy(checking, &strategy, &["RollingUpdate", "OnDelete"]),
    }
    checking.not_negative(spec, "revisionHistoryLimit");
}

pub(super) fn stateful_set(checking: &mut Checking<'_>, spec: &Node<'_>) {
    match spec.text("podManagementPolicy") {
        "" => checking.required(spec.field("podManagementPolicy"), ""),
        "OrderedReady" | "Parallel" => {}
        other => checking.invalid(spec.field("podManagementPolicy"), other, "must be 'OrderedReady' or 'Parallel'"),
    }
    update_strategy(checking, &spec.get("updateStrategy"));
    if let Some(policy) = spec.part("persistentVolumeClaimRetentionPolicy") {
        for key in ["whenDeleted", "whenScaled"] {
            checking.one_of(&policy.get(key), &["Retain", "Delete"]);
        }
    }
    // The templates themselves are looked at since 1.34.
    let templates = checking.minor >= Minor::V1_34;
    if templates && checking.old.is_none() {
        for claim in spec.list("volumeClaimTemplates") {
            claims::spec(checking, &claim.get("spec"));
        }
    }
    checking.not_negative(spec, "replicas");
    checking.not_negative(spec, "minReadySeconds");
    if spec.get("ordinals").int("start").is_some_and(|start| start < 0) {
        checking.wrong(&spec.get("ordinals").get("start"), "must be greater than or equal to 0");
    }
    let service = spec.text("serviceName");
    if !service.is_empty() && checking.old.is_none() && checking.minor >= Minor::V1_33 {
        formats::label(checking, spec.field("serviceName"), service);
    }
    let template = spec.get("template");
    if selector(checking, spec, "statefulset") {
        let of = spec.get("selector");
        let labels = template.get("metadata").get("labels");
        // Without a selector nothing is selected, which no labels match.
        if of.value.is_null() || !is_empty(&of) && !selects(of.value, labels.value) {
            mismatch(checking, &template);
        }
        if templates {
            let with_claims = with_claims(spec, &template);
            pods::template(checking, &Node::new(&with_claims, template.path.clone()));
        }
        // Once more, or for the first time.
        pods::template_metadata(checking, &template);
    } else {
        wrong_selector(checking, &spec.get("selector"), "");
    }
    always(checking, &template, "StatefulSet");
}

/// The template as its pods will be: each claim of the templates is a volume, in place of another of that name, and names
/// of hosts are the controller's.
fn with_claims(spec: &Node<'_>, template: &Node<'_>) -> Value {
    let mut out = template.value.clone();
    let Some(of) = out.get_mut("spec").and_then(Value::as_object_mut) else { return out };
    let claims: Vec<&str> = spec.list("volumeClaimTemplates").map(|claim| claim.get("metadata").text("name")).collect();
    of.remove("hostname");
    of.remove("subdomain");
    if claims.is_empty() {
        return out;
    }
    let mut names: Vec<&str> = Vec::new();
    for name in claims {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let own = of.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
    let made = names.iter().map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
    let kept = own.iter().filter(|volume| !names.iter().any(|name| volume["name"] == *name)).cloned();
    let volumes: Vec<Value> = made.chain(kept).collect();
    of.insert("volumes".to_owned(), volumes.into());
    out
}

fn update_strategy(checking: &mut Checking<'_>, strategy: &Node<'_>) {
    let rolling = strategy.part("rollingUpdate");
    match strategy.text("type") {
        "" => checking.required(&strategy.path, ""),
        "OnDelete" => {
            if let Some(rolling) = rolling {
                let shown = shown::rolling_update_of_set(&rolling);
                checking.invalid_shown(rolling.path, &shown, "only allowed for updateStrategy 'RollingUpdate'");
            }
        }
        "RollingUpdate" => {
            let Some(rolling) = rolling else { return };
            checking.not_negative(&rolling, "partition");
            if let Some(most) = rolling.part("maxUnavailable") {
                formats::amount(checking, &most);
                if formats::amount_of(&most) == 0 {
                    formats::wrong_amount(checking, &most, "cannot be 0");
                }
                formats::at_most_all(checking, &most);
            }
        }
        _ => {
            let shown = shown::strategy_of_set(strategy);
            checking.invalid_shown(&strategy.path, &shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

pub(super) fn replication_controller(checking: &mut Checking<'_>, spec: &Node<'_>) {
    checking.not_negative(spec, "minReadySeconds");
    let selector = spec.get("selector");
    if selector.value.as_object().is_none_or(serde_json::Map::is_empty) {
        checking.required(&selector.path, "");
    }
    if spec.has("replicas") {
        checking.not_negative(spec, "replicas");
    } else {
        checking.required(spec.field("replicas"), "");
    }
    let Some(template) = spec.part("template") else {
        checking.required(spec.field("template"), "");
        return;
    };
    let labels = template.get("metadata").get("labels");
    if !selects(&json!({"matchLabels": selector.value}), labels.value) {
        mismatch(checking, &template);
    }
    pods::template(checking, &template);
    always(checking, &template, "ReplicationController");
}
