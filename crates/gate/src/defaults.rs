//! The defaults of custom checks (`spec.customChecks[].default`), before pods are tried with them: a pod must have the
//! field, be able to leave it unset, and be able to have the value.

use palisade_admission::{
    objects::{AdmissionObject, Refused, Submission},
    requests::{Cluster, Operation, Outcome},
};
use palisade_api::{CustomDefault, CustomTarget, Diagnostic};
use palisade_cel::{Minor, environment::RESERVED};
use palisade_checks::defaults;
use palisade_compiler::{Compiled, Custom};
use palisade_kube_json::pod;
use serde_json::{Value as Json, json};

/// The errors in defaults, each at its place in the profile. A field must be known to the oldest minor.
pub(crate) fn diagnose(compiled: &Compiled, oldest: Minor) -> Vec<Diagnostic> {
    let defaults: Vec<_> =
        compiled.customs.iter().filter_map(|custom| Some((custom, custom.check.default.as_ref()?))).collect();
    if defaults.is_empty() {
        return vec![];
    }
    let cluster = crate::cluster(oldest);
    defaults
        .into_iter()
        .filter_map(|(custom, default)| Trial { cluster: &cluster, custom, default }.mistake())
        .collect()
}

/// A default, and a cluster to try it on.
struct Trial<'a> {
    cluster: &'a Cluster,
    custom: &'a Custom,
    default: &'a CustomDefault,
}

impl Trial<'_> {
    fn mistake(&self) -> Option<Diagnostic> {
        let CustomDefault { path, value } = self.default;
        let keys: Vec<_> = path.split('.').collect();
        if keys.iter().any(|key| RESERVED.contains(key)) {
            let message = format!("{path:?} contains a reserved word of CEL");
            return Some(self.say("path", message, "default the whole map"));
        }
        if let Some(created) = self.created(&pod::minimal("default")).ok().filter(|pod| !self.is_unset(pod, &keys)) {
            let found = defaults::field(self.subject(&created), &keys);
            let message = format!("{path} is never unset: it is {found} before pods are mutated");
            return Some(self.say("path", message, "choose a field that pods leave unset, or a field below this one"));
        }
        for length in 1..keys.len() {
            let Err(refused) = self.decode(&self.with(&keys[..length], json!({}))) else { continue };
            let what = if refused.contains(" of type []") { "a list" } else { "not an object" };
            let message = format!("{} is {what}, so that {path} is not a field", keys[..length].join("."));
            return Some(self.say("path", message, "default the whole list, or check each element"));
        }
        let pod = self.with(&keys, value.clone());
        let decoded = match self.decode(&pod) {
            Ok(decoded) => decoded,
            Err(refused) => {
                let message = format!("{path} cannot be {value}: {refused}");
                return Some(self.say("value", message, "write a value of the type of the field"));
            }
        };
        let (of, place) = match self.custom.check.target {
            CustomTarget::Pod => ("the spec of a pod", "spec"),
            _ => ("a container", "spec.containers[0]"),
        };
        if let Some(unknown) = decoded.warnings.iter().find_map(|one| one.strip_prefix("unknown field ")) {
            let unknown = unknown.trim_matches('"');
            let full = format!("{place}.{path}");
            let in_path = full.strip_prefix(unknown).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            let unknown = unknown.strip_prefix(&format!("{place}.")).unwrap_or(unknown);
            let oldest = self.cluster.minor();
            let message =
                format!("unknown field: {of} has no {unknown} in Kubernetes {oldest}, the oldest supported version");
            return Some(self.say(
                if in_path { "path" } else { "value" },
                message,
                "kubectl explain pod.spec lists all fields",
            ));
        }
        if self.is_unset(&decoded.object, &keys) {
            let message = format!("an unset {path} also means {value}");
            return Some(self.say("value", message, "remove the default"));
        }
        match self.created(&pod) {
            Err(refused) => {
                Some(self.say("value", format!("every pod with it is rejected: {refused}"), "write another value"))
            }
            Ok(created) if self.is_unset(&created, &keys) => {
                let message = format!("{path} is dropped by an API server with the default feature gates");
                Some(self.say("path", message, "choose a field that API servers keep"))
            }
            Ok(_) => None,
        }
    }

    fn say(&self, field: &str, message: String, help: &str) -> Diagnostic {
        Diagnostic::new(self.custom.path.child("default").child(field), message).help(help)
    }

    /// The smallest pod with a field set.
    fn with(&self, keys: &[&str], value: Json) -> Json {
        let mut pod = pod::minimal("default");
        match self.custom.check.target {
            CustomTarget::Pod => pod::set(&mut pod, keys, value),
            _ => pod::set_container(&mut pod, keys, value),
        }
        pod
    }

    /// The object of a pod that has the field.
    fn subject<'p>(&self, pod: &'p Json) -> &'p Json {
        match self.custom.check.target {
            CustomTarget::Pod => &pod["spec"],
            _ => &pod["spec"]["containers"][0],
        }
    }

    fn is_unset(&self, pod: &Json, keys: &[&str]) -> bool {
        defaults::is_unset(defaults::field(self.subject(pod), keys))
    }

    fn decode(&self, pod: &Json) -> Result<AdmissionObject, String> {
        let kinds = self.cluster.kinds();
        let resource = kinds.by_kind("v1", "Pod").ok_or("there are no pods")?;
        let sent = Submission { resource, subresource: "", namespace: "default", object: pod, old: None };
        kinds.decode(sent).map_err(|refused| match refused {
            Refused::Decode(text) => {
                text.split_once("handled as a Pod: ").map_or(text.clone(), |(_, why)| why.to_owned())
            }
            other => other.to_string(),
        })
    }

    /// The object that the API server stores for a new pod, or the reason why it denies the pod.
    fn created(&self, pod: &Json) -> Result<Json, String> {
        let review = self.cluster.admit(&self.cluster.request(Operation::Create, "", pod, None)?);
        match (review.outcome, review.object) {
            (Outcome::Allowed, Some(object)) => Ok(object),
            (Outcome::Denied(denials), _) => Err(denials.first().map(|one| one.message.clone()).unwrap_or_default()),
            // What the pod names may exist in the cluster; a profile cannot know.
            (Outcome::NoVerdict(_), _) => self.decode(pod).map(|decoded| decoded.object),
            (Outcome::Allowed, None) => Err("nothing is stored".to_owned()),
        }
    }
}
