//! `RuntimeClass`: pods get the overhead and the scheduling constraints of their class (`plugin/pkg/admission/runtimeclass`).

use palisade_cel::quote;
use serde_json::{Map, Value as Json, json};

use super::{Attributes, Found, PluginRemarks};
use crate::objects::Refused;

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// The class that a new pod names, if it names one.
fn class<'a>(attributes: &Attributes<'a>, pod: &Json) -> Result<Option<&'a Json>, Refused> {
    let Some(name) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(None) };
    match attributes.find("node.k8s.io", "RuntimeClass", "", name) {
        Found::Object(class) => Ok(Some(class)),
        Found::Missing => Err(attributes.forbidden(format!("pod rejected: RuntimeClass {} not found", quote(name)))),
        Found::Unknown => {
            let depends = ", and else takes from it what policies see";
            Err(Attributes::unknown("RuntimeClass", "RuntimeClass", name, depends))
        }
    }
}

pub(super) fn mutate(attributes: &Attributes<'_>, pod: &mut Json) -> Result<(), Refused> {
    if !attributes.creates() || !attributes.is("", "pods", "") {
        return Ok(());
    }
    let Some(class) = class(attributes, pod)? else { return Ok(()) };
    let Some(spec) = pod.get_mut("spec").and_then(Json::as_object_mut) else { return Ok(()) };
    if let Some(overhead) = class.get("overhead").filter(|overhead| !overhead.is_null()) {
        let fixed = &overhead["podFixed"];
        let given = spec.get("overhead").and_then(Json::as_object).filter(|given| !given.is_empty());
        if given.is_some_and(|given| Some(given) != fixed.as_object()) {
            return Err(attributes.forbidden(MISMATCH));
        }
        if fixed.is_null() {
            spec.remove("overhead");
        } else {
            spec.insert("overhead".to_owned(), fixed.clone());
        }
    }
    schedule(attributes, spec, &class["scheduling"])
}

fn schedule(attributes: &Attributes<'_>, spec: &mut Map<String, Json>, scheduling: &Json) -> Result<(), Refused> {
    if let Some(selector) = scheduling["nodeSelector"].as_object() {
        let own = spec.entry("nodeSelector").or_insert_with(|| json!({}));
        for (key, value) in selector {
            if own.get(key).is_some_and(|own| own != value) {
                return Err(attributes.forbidden(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                    value.as_str().unwrap_or_default(),
                    own[key].as_str().unwrap_or_default()
                )));
            }
            if let Some(own) = own.as_object_mut() {
                own.insert(key.clone(), value.clone());
            }
        }
    }
    if let Some(more) = scheduling["tolerations"].as_array() {
        let own = spec.get("tolerations").and_then(Json::as_array).cloned().unwrap_or_default();
        spec.insert("tolerations".to_owned(), Json::Array(merge(own, more)));
    }
    Ok(())
}

/// Without those that another one makes superfluous (`MergeTolerations` in `pkg/util/tolerations`).
fn merge(first: Vec<Json>, second: &[Json]) -> Vec<Json> {
    let all: Vec<Json> = first.into_iter().chain(second.iter().cloned()).collect();
    let mut merged: Vec<Json> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let superfluous = merged.iter().any(|other| covers(other, one))
            || all[index + 1..].iter().any(|other| other != one && covers(other, one));
        if !superfluous {
            merged.push(one.clone());
        }
    }
    merged
}

/// Whether a toleration tolerates all that another one does (`isSuperset`).
fn covers(wide: &Json, narrow: &Json) -> bool {
    let text = |of: &Json, key: &str| of[key].as_str().unwrap_or_default().to_owned();
    if wide == narrow {
        return true;
    }
    let all_keys = text(wide, "key").is_empty() && text(wide, "operator") == "Exists";
    if text(wide, "key") != text(narrow, "key") && !all_keys {
        return false;
    }
    let effect = text(wide, "effect");
    if text(narrow, "effect") != effect && !effect.is_empty() {
        return false;
    }
    if let (true, Some(wide)) = (effect == "NoExecute", wide["tolerationSeconds"].as_i64())
        && narrow["tolerationSeconds"].as_i64().is_none_or(|narrow| narrow > wide)
    {
        return false;
    }
    match text(wide, "operator").as_str() {
        "Equal" | "" => text(narrow, "operator") == "Equal" && text(narrow, "value") == text(wide, "value"),
        "Exists" => true,
        _ => false,
    }
}

pub(super) fn validate(attributes: &Attributes<'_>, pod: Option<&Json>, _: &mut PluginRemarks) -> Result<(), Refused> {
    let Some(pod) = pod.filter(|_| attributes.creates() && attributes.is("", "pods", "")) else { return Ok(()) };
    let class = class(attributes, pod)?;
    let given = pod["spec"].get("overhead").filter(|given| !given.is_null());
    match class.and_then(|class| class.get("overhead")).filter(|overhead| !overhead.is_null()) {
        Some(overhead) => {
            let empty = |of: Option<&Json>| of.and_then(Json::as_object).is_none_or(Map::is_empty);
            let fixed = overhead.get("podFixed");
            if given == fixed || (empty(given) && empty(fixed)) { Ok(()) } else { Err(attributes.forbidden(MISMATCH)) }
        }
        None if given.is_some() => {
            let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
            Err(attributes.forbidden(why))
        }
        None => Ok(()),
    }
}
