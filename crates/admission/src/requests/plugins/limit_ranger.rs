//! `LimitRanger`: the defaults and bounds of the namespace's `LimitRanges` (`plugin/pkg/admission/limitranger`).
//!
//! The API server goes through the resources of a limit in random order; here they are in the order of their names.

use palisade_cel::Quantity;
use serde_json::{Map, Value as Json, json};

use super::{
    Attributes, Object, PluginRemarks, items,
    resources::{Amounts, Level, amounts, read},
};
use crate::objects::{Gate, Refused};

/// The annotation with the defaults that were set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

const LISTS: [(&str, &str); 2] = [("containers", "container"), ("initContainers", "init container")];

/// Whether the plugin looks at the request (`SupportsAttributes`).
fn concerns(attributes: &Attributes<'_>) -> bool {
    if attributes.old.is_some_and(|old| !old["metadata"]["deletionTimestamp"].is_null()) {
        return false;
    }
    let claims = attributes.is("", "persistentvolumeclaims", "");
    (attributes.creates() && (claims || attributes.is("", "pods", "")))
        || (attributes.updates() && (claims || attributes.is("", "pods", "resize")))
}

/// The limits of the namespace, by the names of the objects.
fn limits<'a>(attributes: &Attributes<'a>) -> impl Iterator<Item = &'a Json> {
    attributes.all("", "LimitRange", attributes.namespace())
}

pub(super) fn mutate(attributes: &Attributes<'_>, object: &mut Json) -> Result<(), Refused> {
    if !concerns(attributes) || attributes.request.resource.resource != "pods" {
        return Ok(());
    }
    let Some(pod) = object.as_object_mut() else { return Ok(()) };
    for range in limits(attributes) {
        let (mut requests, mut most) = (Object::new(), Object::new());
        for limit in items(&range["spec"]["limits"]).filter(|limit| limit["type"] == "Container") {
            requests.extend(limit["defaultRequest"].as_object().cloned().unwrap_or_default());
            most.extend(limit["default"].as_object().cloned().unwrap_or_default());
        }
        fill(pod, &requests, &most);
    }
    Ok(())
}

/// Sets what containers do not say, and says so in an annotation.
fn fill(pod: &mut Object, requests: &Object, limits: &Object) {
    let mut set = Vec::new();
    for (list, what) in LISTS {
        let containers = pod.get_mut("spec").and_then(|spec| spec.get_mut(list)).and_then(Json::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Json::as_object_mut) {
            let name = container.get("name").and_then(Json::as_str).unwrap_or_default().to_owned();
            let resources = container.entry("resources").or_insert_with(|| json!({}));
            let Some(resources) = resources.as_object_mut() else { continue };
            // In this order stand they in the annotation.
            for (key, defaults, word) in [("requests", requests, "request"), ("limits", limits, "limit")] {
                let missing = absent(resources, key, defaults);
                if !missing.is_empty() {
                    set.push(format!("{} {word} for {what} {name}", missing.join(", ")));
                }
            }
        }
    }
    if !set.is_empty() {
        let metadata = pod.entry("metadata").or_insert_with(|| json!({}));
        let Some(metadata) = metadata.as_object_mut() else { return };
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if annotations.is_null() {
            *annotations = json!({});
        }
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(ANNOTATION.to_owned(), json!(format!("LimitRanger plugin set: {}", set.join("; "))));
        }
    }
}

/// Adds the defaults that a list of resources lacks; their names, sorted.
fn absent(resources: &mut Map<String, Json>, key: &str, defaults: &Object) -> Vec<String> {
    let have = resources.get(key).and_then(Json::as_object).cloned().unwrap_or_default();
    let mut missing: Vec<_> = defaults.keys().filter(|name| !have.contains_key(*name)).cloned().collect();
    missing.sort();
    if missing.is_empty() {
        return missing;
    }
    let all: Object =
        have.into_iter().chain(missing.iter().map(|name| (name.clone(), defaults[name].clone()))).collect();
    resources.insert(key.to_owned(), Json::Object(all));
    missing
}

pub(super) fn validate(
    attributes: &Attributes<'_>,
    object: Option<&Json>,
    _: &mut PluginRemarks,
) -> Result<(), Refused> {
    let Some(object) = object.filter(|_| concerns(attributes)) else { return Ok(()) };
    let is_pod = attributes.request.resource.resource == "pods";
    let level = if Gate::PodLevelResources.is_on(attributes.cluster.minor()) { Level::Pod } else { Level::Containers };
    for range in limits(attributes) {
        let mut wrong = Vec::new();
        for limit in items(&range["spec"]["limits"]) {
            match (limit["type"].as_str().unwrap_or_default(), is_pod) {
                ("Container", true) => {
                    for container in LISTS.iter().flat_map(|(list, _)| items(&object["spec"][*list])) {
                        let of = |key: &str| read(&container["resources"][key]);
                        Bounds { limit, requests: of("requests"), limits: of("limits") }.check(&mut wrong);
                    }
                }
                ("Pod", true) => {
                    let of = |key: &str| amounts(&object["spec"], key, level);
                    Bounds { limit, requests: of("requests"), limits: of("limits") }.check(&mut wrong);
                }
                ("PersistentVolumeClaim", false) => {
                    let requests = read(&object["spec"]["resources"]["requests"]);
                    Bounds { limit, requests, limits: Amounts::new() }.check_claim(&mut wrong);
                }
                _ => {}
            }
        }
        if let Some(why) = aggregate(wrong) {
            return Err(attributes.forbidden(why));
        }
    }
    Ok(())
}

/// All texts as one (`k8s.io/apimachinery/pkg/util/errors.Aggregate`).
fn aggregate(mut texts: Vec<String>) -> Option<String> {
    let mut seen = std::collections::BTreeSet::new();
    texts.retain(|text| seen.insert(text.clone()));
    match texts.len() {
        0 => None,
        1 => texts.pop(),
        _ => Some(format!("[{}]", texts.join(", "))),
    }
}

/// An item of a `LimitRange`, and what it is about.
struct Bounds<'a> {
    limit: &'a Json,
    requests: Amounts,
    limits: Amounts,
}

impl Bounds<'_> {
    fn list(&self, key: &str) -> Amounts {
        read(&self.limit[key])
    }

    fn kind(&self) -> &str {
        self.limit["type"].as_str().unwrap_or_default()
    }

    fn check(&self, wrong: &mut Vec<String>) {
        wrong.extend(self.list("min").iter().filter_map(|(name, least)| self.min(name, least)));
        wrong.extend(self.list("max").iter().filter_map(|(name, most)| self.max(name, most)));
        wrong.extend(self.list("maxLimitRequestRatio").iter().filter_map(|(name, most)| self.ratio(name, most)));
    }

    fn check_claim(&self, wrong: &mut Vec<String>) {
        wrong.extend(self.list("min").iter().filter_map(|(name, least)| self.min(name, least)));
        wrong.extend(self.list("max").iter().filter_map(|(name, most)| self.max_request(name, most)));
    }

    /// `minConstraint`
    fn min(&self, name: &str, least: &Quantity) -> Option<String> {
        let usage = format!("minimum {name} usage per {} is {least}", self.kind());
        let Some(request) = self.requests.get(name) else { return Some(format!("{usage}.  No request is specified")) };
        if request.compare(least).is_lt() {
            return Some(format!("{usage}, but request is {request}"));
        }
        let limit = self.limits.get(name).filter(|limit| limit.compare(least).is_lt())?;
        Some(format!("{usage}, but limit is {limit}"))
    }

    /// `maxConstraint`
    fn max(&self, name: &str, most: &Quantity) -> Option<String> {
        let usage = format!("maximum {name} usage per {} is {most}", self.kind());
        let Some(limit) = self.limits.get(name) else { return Some(format!("{usage}.  No limit is specified")) };
        if limit.compare(most).is_gt() {
            return Some(format!("{usage}, but limit is {limit}"));
        }
        let request = self.requests.get(name).filter(|request| request.compare(most).is_gt())?;
        Some(format!("{usage}, but request is {request}"))
    }

    /// `maxRequestConstraint`
    fn max_request(&self, name: &str, most: &Quantity) -> Option<String> {
        let usage = format!("maximum {name} usage per {} is {most}", self.kind());
        let Some(request) = self.requests.get(name) else { return Some(format!("{usage}.  No request is specified")) };
        request.compare(most).is_gt().then(|| format!("{usage}, but request is {request}"))
    }

    /// `limitRequestRatioConstraint`
    fn ratio(&self, name: &str, most: &Quantity) -> Option<String> {
        let bound = format!("{name} max limit to request ratio per {} is {most}", self.kind());
        let given = |of: &Amounts| of.get(name).filter(|amount| amount.sign() != 0).cloned();
        let Some(request) = given(&self.requests) else {
            return Some(format!("{bound}, but no request is specified or request is 0"));
        };
        let Some(limit) = given(&self.limits) else {
            return Some(format!("{bound}, but no limit is specified or limit is 0"));
        };
        let ratio = limit.as_approximate_float() / request.as_approximate_float();
        (ratio * 1000.0 > most.as_approximate_float() * 1000.0)
            .then(|| format!("{bound}, but provided ratio is {ratio:.6}"))
    }
}
