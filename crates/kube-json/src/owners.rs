//! Which workload an object belongs to, so that a Deployment with fifty pods is one line of a report.

use std::{collections::BTreeMap, fmt};

use serde_json::Value as Json;

use crate::workload::WORKLOADS;

/// Maximum length of a chain of owners: tenants can create owners.
const DEEPEST: usize = 5;

/// A workload, or a pod without a workload. Its text is kind and name: `Deployment/encoder`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl Reference {
    /// An object of a kind that is listed.
    pub fn to(kind: &str, object: &Json) -> Self {
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
        let workload = WORKLOADS.iter().find(|workload| workload.kind == kind);
        let own = object["apiVersion"].as_str().unwrap_or("v1");
        let api_version = workload.map_or(own, |workload| workload.api_version).to_owned();
        Self { api_version, kind: kind.to_owned(), name: text("name"), uid: text("uid") }
    }

    /// The controller of an object as the object names it, if it has one.
    pub fn to_controller(object: &Json) -> Option<Self> {
        let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
        let owner = owners.iter().find(|owner| owner["controller"] == true)?;
        let text = |key: &str| owner[key].as_str().map(str::to_owned);
        let api_version = text("apiVersion").unwrap_or_default();
        Some(Self { api_version, kind: text("kind")?, name: text("name")?, uid: text("uid")? })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// The owners of workloads that belong to another, such as ReplicaSets, by the uid of the workload.
#[derive(Debug, Default)]
pub struct Owners(BTreeMap<String, Reference>);

impl Owners {
    /// Remembers the owner of a workload, if it has one.
    pub fn learn(&mut self, workload: &Json) {
        let uid = workload.pointer("/metadata/uid").and_then(Json::as_str);
        if let (Some(uid), Some(owner)) = (uid, Reference::to_controller(workload)) {
            self.0.insert(uid.to_owned(), owner);
        }
    }

    /// The topmost workload that is known: `Deployment/encoder` for a pod of its ReplicaSet.
    pub fn workload<'a>(&'a self, object: &'a Reference, owner: Option<&'a Reference>) -> &'a Reference {
        let Some(mut top) = owner else { return object };
        for _ in 0..DEEPEST {
            match self.0.get(&top.uid) {
                Some(above) => top = above,
                None => break,
            }
        }
        top
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(uid: &str, owner: Option<(&str, &str, &str)>) -> Json {
        let owners: Vec<_> = owner
            .map(|(uid, kind, name)| json!({"uid": uid, "kind": kind, "name": name, "controller": true}))
            .into_iter()
            .collect();
        json!({"metadata": {"uid": uid, "ownerReferences": owners}})
    }

    fn topmost(owners: &Owners, pod: &str, of: &Json) -> String {
        let pod = Reference::to("Pod", &json!({"metadata": {"name": pod}}));
        owners.workload(&pod, Reference::to_controller(of).as_ref()).to_string()
    }

    #[test]
    fn a_pod_belongs_to_the_topmost_workload() {
        let mut owners = Owners::default();
        owners.learn(&object("rs", Some(("d", "Deployment", "web"))));
        owners.learn(&object("d", None));
        let pod = object("p", Some(("rs", "ReplicaSet", "web-1")));
        assert_eq!(topmost(&owners, "web-1-a", &pod), "Deployment/web");
        let custom = object("p", Some(("r", "Rollout", "web")));
        assert_eq!(topmost(&owners, "web-1-a", &custom), "Rollout/web");
        assert_eq!(topmost(&owners, "single", &object("p", None)), "Pod/single");
    }

    #[test]
    fn owners_in_a_circle_end_somewhere() {
        let mut owners = Owners::default();
        owners.learn(&object("a", Some(("b", "ReplicaSet", "b"))));
        owners.learn(&object("b", Some(("a", "ReplicaSet", "a"))));
        let pod = object("p", Some(("a", "ReplicaSet", "a")));
        assert!(topmost(&owners, "p", &pod).starts_with("ReplicaSet/"));
    }

    #[test]
    fn an_owner_that_is_no_controller_does_not_count() {
        let pod = json!({"metadata": {"ownerReferences": [{"uid": "x", "kind": "Node", "name": "n"}]}});
        assert_eq!(Reference::to_controller(&pod), None);
    }

    #[test]
    fn listed_objects_have_the_api_version_of_their_kind() {
        let object = json!({"metadata": {"name": "a", "uid": "u"}});
        let reference = |kind: &str| Reference::to(kind, &object);
        assert_eq!(reference("CronJob").api_version, "batch/v1");
        assert_eq!(reference("Pod").api_version, "v1");
    }
}
