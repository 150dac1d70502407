//! Autoscalers (`pkg/apis/autoscaling/validation/validation.go`).

use palisade_cel::Minor;
use serde_json::Value;

use super::{
    super::gates::Gate,
    formats,
    node::Node,
    quantities::{measured, quantity},
};
use crate::validation::{Checking, FieldError, names, quote};

/// The specification, in the form of `autoscaling/v2`.
pub(super) fn autoscaler(checking: &mut Checking<'_>, spec: &Node<'_>) {
    let (least, most) = (spec.int("minReplicas"), spec.int("maxReplicas").unwrap_or(0));
    let lower = i64::from(!Gate::HPAScaleToZero.is_on(checking.minor));
    if least.is_some_and(|least| least < lower) {
        checking.wrong(&spec.get("minReplicas"), &format!("must be greater than or equal to {lower}"));
    }
    let field = spec.field("maxReplicas");
    match most {
        0 if checking.minor >= Minor::V1_37 => checking.required(&field, ""),
        0 if checking.minor == Minor::V1_36 => checking.required(&field, "must be set and greater than 0"),
        ..0 if checking.minor >= Minor::V1_36 => {
            checking.invalid_value(&field, &most.into(), "must be greater than or equal to 1");
        }
        ..1 => checking.invalid_value(&field, &most.into(), "must be greater than 0"),
        _ => {}
    }
    if least.is_some_and(|least| most < least) {
        checking.invalid_value(field, &most.into(), "must be greater than or equal to `minReplicas`");
    }
    let target = spec.get("scaleTargetRef");
    reference(checking, &target, target.text("kind") == "ReplicationController");
    metrics(checking, spec, least);
    for key in ["scaleUp", "scaleDown"] {
        if let Some(rules) = spec.get("behavior").part(key) {
            scaling(checking, &rules);
        }
    }
}

/// Annotations of `autoscaling/v1` for fields that this version does not have; the API server converts them to these
/// fields. It ignores values that are not JSON. Values that are JSON are not validated here.
pub(super) fn annotated(checking: &mut Checking<'_>, object: &Node<'_>) {
    let annotations = object.get("metadata");
    let annotations = annotations.map("annotations");
    for what in ["metrics", "behavior"] {
        let key = format!("autoscaling.alpha.kubernetes.io/{what}");
        let text = annotations.and_then(|all| all.get(&key)).and_then(Value::as_str).unwrap_or_default();
        let filled = match serde_json::from_str(text) {
            Ok(Value::Array(elements)) => what == "metrics" && !elements.is_empty(),
            Ok(Value::Object(fields)) => what == "behavior" && !fields.is_empty(),
            _ => false,
        };
        if filled {
            checking.unknown.get_or_insert_with(|| {
                format!(
                    "metadata.annotations[{key}]: what is in it, which the API server validates, is not checked here"
                )
            });
        }
    }
}

fn reference(checking: &mut Checking<'_>, of: &Node<'_>, any_group: bool) {
    for key in ["kind", "name"] {
        let value = of.text(key);
        if value.is_empty() {
            checking.required(of.field(key), "");
        } else {
            checking.each(of.field(key), value, &names::path_segment(value));
        }
    }
    // Versions are looked at since then.
    if checking.minor < Minor::V1_34 {
        return;
    }
    let version = of.text("apiVersion");
    let text = match version.split('/').count() {
        _ if matches!(version, "" | "/") => "apiVersion must specify API group".to_owned(),
        1 => "apiVersion must specify API group".to_owned(),
        2 if version.starts_with('/') => "apiVersion must specify API group".to_owned(),
        2 => return,
        _ => format!("unexpected GroupVersion string: {version}"),
    };
    if !(any_group && text.starts_with("apiVersion")) {
        checking.invalid(of.field("apiVersion"), version, &text);
    }
}

/// Types of metrics and the fields they have, in the order in which they are looked at.
const METRICS: &[(&str, &str)] = &[
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
const TYPES: &[&str] = &["ContainerResource", "External", "Object", "Pods", "Resource"];

fn metrics(checking: &mut Checking<'_>, spec: &Node<'_>, least: Option<i64>) {
    let mut outside = false;
    for metric in spec.list("metrics") {
        let kind = metric.get("type");
        outside |= matches!(kind.string(), "Object" | "External");
        if kind.string().is_empty() {
            checking.required(&kind.path, "must specify a metric source type");
        }
        checking.one_of(&kind, TYPES);
        let present: Vec<_> = METRICS.iter().filter_map(|(_, key)| metric.part(key).map(|part| (*key, part))).collect();
        if let Some((key, part)) = present.first() {
            source(checking, key, part);
        }
        let expected = METRICS.iter().find(|(name, _)| *name == kind.string()).map(|(_, key)| *key);
        match expected {
            Some(key) if !metric.has(key) => {
                checking.required(metric.field(key), "must populate information for the given metric source");
            }
            Some(_) => {}
            None => checking.one_of(&kind, TYPES),
        }
        if present.len() != 1 {
            for (_, part) in present.iter().filter(|(key, _)| Some(*key) != expected) {
                checking.forbidden(&part.path, "must populate the given metric source only");
            }
        }
    }
    if least == Some(0) && !outside {
        let text = "must specify at least one Object or External metric to support scaling to zero replicas";
        checking.forbidden(spec.field("metrics"), text);
    }
}

fn source(checking: &mut Checking<'_>, key: &str, of: &Node<'_>) {
    let target = of.get("target");
    let (value, average, share) = (target.has("value"), target.has("averageValue"), target.has("averageUtilization"));
    match key {
        "object" => {
            let described = of.get("describedObject");
            reference(checking, &described, true);
            identifier(checking, of);
            self::target(checking, &target);
            if !value && !average {
                checking.required(target.field("averageValue"), "must set either a target value or averageValue");
            }
        }
        "external" => {
            identifier(checking, of);
            self::target(checking, &target);
            if !value && !average {
                let text = "must set either a target value for metric or a per-pod target";
                checking.required(target.field("averageValue"), text);
            }
            if value && average {
                let text = "may not set both a target value for metric and a per-pod target";
                checking.forbidden(target.field("value"), text);
            }
        }
        "pods" => {
            identifier(checking, of);
            self::target(checking, &target);
            if !average {
                checking.required(target.field("averageValue"), "must specify a positive target averageValue");
            }
        }
        _ => {
            let name = of.get("name");
            if name.string().is_empty() {
                checking.required(&name.path, "must specify a resource name");
            } else if key == "containerResource" {
                measured(checking, &name);
            }
            if key == "containerResource" {
                let container = of.get("container");
                if container.string().is_empty() {
                    checking.required(&container.path, "must specify a container");
                } else {
                    formats::label(checking, &container.path, container.string());
                }
            }
            self::target(checking, &target);
            if !share && !average {
                let text = "must set either a target raw value or a target utilization";
                checking.required(target.field("averageUtilization"), text);
            }
            if share && average {
                let text = "may not set both a target raw value and a target utilization";
                checking.forbidden(target.field("averageValue"), text);
            }
        }
    }
}

fn identifier(checking: &mut Checking<'_>, of: &Node<'_>) {
    let name = of.get("metric").get("name");
    if name.string().is_empty() {
        checking.required(&name.path, "must specify a metric name");
    } else {
        checking.each(&name.path, name.string(), &names::path_segment(name.string()));
    }
}

fn target(checking: &mut Checking<'_>, target: &Node<'_>) {
    let kind = target.get("type");
    if kind.string().is_empty() {
        checking.required(&kind.path, "must specify a metric target type");
    }
    if !matches!(kind.string(), "Utilization" | "Value" | "AverageValue") {
        checking.invalid(&kind.path, kind.string(), "must be either Utilization, Value, or AverageValue");
    }
    for key in ["value", "averageValue"] {
        let node = target.get(key);
        if let Some(amount) = quantity(node.value).filter(|amount| amount.sign() != 1) {
            // Until 1.33 it shows a quantity as a text without quotes.
            let shown = if checking.minor >= Minor::V1_34 { quote(&amount.to_string()) } else { amount.to_string() };
            checking.invalid_shown(node.path, &shown, "must be positive");
        }
    }
    if target.int("averageUtilization").is_some_and(|share| share < 1) {
        checking.wrong(&target.get("averageUtilization"), "must be greater than 0");
    }
}

fn scaling(checking: &mut Checking<'_>, rules: &Node<'_>) {
    if let Some(window) = rules.int("stabilizationWindowSeconds") {
        let node = rules.get("stabilizationWindowSeconds");
        if window < 0 {
            checking.wrong(&node, "must be greater than or equal to zero");
        }
        if window > 3600 {
            checking.wrong(&node, "must be less than or equal to 3600");
        }
    }
    if let Some(policy) = rules.part("selectPolicy") {
        checking.one_of(&policy, &["Disabled", "Max", "Min"]);
    }
    if rules.elements("policies").is_empty() {
        checking.required(rules.field("policies"), "must specify at least one Policy");
    }
    for policy in rules.list("policies") {
        if !matches!(policy.text("type"), "Pods" | "Percent") {
            checking.unsupported(policy.field("type"), policy.text("type"), &["Percent", "Pods"]);
        }
        for key in ["value", "periodSeconds"] {
            let number = policy.int(key).unwrap_or(0);
            if number <= 0 {
                checking.invalid_value(policy.field(key), &number.into(), "must be greater than zero");
            }
            if key == "periodSeconds" && number > 1800 {
                checking.invalid_value(policy.field(key), &number.into(), "must be less than or equal to 1800");
            }
        }
    }
    let tolerance = rules.get("tolerance");
    if let Some(amount) = quantity(tolerance.value).filter(|amount| amount.sign() < 0) {
        let shown = amount.to_string();
        checking.errors.push(FieldError::invalid(tolerance.path, &shown, "must be greater than or equal to 0"));
    }
}
