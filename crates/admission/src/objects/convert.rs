//! Changes of an object by its conversion to the API server's own form and back (`pkg/apis/*/v*/conversion.go`).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use palisade_kube_json::json::Change as _;
use serde_json::{Map, Value, json};

use super::table::{Table, Type};
use crate::validation::quote;

type Object = Map<String, Value>;

/// Rejects an object whose annotations cannot be converted into fields of the API server's own form.
///
/// # Errors
/// The server's text.
pub(super) fn check(name: &str, object: &Object) -> Result<(), String> {
    let annotation = |key: &str| object.get("metadata")?.get("annotations")?.get(key)?.as_str();
    match name {
        "apps/v1.DaemonSet" => match annotation("deprecated.daemonset.template.generation") {
            Some(text) => number(text),
            None => Ok(()),
        },
        "apps/v1.Deployment" => {
            let key = "deprecated.deployment.rollback.to";
            match annotation(key).filter(|text| !text.is_empty()) {
                Some(text) => {
                    number(text).map_err(|error| format!("failed to parse annotation[{key}]={text} as int64: {error}"))
                }
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// The error of Go's `strconv.ParseInt`, if a text is not a number of 64 bits.
fn number(text: &str) -> Result<(), String> {
    let Err(error) = text.parse::<i64>() else { return Ok(()) };
    let why = match error.kind() {
        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    Err(format!("strconv.ParseInt: parsing {}: {why}", quote(text)))
}

/// Converts a decoded struct, and all in it.
pub(super) fn convert(table: &Table, name: &str, object: &mut Object) {
    let Some(of) = table.get(name) else { return };
    for field in &of.fields {
        if let Some(value) = object.get_mut(&field.name) {
            convert_value(table, &field.of, value);
        }
    }
    for part in &of.parts {
        convert_struct(table, part, object);
    }
}

fn convert_value(table: &Table, of: &Type, value: &mut Value) {
    match (of, value) {
        (Type::Named(_, inner) | Type::Pointer(inner), value) => convert_value(table, inner, value),
        (Type::Struct(name), Value::Object(object)) => convert(table, name, object),
        (Type::List(inner), Value::Array(list)) => list.iter_mut().for_each(|value| convert_value(table, inner, value)),
        _ => {}
    }
}

fn convert_struct(table: &Table, part: &str, object: &mut Object) {
    match part {
        "core/v1.PodSpec" => {
            // The older name of the field is an alias.
            if let Some(account) = object.get("serviceAccountName").or_else(|| object.get("serviceAccount")).cloned() {
                object.insert("serviceAccountName".to_owned(), account.clone());
                object.insert("serviceAccount".to_owned(), account);
            }
            object.entry("securityContext").or_insert_with(|| json!({}));
        }
        "core/v1.Pod" => {
            drop_init_annotations(object);
            if let Some(period) = object.get_mut("spec").and_then(|spec| spec.get_mut("terminationGracePeriodSeconds"))
                && period.as_i64().is_some_and(|period| period < 0)
            {
                *period = json!(1);
            }
        }
        "apps/v1.DaemonSet" => {
            // A field of the API server's own form.
            let annotations = object.entry("metadata").or_insert_with(|| json!({}));
            let generation = annotations.at_mut(&["annotations", "deprecated.daemonset.template.generation"]);
            let number = generation.as_str().and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
            *generation = Value::from(number.to_string());
        }
        // Numbers that are no pointers there.
        "apps/v1.RollingUpdateDeployment" | "apps/v1.RollingUpdateDaemonSet" => {
            object.entry("maxUnavailable").or_insert_with(|| json!(0));
            object.entry("maxSurge").or_insert_with(|| json!(0));
        }
        "apps/v1.RollingUpdateStatefulSetStrategy" => drop(object.entry("partition").or_insert_with(|| json!(0))),
        "apps/v1.StatefulSetSpec" => {
            for template in object.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten() {
                *template.at_mut(&["apiVersion"]) = json!("v1");
                *template.at_mut(&["kind"]) = json!("PersistentVolumeClaim");
            }
        }
        "autoscaling/v1.HorizontalPodAutoscaler" => autoscaler(object),
        "autoscaling/v2.HorizontalPodAutoscaler" => {
            for what in ["metrics", "current-metrics", "conditions", "behavior"] {
                if let Some(Value::Object(annotations)) =
                    object.get_mut("metadata").and_then(|m| m.get_mut("annotations"))
                {
                    annotations.remove(&format!("autoscaling.alpha.kubernetes.io/{what}"));
                }
            }
        }
        // From the minor on that has v1beta2, the API server's own form is without it.
        "resource/v1alpha3.Device" | "resource/v1beta1.Device" if table.get("resource/v1beta2.Device").is_some() => {
            object.entry("basic").or_insert_with(|| json!({}));
        }
        "core/v1.PodTemplateSpec" => drop_init_annotations(object),
        "core/v1.PodStatus" => first_of(object, "podIP", "podIPs", |ip| json!({"ip": ip}), Some("ip")),
        "core/v1.NodeSpec" => first_of(object, "podCIDR", "podCIDRs", Value::clone, None),
        "core/v1.Secret" => {
            if let Some(Value::Object(texts)) = object.remove("stringData") {
                let data = object.entry("data").or_insert_with(|| json!({}));
                for (key, value) in texts {
                    *data.at_mut(&[&key]) = Value::from(STANDARD.encode(value.as_str().unwrap_or_default().as_bytes()));
                }
            }
        }
        _ => {}
    }
}

/// The older version keeps in annotations what it has no fields for.
fn autoscaler(object: &mut Object) {
    let metrics = "autoscaling.alpha.kubernetes.io/metrics";
    let annotated = object.get("metadata").is_some_and(|metadata| !metadata["annotations"][metrics].is_null());
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        && !annotated
    {
        spec.entry("targetCPUUtilizationPercentage").or_insert_with(|| json!(80));
    }
    let current = "autoscaling.alpha.kubernetes.io/current-metrics";
    if let Some(usage) = object.get("status").and_then(|status| status.get("currentCPUUtilizationPercentage")).cloned()
        && let Some(metadata) = object.get_mut("metadata")
    {
        *metadata.at_mut(&["annotations", current]) = Value::from(format!(
            "[{{\"type\":\"Resource\",\"resource\":{{\"name\":\"cpu\",\"currentAverageUtilization\":{usage},\
             \"currentAverageValue\":\"0\"}}}}]"
        ));
    }
}

/// Annotations by which init containers were once kept.
fn drop_init_annotations(object: &mut Object) {
    let annotations = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        for stage in ["alpha", "beta"] {
            for what in ["init-containers", "init-container-statuses"] {
                annotations.remove(&format!("pod.{stage}.kubernetes.io/{what}"));
            }
        }
    }
}

/// Of a field and a list with the same at first, the field is right and both are set.
fn first_of(object: &mut Object, one: &str, many: &str, wrap: impl Fn(&Value) -> Value, key: Option<&str>) {
    let first = object.get(many).and_then(|list| list.get(0));
    let first = first.and_then(|first| key.map_or(Some(first), |key| first.get(key))).cloned();
    match object.get(one).cloned() {
        Some(value) if first.as_ref() != Some(&value) => {
            object.insert(many.to_owned(), Value::from(vec![wrap(&value)]));
        }
        None => {
            if let Some(first) = first.filter(|first| *first != "") {
                object.insert(one.to_owned(), first);
            }
        }
        _ => {}
    }
}
