//! Cases of this project: each has a policy, and requests with their expectations. The same files run offline and on
//! real API servers.
//!
//! A file has a list of `cases`, whose parts are
//!
//! - `name`, which is the policy's and, after `adm-`, the namespace's
//! - `policy`: its `spec`; it matches `ConfigMaps` that are created, changed or deleted unless it says otherwise
//! - `bindings`: the `spec` of each; one that denies, in the case's namespace, unless they say otherwise
//! - `namespace`: labels and annotations of the namespace
//! - `objects`: parameters, definitions of kinds and the like
//! - `before`: objects that are there when the policy comes
//! - `from`: the oldest minor that has the case
//! - `requests`: with `object` (a `ConfigMap` `x` of the case's namespace, but for what it says), `operation`, `old`,
//!   `subresource`, `user`, and what is expected: `denied` (what the policy says; not there if the request is allowed),
//!   `by` (the name of the binding), `reason`, `code`, `warnings`, `annotations`.

use std::{collections::BTreeMap, path::Path};

use palisade_admission::requests::{Cluster, Operation, Request, Review, User};
use palisade_cel::Minor;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Value as Json, json};

use super::yaml;
use crate::Error;

/// A case of this project.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Own {
    pub name: String,
    policy: Json,
    #[serde(default)]
    bindings: Vec<Json>,
    #[serde(default)]
    namespace: Json,
    #[serde(default)]
    objects: Vec<Json>,
    #[serde(default)]
    before: Vec<Json>,
    /// The oldest minor of Kubernetes that has it.
    #[serde(default = "oldest", deserialize_with = "minor")]
    pub from: Minor,
    pub requests: Vec<Ask>,
}

fn oldest() -> Minor {
    Minor::OLDEST
}

/// 36 of 1.36.
fn minor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Minor, D::Error> {
    format!("1.{}", u8::deserialize(deserializer)?).parse().map_err(de::Error::custom)
}

/// A request of a case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    #[serde(default)]
    operation: String,
    #[serde(default)]
    object: Json,
    old: Option<Json>,
    #[serde(default)]
    subresource: String,
    user: Option<Asking>,
    denied: Option<String>,
    by: Option<String>,
    reason: Option<String>,
    code: Option<u16>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asking {
    name: String,
    #[serde(default)]
    groups: Vec<String>,
}

/// All cases in the files of a directory.
///
/// # Errors
/// A file that cannot be read.
pub fn own(directory: &Path) -> Result<Vec<Own>, Error> {
    let mut paths = super::entries(directory)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let mut cases = Vec::new();
    for path in paths {
        for mut document in yaml(&path)? {
            let found: Vec<Own> = serde_json::from_value(document["cases"].take())
                .map_err(|error| Error::Object { path: path.clone(), message: error.to_string() })?;
            cases.extend(found);
        }
    }
    Ok(cases)
}

impl Own {
    pub fn namespace(&self) -> String {
        format!("adm-{}", self.name)
    }

    /// The objects in the cluster before the policy: the namespace, definitions, parameters, and the objects to change
    /// or delete.
    pub fn objects(&self) -> Vec<Json> {
        let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace()}});
        merge(&mut namespace["metadata"], &self.namespace);
        let mut objects = vec![namespace];
        objects.extend(self.objects.iter().chain(&self.before).map(|object| self.object(object)));
        for ask in &self.requests {
            let old = ask.old.as_ref().or_else(|| (ask.operation == "DELETE").then_some(&ask.object));
            objects.extend(old.map(|old| self.object(old)));
        }
        objects
    }

    pub fn policies(&self) -> Vec<Json> {
        let version = "admissionregistration.k8s.io/v1";
        let mut spec = json!({"matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": ["configmaps"],
        }]}});
        merge(&mut spec, &self.policy);
        let policy = json!({
            "apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": self.name}, "spec": spec,
        });
        let default = [json!({})];
        let bindings = if self.bindings.is_empty() { &default } else { self.bindings.as_slice() };
        let bindings = bindings.iter().enumerate().map(|(index, binding)| {
            let by_name = json!({"matchLabels": {"kubernetes.io/metadata.name": self.namespace()}});
            let mut spec = json!({
                "policyName": self.name, "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": by_name},
            });
            merge(&mut spec, binding);
            let name = format!("{}-{}", self.name, index + 1);
            json!({
                "apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
                "spec": spec,
            })
        });
        std::iter::once(policy).chain(bindings).collect()
    }

    /// An object of the case: a `ConfigMap`, but for what it says.
    fn object(&self, object: &Json) -> Json {
        let mut whole = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
        if object["cluster"] != true {
            whole["metadata"]["namespace"] = self.namespace().into();
        }
        merge(&mut whole, object);
        if let Some(fields) = whole.as_object_mut() {
            fields.remove("cluster");
        }
        whole
    }

    /// The cluster of the case.
    ///
    /// # Errors
    /// An object that is refused.
    pub fn cluster(&self, minor: Minor) -> Result<Cluster, String> {
        let mut cluster = palisade_gate::cluster(minor);
        for object in self.objects().into_iter().chain(self.policies()) {
            let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
            cluster.apply(object).map_err(|refused| format!("{name}: {refused:?}"))?;
        }
        Ok(cluster)
    }

    /// What is sent.
    ///
    /// # Errors
    /// There is no such kind.
    pub fn request(&self, ask: &Ask, cluster: &Cluster) -> Result<Request, String> {
        let operation = match ask.operation.as_str() {
            "" => Operation::Create,
            text => Operation::parse(text).ok_or_else(|| format!("no operation {text:?}"))?,
        };
        let mut object = self.object(&ask.object);
        if operation == Operation::Connect {
            // Options have no metadata; what is connected to is named beside them.
            object.as_object_mut().map(|fields| fields.remove("metadata"));
        }
        let old = ask.old.as_ref().map(|old| self.object(old));
        let mut request = cluster.request(operation, &ask.subresource, &object, old.as_ref())?;
        if operation == Operation::Connect {
            "x".clone_into(&mut request.name);
            request.namespace = self.namespace();
        }
        let (name, mut groups) = match &ask.user {
            Some(user) => (user.name.clone(), user.groups.clone()),
            None => ("tester".to_owned(), vec![]),
        };
        groups.extend(["system:masters".to_owned(), "system:authenticated".to_owned()]);
        request.user = User { name, groups, ..User::default() };
        request.dry_run = true;
        request.options = Request::default_options(operation, true);
        Ok(request)
    }
}

impl Ask {
    /// The difference between an answer and the expectation, if there is one.
    pub fn difference(&self, review: &Review) -> Option<String> {
        let expected = json!({
            "denied": self.denied, "warnings": self.warnings, "annotations": self.annotations,
            "reason": self.reason.as_deref().or(self.denied.as_ref().map(|_| "Invalid")),
            "code": self.code.or(self.denied.as_ref().map(|_| 422)),
        });
        let denial = review.outcome.denial();
        let found = json!({
            "denied": denial.map(|denial| &denial.said), "warnings": review.warnings,
            "annotations": review.audit_annotations,
            "reason": denial.map(|denial| &denial.reason), "code": denial.map(|denial| denial.code),
        });
        if self.by.is_some() && self.by.as_ref() != denial.and_then(|denial| denial.binding.as_ref()) {
            return Some(format!("is denied by {:?}, not by {:?}", denial.map(|denial| &denial.binding), self.by));
        }
        (expected != found || (denial.is_none() && !review.outcome.is_allowed()))
            .then(|| format!("expected {expected}\n    found {found}\n    {:?}", review.outcome))
    }
}

/// RFC 7396, but that null is a value.
fn merge(target: &mut Json, patch: &Json) {
    match (target, patch) {
        (Json::Object(target), Json::Object(patch)) => {
            for (key, value) in patch {
                merge(target.entry(key.clone()).or_insert(Json::Null), value);
            }
        }
        (_, Json::Null) => {}
        (target, patch) => *target = patch.clone(),
    }
}
