//! A pod that one profile admits and another denies: completed, confirmed by the evaluation, and made small.

use palisade_admission::objects::{RequestContext, Submission, receive};
use palisade_api::names::{Part, Shape};
use palisade_cel::Minor;
use palisade_compiler::Compiled;
use palisade_kube_json::json::Change as _;
use palisade_prove::model::Request;
use serde_json::{Value as Json, json};

use super::{BOUNDS, EXEMPTIONS};
use crate::{Checked, Decision, ValidationRequest, Validator, Violation};

/// A namespace like that of any tenant.
const TENANT: &str = "tenant";

/// A pod on which two profiles differ.
#[derive(Clone, Debug)]
pub struct Example {
    /// The pod.
    pub pod: Json,
    /// The user that creates it, and the groups of the user.
    pub user: (String, Vec<String>),
    /// The parameters of the namespace; null without any.
    pub params: Json,
    /// The violation for which the pod is denied.
    pub message: String,
    /// Why an API server rejects the pod before policies evaluate it; `None` if it accepts the pod.
    pub invalid: Option<String>,
}

/// The policies for pods of a profile.
fn validators(of: &Compiled) -> Option<Vec<Validator>> {
    let pairs = Part::judging(Shape::Pods).into_iter().filter_map(|part| of.bundle.part(part));
    pairs.map(|pair| Validator::new(&pair.policy).ok()).collect()
}

/// The parties of a comparison.
struct Trial<'a> {
    admitting: Vec<Validator>,
    denying: Vec<Validator>,
    check: &'a str,
    groups: Vec<&'a str>,
    user: &'a str,
    params: [&'a Json; 2],
}

impl Trial<'_> {
    fn decide(&self, policies: &[Validator], pod: &Json, params: &Json) -> Option<Vec<Violation>> {
        let mut all = Vec::new();
        for policy in policies {
            let request = ValidationRequest {
                namespace: TENANT,
                user: self.user,
                groups: &self.groups,
                params: Some(params).filter(|params| !params.is_null()),
                ..ValidationRequest::create("Pod", pod)
            };
            if let Decision::Deny { violations, .. } = policy.evaluate(&request).ok()? {
                all.extend(violations);
            }
        }
        Some(all)
    }

    /// The violation for which the one denies the pod, which the other admits.
    fn differs(&self, pod: &Json) -> Option<String> {
        if !self.decide(&self.admitting, pod, self.params[0])?.is_empty() {
            return None;
        }
        let violations = self.decide(&self.denying, pod, self.params[1])?;
        // An exemption that only the one has frees a pod from any check.
        let mut violations = violations.into_iter().filter(|one| self.check == EXEMPTIONS || one.check == self.check);
        violations.next().map(|one| format!("[{}] {}", one.check, one.message))
    }
}

impl Example {
    /// A pod like that of a request, if it is admitted by the one and denied by the other.
    pub(super) fn confirmed(
        request: &Request,
        admitting: &Checked<Compiled>,
        denying: &Checked<Compiled>,
        check: &str,
    ) -> Option<Self> {
        let of = |name: &str| request.variables.get(name).cloned().unwrap_or_default();
        let info = of("request")["userInfo"].clone();
        let user = info["username"].as_str().filter(|name| !name.is_empty()).unwrap_or("tenant").to_owned();
        let groups: Vec<String> =
            info["groups"].as_array().into_iter().flatten().filter_map(|one| Some(one.as_str()?.to_owned())).collect();
        let params = of(palisade_prove::question::PARAMS);
        let others = match of(palisade_prove::question::OTHER_PARAMS) {
            Json::Null => params.clone(),
            others => others,
        };
        let trial = Trial {
            admitting: validators(admitting)?,
            denying: validators(denying)?,
            check,
            groups: groups.iter().map(String::as_str).collect(),
            user: &user,
            params: [&params, &others],
        };
        let mut pod = of("object");
        complete(&mut pod);
        trial.differs(&pod)?;
        if check != BOUNDS {
            shrink(&mut pod, &|pod| trial.differs(pod).is_some());
        }
        if invalid(&pod).is_some() {
            // A smaller change may be one that an API server accepts.
            let mut other = pod.clone();
            repair(&mut other);
            if trial.differs(&other).is_some() {
                pod = other;
            }
        }
        let message = trial.differs(&pod)?;
        let reads = |of: &Checked<Compiled>| of.is_parameterized();
        let params = if reads(admitting) || reads(denying) { params["spec"].clone() } else { Json::Null };
        let invalid = invalid(&pod);
        Some(Self { pod, user: (user, groups), params, message, invalid })
    }
}

/// Adds the fields that each pod has.
fn complete(pod: &mut Json) {
    *pod.at_mut(&["apiVersion"]) = json!("v1");
    *pod.at_mut(&["kind"]) = json!("Pod");
    let fill = |at: &mut Json, value: Json| {
        if at.as_str().is_none_or(str::is_empty) {
            *at = value;
        }
    };
    fill(pod.at_mut(&["metadata", "name"]), json!("example"));
    *pod.at_mut(&["metadata", "namespace"]) = json!(TENANT);
    *pod.at_mut(&["metadata", "creationTimestamp"]) = json!("2026-01-01T00:00:00Z");
    if pod["spec"]["containers"].as_array().is_none_or(Vec::is_empty) {
        *pod.at_mut(&["spec", "containers"]) = json!([{}]);
    }
    let mut number = 0;
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in pod.pointer_mut(&format!("/spec/{list}")).and_then(Json::as_array_mut).into_iter().flatten() {
            number += 1;
            fill(container.at_mut(&["name"]), json!(format!("c{number}")));
        }
    }
}

/// Replaces texts that no API server accepts and no check is about.
fn repair(pod: &mut Json) {
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in pod.pointer_mut(&format!("/spec/{list}")).and_then(Json::as_array_mut).into_iter().flatten() {
            if container["image"].as_str().is_none_or(str::is_empty) {
                *container.at_mut(&["image"]) = json!("registry.example/app:1");
            }
            if list == "ephemeralContainers" || container["terminationMessagePolicy"].as_str() == Some("") {
                *container.at_mut(&["terminationMessagePolicy"]) = json!("File");
            }
        }
    }
}

/// Removes fields and elements while a condition holds.
fn shrink(of: &mut Json, holds: &dyn Fn(&Json) -> bool) {
    fn places(of: &Json, at: &str, to: &mut Vec<String>) {
        match of {
            Json::Object(map) => {
                for (key, value) in map {
                    let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                    to.push(at.clone());
                    places(value, &at, to);
                }
            }
            Json::Array(list) => {
                // From the end, so that the place of the others stays.
                for (index, value) in list.iter().enumerate().rev() {
                    let at = format!("{at}/{index}");
                    to.push(at.clone());
                    places(value, &at, to);
                }
            }
            _ => {}
        }
    }
    loop {
        let mut all = Vec::new();
        places(of, "", &mut all);
        let mut changed = false;
        for at in all {
            if KEPT.contains(&at.as_str()) {
                continue;
            }
            let Some((parent, key)) = at.rsplit_once('/') else { continue };
            let mut fewer = of.clone();
            let key = key.replace("~1", "/").replace("~0", "~");
            let removed = match fewer.pointer_mut(parent) {
                Some(Json::Object(map)) if key != "name" || !parent.contains("ontainers") => map.remove(&key).is_some(),
                Some(Json::Array(list)) => key.parse().ok().filter(|index| *index < list.len()).map(|index: usize| list.remove(index)).is_some(),
                _ => false,
            };
            if removed && holds(&fewer) {
                *of = fewer;
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

/// The fields that each pod has.
const KEPT: [&str; 9] = [
    "/apiVersion",
    "/kind",
    "/metadata",
    "/metadata/name",
    "/metadata/namespace",
    "/metadata/creationTimestamp",
    "/spec",
    "/spec/containers",
    "/spec/containers/0",
];

/// Why an API server rejects a pod; `None` if it accepts the pod.
fn invalid(pod: &Json) -> Option<String> {
    let cluster = crate::cluster(Minor::DEFAULT);
    let resource = cluster.kinds().by_kind("v1", "Pod")?;
    let mut sent = pod.clone();
    if let Some(metadata) = sent.pointer_mut("/metadata").and_then(Json::as_object_mut) {
        metadata.remove("creationTimestamp");
    }
    let sent = Submission { resource, subresource: "", namespace: TENANT, object: &sent, old: None };
    receive(cluster.kinds(), sent, &RequestContext::default()).err().map(|refused| refused.to_string())
}
