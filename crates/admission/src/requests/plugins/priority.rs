//! `Priority`: pods get the priority of their class, and there is one default class (`plugin/pkg/admission/priority`).

use serde_json::{Map, Value as Json, json};

use super::{Attributes, Found};
use crate::objects::Refused;

/// The classes that every cluster has (`pkg/apis/scheduling`).
const SYSTEM: [(&str, i64); 2] = [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

const LOWER: &str = "PreemptLowerPriority";

pub(super) fn mutate(attributes: &Attributes<'_>, pod: &mut Json) -> Result<(), Refused> {
    if !attributes.is("", "pods", "") {
        return Ok(());
    }
    let Some(spec) = pod.get_mut("spec").and_then(Json::as_object_mut) else { return Ok(()) };
    if attributes.creates() {
        return resolve(attributes, spec);
    }
    // What was set when the pod was created is kept.
    for key in ["priority", "preemptionPolicy"] {
        let before = attributes.old.map(|old| &old["spec"][key]).filter(|before| !before.is_null());
        if let (Some(before), true) = (before, attributes.updates()) {
            spec.entry(key).or_insert_with(|| before.clone());
        }
    }
    Ok(())
}

fn resolve(attributes: &Attributes<'_>, spec: &mut Map<String, Json>) -> Result<(), Refused> {
    let asked = spec.get("priorityClassName").and_then(Json::as_str).unwrap_or_default().to_owned();
    let (value, policy) = if asked.is_empty() {
        let default = default_class(attributes);
        if let Some(class) = default {
            spec.insert("priorityClassName".to_owned(), class["metadata"]["name"].clone());
        }
        default.map_or((0, LOWER), of_class)
    } else {
        class(attributes, &asked)?
    };
    if let Some(given) = spec.get("priority").and_then(Json::as_i64).filter(|given| *given != value) {
        return Err(attributes.forbidden(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        )));
    }
    spec.insert("priority".to_owned(), json!(value));
    if let Some(given) = spec.get("preemptionPolicy").and_then(Json::as_str).filter(|given| *given != policy) {
        return Err(attributes.forbidden(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        )));
    }
    spec.insert("preemptionPolicy".to_owned(), json!(policy));
    Ok(())
}

fn class<'a>(attributes: &Attributes<'a>, name: &str) -> Result<(i64, &'a str), Refused> {
    match attributes.find("scheduling.k8s.io", "PriorityClass", "", name) {
        Found::Object(class) => Ok(of_class(class)),
        found => match (SYSTEM.iter().find(|(system, _)| *system == name), found) {
            (Some((_, value)), _) => Ok((*value, LOWER)),
            (None, Found::Missing) => Err(attributes.forbidden(format!("no PriorityClass with name {name} was found"))),
            (None, _) => {
                let depends = ", and else takes from it what policies see";
                Err(Attributes::unknown("Priority", "PriorityClass", name, depends))
            }
        },
    }
}

/// Of several, which a race can leave, the one of the lowest priority.
fn default_class<'a>(attributes: &Attributes<'a>) -> Option<&'a Json> {
    let defaults = attributes.all("scheduling.k8s.io", "PriorityClass", "");
    defaults.filter(|class| class["globalDefault"] == true).min_by_key(|class| class["value"].as_i64().unwrap_or(0))
}

fn of_class(class: &Json) -> (i64, &str) {
    (class["value"].as_i64().unwrap_or(0), class["preemptionPolicy"].as_str().unwrap_or(LOWER))
}

pub(super) fn validate(
    attributes: &Attributes<'_>,
    class: Option<&Json>,
    _: &mut super::PluginRemarks,
) -> Result<(), Refused> {
    let concerned = attributes.is("scheduling.k8s.io", "priorityclasses", "");
    let Some(class) = class.filter(|class| concerned && class["globalDefault"] == true) else { return Ok(()) };
    match default_class(attributes).map(|default| default["metadata"]["name"].as_str().unwrap_or_default()) {
        Some(default) if attributes.creates() || (attributes.updates() && class["metadata"]["name"] != *default) => {
            let why = format!("PriorityClass {default} is already marked as default. Only one default can exist");
            Err(attributes.forbidden(why))
        }
        _ => Ok(()),
    }
}
