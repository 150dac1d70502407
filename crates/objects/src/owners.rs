//! Which workload an object belongs to, so that a Deployment with fifty pods is one line of a report.

use std::collections::BTreeMap;

use serde_json::Value as Json;

/// The longest chain of owners that is followed: an owner may be made by whoever writes the object.
const DEEPEST: usize = 5;

/// The controller of an object, as the object names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    uid: String,
    kind: String,
    name: String,
}

impl Owner {
    /// The controller of an object, if it has one.
    pub fn of(object: &Json) -> Option<Self> {
        let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
        let owner = owners.iter().find(|owner| owner["controller"] == true)?;
        let text = |key: &str| owner[key].as_str().map(str::to_owned);
        Some(Self { uid: text("uid")?, kind: text("kind")?, name: text("name")? })
    }
}

/// The owners of workloads that belong to another, such as ReplicaSets, by the uid of the workload.
#[derive(Debug, Default)]
pub struct Owners(BTreeMap<String, Owner>);

impl Owners {
    /// Remembers the owner of a workload, if it has one.
    pub fn learn(&mut self, workload: &Json) {
        let uid = workload.pointer("/metadata/uid").and_then(Json::as_str);
        if let (Some(uid), Some(owner)) = (uid, Owner::of(workload)) {
            self.0.insert(uid.to_owned(), owner);
        }
    }

    /// Kind and name of the topmost workload that is known: `Deployment/encoder` for a pod of its ReplicaSet.
    pub fn workload(&self, kind: &str, name: &str, owner: Option<&Owner>) -> String {
        let Some(mut top) = owner else { return format!("{kind}/{name}") };
        for _ in 0..DEEPEST {
            match self.0.get(&top.uid) {
                Some(above) => top = above,
                None => break,
            }
        }
        format!("{}/{}", top.kind, top.name)
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

    #[test]
    fn a_pod_belongs_to_the_topmost_workload() {
        let mut owners = Owners::default();
        owners.learn(&object("rs", Some(("d", "Deployment", "web"))));
        owners.learn(&object("d", None));
        let pod = Owner::of(&object("p", Some(("rs", "ReplicaSet", "web-1"))));
        assert_eq!(owners.workload("Pod", "web-1-a", pod.as_ref()), "Deployment/web");
        let custom = Owner::of(&object("p", Some(("r", "Rollout", "web"))));
        assert_eq!(owners.workload("Pod", "web-1-a", custom.as_ref()), "Rollout/web");
        assert_eq!(owners.workload("Pod", "single", None), "Pod/single");
    }

    #[test]
    fn owners_in_a_circle_end_somewhere() {
        let mut owners = Owners::default();
        owners.learn(&object("a", Some(("b", "ReplicaSet", "b"))));
        owners.learn(&object("b", Some(("a", "ReplicaSet", "a"))));
        let pod = Owner::of(&object("p", Some(("a", "ReplicaSet", "a"))));
        assert!(owners.workload("Pod", "p", pod.as_ref()).starts_with("ReplicaSet/"));
    }

    #[test]
    fn an_owner_that_is_no_controller_does_not_count() {
        let pod = json!({"metadata": {"ownerReferences": [{"uid": "x", "kind": "Node", "name": "n"}]}});
        assert_eq!(Owner::of(&pod), None);
    }
}
