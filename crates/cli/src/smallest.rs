//! The smallest change with which a pod is admitted: all values that the checks are known to require, without the parts
//! that turn out to be unnecessary.

use std::{collections::BTreeSet, fmt::Write as _};

use palisade_api::catalogue;
use palisade_checks::{Check, Field};
use palisade_kube_json::workload::Workload;
use serde::Serialize;
use serde_json::{Value as Json, json};

/// Evaluates pods, and knows the values that its checks require.
pub trait PodValidator {
    /// The checks that a pod violates.
    ///
    /// # Errors
    /// It cannot be evaluated, or no change of the pod would help.
    fn violated_checks(&self, pod: &Json) -> Result<BTreeSet<String>, String>;

    /// Sets the values in the pod that a check requires.
    fn comply(&self, check: &Check, pod: &mut Json);
}

/// A change of a pod.
#[derive(Clone, Debug, Serialize)]
pub struct MinimalFix {
    /// JSON patch (RFC 6902) of the original pod.
    pub patch: Json,
    /// The same as text, with `+`, `-` and `~`.
    #[serde(skip)]
    pub lines: Vec<String>,
    /// The checks that the pod violates after the change, because no compliant value is known.
    #[serde(rename = "withoutKnownValue", skip_serializing_if = "BTreeSet::is_empty")]
    pub left: BTreeSet<String>,
}

impl MinimalFix {
    /// The lines, with places in the workload whose template is changed; without a kind, in the pod.
    pub fn lines_at(&self, kind: Option<&Workload>) -> Vec<String> {
        let template = kind.map(|kind| kind.template.trim_start_matches('/').replace('/', "."));
        // The place follows the sign of a line.
        let line = |line: &String| match (&template, line.split_at_checked(2)) {
            (Some(template), Some((sign, rest))) => format!("{sign}{template}.{rest}"),
            _ => line.clone(),
        };
        self.lines.iter().map(line).collect()
    }
}

/// Checks of a pod's dependencies: the right image or volume cannot be known.
const UNKNOWN: [&str; 7] = [
    "imageRegistries",
    "restrictedVolumes",
    "hostPathVolumes",
    "csiDrivers",
    "flexVolumes",
    "serviceAccountTokens",
    "parameters",
];

/// A scalar or a list of scalars, with its path; null if the pod has none.
type Leaf = (Vec<String>, Json);

/// Finds the smallest change. It evaluates the pod again after each attempt.
pub fn minimal_fix(pod: &Json, validator: &impl PodValidator) -> Result<MinimalFix, String> {
    let before = leaves(pod);
    let mut changed = pod.clone();
    // For each violated check: remove all of its fields, then set the required ones. That may reveal further
    // violations.
    for _ in 0..catalogue::ALL.len() {
        let violated = validator.violated_checks(&changed)?;
        let known = |check: &&&Check| violated.contains(check.id) && !UNKNOWN.contains(&check.id);
        let mut next = changed.clone();
        for check in catalogue::ALL.iter().filter(known) {
            let mut attempt = next.clone();
            clear(check, &mut attempt);
            validator.comply(check, &mut attempt);
            // The rest of a list may be something that policies cannot evaluate: a sysctl without a name.
            if validator.violated_checks(&attempt).is_ok() {
                next = attempt;
            }
        }
        if next == changed {
            break;
        }
        changed = next;
    }
    let left = validator.violated_checks(&changed)?;
    let after = leaves(&changed);
    let mut steps: Vec<Leaf> = after.iter().filter(|leaf| !before.contains(leaf)).cloned().collect();
    let gone = before.iter().filter(|(path, _)| !after.iter().any(|(other, _)| other == path));
    steps.extend(gone.map(|(path, _)| (path.clone(), Json::Null)));
    let will_do = |steps: &[Leaf]| -> bool {
        validator.violated_checks(&with(pod, steps)).is_ok_and(|violated| violated.is_subset(&left))
    };
    // Undo each step that is not needed for admission.
    let mut index = 0;
    while index < steps.len() {
        let mut fewer = steps.clone();
        fewer.remove(index);
        if will_do(&fewer) {
            steps = fewer;
        } else {
            index += 1;
        }
    }
    // Keep the compliant elements of a removed list.
    for index in 0..steps.len() {
        let found = before.iter().find(|(path, _)| *path == steps[index].0).and_then(|(_, found)| found.as_array());
        for element in found.into_iter().flatten() {
            let mut kept = steps.clone();
            match &mut kept[index].1 {
                Json::Array(list) => list.push(element.clone()),
                gone @ Json::Null => *gone = json!([element]),
                _ => break,
            }
            if will_do(&kept) {
                steps = kept;
            }
        }
    }
    let patch = json_patch::diff(pod, &with(pod, &steps));
    let lines = steps.iter().map(|step| line(pod, step)).collect();
    Ok(MinimalFix { patch: json!(patch), lines, left })
}

/// Removes the fields that a check looks at.
fn clear(check: &Check, pod: &mut Json) {
    for field in check.fields {
        match field {
            Field::Pod(path) => pod.get_mut("spec").into_iter().for_each(|spec| remove(spec, path)),
            Field::Container(path) => {
                for list in palisade_checks::defaults::CONTAINER_LISTS {
                    let containers = pod.pointer_mut(&format!("/spec/{list}")).and_then(Json::as_array_mut);
                    containers.into_iter().flatten().for_each(|container| remove(container, path));
                }
            }
            Field::Annotation(prefix) => {
                let annotations = pod.pointer_mut("/metadata/annotations").and_then(Json::as_object_mut);
                if let Some(annotations) = annotations {
                    annotations.retain(|key, _| !key.starts_with(prefix));
                }
            }
            Field::Volume(_) => {}
        }
    }
}

/// Removes a field below an object, of each element of lists on the way; and objects that are then empty.
fn remove(object: &mut Json, path: &str) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let key = first.trim_end_matches("[*]");
    let Some(fields) = object.as_object_mut() else { return };
    match (rest, fields.get_mut(key)) {
        (None, _) => drop(fields.remove(key)),
        (Some(rest), Some(Json::Array(items))) => items.iter_mut().for_each(|item| remove(item, rest)),
        (Some(rest), Some(found)) => {
            remove(found, rest);
            if found.as_object().is_some_and(serde_json::Map::is_empty) {
                fields.remove(key);
            }
        }
        (Some(_), None) => {}
    }
}

fn leaves(pod: &Json) -> Vec<Leaf> {
    fn walk(path: &[String], value: &Json, out: &mut Vec<Leaf>) {
        let below = |key: String| [path, &[key]].concat();
        match value {
            Json::Object(fields) if !fields.is_empty() => {
                fields.iter().for_each(|(key, value)| walk(&below(key.clone()), value, out));
            }
            Json::Array(items) if items.iter().any(Json::is_object) => {
                items.iter().enumerate().for_each(|(index, value)| walk(&below(index.to_string()), value, out));
            }
            Json::Null => {}
            _ => out.push((path.to_vec(), value.clone())),
        }
    }
    let mut out = Vec::new();
    walk(&[], pod, &mut out);
    out
}

/// The pod with these leaves; objects that lose their last are removed.
fn with(pod: &Json, steps: &[Leaf]) -> Json {
    fn set(at: &mut Json, path: &[String], value: &Json) {
        let Some((key, rest)) = path.split_first() else {
            *at = value.clone();
            return;
        };
        if let Json::Array(items) = at {
            if let Some(item) = key.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                set(item, rest, value);
            }
            return;
        }
        if !at.is_object() {
            if value.is_null() {
                return;
            }
            *at = json!({});
        }
        let Some(fields) = at.as_object_mut() else { return };
        let below = fields.entry(key.clone()).or_insert(Json::Null);
        set(below, rest, value);
        if below.is_null() || (value.is_null() && below.as_object().is_some_and(serde_json::Map::is_empty)) {
            fields.remove(key);
        }
    }
    let mut out = pod.clone();
    // Removals first: they may make room for an object.
    let (gone, new): (Vec<_>, Vec<_>) = steps.iter().partition(|(_, value)| value.is_null());
    for (path, value) in gone.into_iter().chain(new) {
        set(&mut out, path, value);
    }
    out
}

/// A step as a line.
fn line(pod: &Json, (path, value): &Leaf) -> String {
    let mut place = String::new();
    for key in path {
        if key.parse::<usize>().is_ok() {
            let _ = write!(place, "[{key}]");
        } else {
            place.push_str(if place.is_empty() { "" } else { "." });
            place.push_str(key);
        }
    }
    let found = path.iter().try_fold(pod, |at, key| match at {
        Json::Array(items) => items.get(key.parse::<usize>().ok()?),
        other => other.get(key),
    });
    match (found, value) {
        (Some(found), Json::Null) => format!("- {place}: {found}"),
        (Some(found), value) if !found.is_null() => format!("~ {place}: {found} -> {value}"),
        (_, value) => format!("+ {place}: {value}"),
    }
}
