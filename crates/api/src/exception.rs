//! `ToolSecurityException`: what a tenant asks for, and whether somebody has approved it.
#![allow(clippy::duplicated_attributes, reason = "each printed column has a type and a path")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::ExceptionCondition;

/// Checks of a profile that a tenant asks to be lifted in this namespace until a date. It has no effect until
/// somebody with the role palisade-exception-approver writes status.approval. An approval is of what was read: after a
/// change of the spec there is none. The profile says in spec.exceptionRequests which checks can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "toolsecurity.dev",
    version = "v1alpha1",
    kind = "ToolSecurityException",
    doc = "A tenant asks that checks of a profile be lifted for a workload or a namespace until a date. It has no effect until it is approved.",
    plural = "toolsecurityexceptions",
    shortname = "tse",
    category = "palisade",
    namespaced,
    status = "ToolSecurityExceptionStatus",
    derive = "PartialEq",
    printcolumn(name = "Profile", type_ = "string", json_path = ".spec.profile"),
    printcolumn(name = "Checks", type_ = "string", json_path = ".spec.checks"),
    printcolumn(name = "Kind", type_ = "string", json_path = ".spec.scope.kind"),
    printcolumn(name = "Name", type_ = "string", json_path = ".spec.scope.name"),
    printcolumn(name = "Expires", type_ = "string", json_path = ".spec.expires"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether it is in force."
    ),
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "InForce, or why it is not: AwaitingApproval, ApprovalOutdated, Expired, NotCovered and others."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Approved by", type_ = "string", priority = 1, json_path = ".status.approval.by"),
    printcolumn(name = "Reason", type_ = "string", priority = 1, json_path = ".spec.reason"),
    printcolumn(
        name = "Stalled",
        type_ = "string",
        priority = 1,
        json_path = ".status.conditions[?(@.type==\"Stalled\")].status",
        description = "Whether somebody must change or delete it."
    ),
    printcolumn(
        name = "In use",
        type_ = "string",
        priority = 1,
        json_path = ".status.conditions[?(@.type==\"InUse\")].status",
        description = "Whether something that exists needs it, if the background scan is on."
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        priority = 1,
        json_path = ".status.conditions[?(@.type==\"Ready\")].message"
    )
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolSecurityExceptionSpec {
    /// The name of the ToolSecurityProfile.
    #[schemars(length(min = 1, max = 50))]
    pub profile: String,
    /// Ids of checks, as they stand in brackets in messages: hostPathVolumes. The profile must list each of them in
    /// spec.exceptionRequests.checks.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 63)))]
    pub checks: Vec<String>,
    /// For what in this namespace the checks are lifted.
    pub scope: ExceptionScope,
    /// Why, for whoever approves it.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// When it ends, for example 2027-01-31T00:00:00Z: what is created from then on is judged, by the API server's
    /// clock.
    #[schemars(schema_with = "crate::time::written")]
    pub expires: Time,
}

/// For what in a namespace checks are lifted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("(self.kind == 'Namespace') != has(self.name)",
    "name is the name of the workload or pod; with kind Namespace there is none"))]
#[x_kube(validation = ("!has(self.imagePrefix) || !self.imagePrefix.matches('^(sha256|sha384|sha512|blake3):[^/]*$')",
    "imagePrefix must not match image IDs, which any image on a node can have: write a registry or a repository"))]
pub struct ExceptionScope {
    /// Namespace: for everything in the namespace. Or the kind of one workload, which counts with its pods. Or Pod: for
    /// a pod that no workload makes.
    pub kind: ScopeKind,
    /// The name of that workload or pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// The name of a container: what the checks say of other containers, of volumes and of the pod as a whole stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub container: Option<String>,
    /// What the image of a container begins with, up to a slash, a colon or an @, for example
    /// registry.example/drivers/: what the checks say of containers with other images, of volumes and of the pod as a
    /// whole stays. No prefix matches an image ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 256), regex(pattern = r"^[^\s]+[/:@]$"))]
    pub image_prefix: Option<String>,
}

impl ExceptionScope {
    /// The workload or pod, as policies name it: `Deployment/encoder`. `None` for the namespace.
    pub fn workload(&self) -> Option<String> {
        match (self.kind, &self.name) {
            (ScopeKind::Namespace, _) => None,
            // Without a name, which the API server does not accept, it is the name of nothing.
            (kind, name) => Some(format!("{kind}/{}", name.as_deref().unwrap_or_default())),
        }
    }

    /// Whether it is for some containers only.
    pub fn is_of_containers(&self) -> bool {
        self.container.is_some() || self.image_prefix.is_some()
    }
}

/// The kind of what an exception is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, strum::Display)]
pub enum ScopeKind {
    /// All pods and workloads of the namespace.
    Namespace,
    /// A pod that no workload makes.
    Pod,
    /// A Deployment, its ReplicaSets and their pods.
    Deployment,
    /// A ReplicaSet and its pods.
    ReplicaSet,
    /// A ReplicationController and its pods.
    ReplicationController,
    /// A StatefulSet and its pods.
    StatefulSet,
    /// A DaemonSet and its pods.
    DaemonSet,
    /// A Job and its pods.
    Job,
    /// A CronJob, its Jobs and their pods.
    CronJob,
}

/// Whether an exception was approved, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolSecurityExceptionStatus {
    /// The approval. Only whoever has the role palisade-exception-approver in the whole cluster may change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// Approved: somebody has approved what the spec says now. Ready: it is in force, and until spec.expires the API
    /// server lifts the checks. Stalled: somebody must change or delete it. `InUse`, where the background scan is on:
    /// something that exists needs it. The controller writes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The generation of the spec that the conditions are about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// An approval of one object as it was at one generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// The metadata.uid of the object that was read: another object of the same name is not approved.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
    /// The metadata.generation of the object that was read. Each change of the spec makes another one.
    pub generation: i64,
    /// Who approved it: nobody can write another name than their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub by: Option<String>,
}

/// Whether an exception is approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalState {
    /// Nobody has approved it.
    Missing,
    /// As it is now.
    Current,
    /// As it was, or another object of its name was: that is no approval. Nor is one of what is being deleted.
    Outdated,
}

impl ToolSecurityException {
    /// Whether it is approved.
    pub fn approval_state(&self) -> ApprovalState {
        let meta = &self.metadata;
        let Some(approval) = self.status.as_ref().and_then(|status| status.approval.as_ref()) else {
            return ApprovalState::Missing;
        };
        let current = meta.deletion_timestamp.is_none()
            // A file need not say what only an API server sets.
            && meta.uid.as_ref().is_none_or(|uid| *uid == approval.uid)
            && meta.generation.is_none_or(|generation| generation == approval.generation);
        if current { ApprovalState::Current } else { ApprovalState::Outdated }
    }

    /// Whether somebody has approved what the spec says now.
    pub fn is_approved(&self) -> bool {
        self.approval_state() == ApprovalState::Current
    }

    /// A condition of what the spec says now, if the controller has reported it.
    pub fn condition(&self, type_: ExceptionCondition) -> Option<&Condition> {
        let generation = self.metadata.generation;
        let mut conditions = self.status.iter().flat_map(|status| &status.conditions);
        conditions.find(|one| one.type_ == type_.to_string() && one.observed_generation == generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exception(metadata: &serde_json::Value, approval: &serde_json::Value) -> ToolSecurityException {
        serde_json::from_value(serde_json::json!({
            "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityException", "metadata": metadata,
            "spec": {
                "profile": "tools", "checks": ["privileged"], "scope": {"kind": "Deployment", "name": "a"},
                "reason": "x", "expires": "2027-01-31T00:00:00Z",
            },
            "status": {"approval": approval},
        }))
        .unwrap()
    }

    #[test]
    fn an_approval_is_of_one_object_at_one_generation() {
        let meta = serde_json::json!({"name": "x", "uid": "u", "generation": 2});
        for (approval, expected) in [
            (serde_json::json!({"uid": "u", "generation": 2}), true),
            (serde_json::json!({"uid": "u", "generation": 1}), false),
            (serde_json::json!({"uid": "v", "generation": 2}), false),
            (serde_json::Value::Null, false),
        ] {
            assert_eq!(exception(&meta, &approval).is_approved(), expected, "{approval}");
        }
        let going = serde_json::json!({"uid": "u", "generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert!(!exception(&going, &serde_json::json!({"uid": "u", "generation": 2})).is_approved());
        let file = serde_json::json!({"name": "x"});
        assert!(exception(&file, &serde_json::json!({"uid": "u", "generation": 1})).is_approved());
    }

    #[test]
    fn scope_names_the_workload_like_the_policies() {
        let scope = |kind, name: Option<&str>| {
            let name = name.map(str::to_owned);
            ExceptionScope { kind, name, container: None, image_prefix: None }.workload()
        };
        assert_eq!(scope(ScopeKind::CronJob, Some("a")), Some("CronJob/a".to_owned()));
        assert_eq!(scope(ScopeKind::Pod, None), Some("Pod/".to_owned()));
        assert_eq!(scope(ScopeKind::Namespace, Some("a")), None);
    }
}
