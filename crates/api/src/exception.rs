//! `ToolSecurityException`: an exception request of a tenant, and its approval.
#![allow(clippy::duplicated_attributes, reason = "each printed column has a type and a path")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::ExceptionCondition;

/// An exception request: it waives checks of a profile in this namespace until a date. It has no effect until a user
/// with the role palisade-exception-approver writes status.approval. An approval is valid for one generation of the
/// spec: after a change of the spec it is void. spec.exceptionRequests of the profile lists the checks that can be
/// requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "toolsecurity.dev",
    version = "v1alpha1",
    kind = "ToolSecurityException",
    doc = "Request of a tenant to waive checks of a profile for a workload or a namespace until a date. It has no effect until it is approved.",
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
        description = "True if the exception is in effect."
    ),
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "InForce, or the reason why it is not in effect: AwaitingApproval, ApprovalOutdated, Expired, NotCovered and others."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Approved by", type_ = "string", priority = 1, json_path = ".status.approval.by"),
    printcolumn(name = "Reason", type_ = "string", priority = 1, json_path = ".spec.reason"),
    printcolumn(
        name = "Stalled",
        type_ = "string",
        priority = 1,
        json_path = ".status.conditions[?(@.type==\"Stalled\")].status",
        description = "True if the exception must be changed or deleted."
    ),
    printcolumn(
        name = "In use",
        type_ = "string",
        priority = 1,
        json_path = ".status.conditions[?(@.type==\"InUse\")].status",
        description = "True if an existing object needs the exception, if the background scan is enabled."
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
    /// Name of the ToolSecurityProfile.
    #[schemars(length(min = 1, max = 50))]
    pub profile: String,
    /// Ids of checks, as printed in brackets in messages, for example hostPathVolumes. The profile must list each of
    /// them in spec.exceptionRequests.checks. At most 16.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 63)))]
    pub checks: Vec<String>,
    /// Objects in this namespace for which the checks are waived.
    pub scope: ExceptionScope,
    /// Reason for the request, for the approver.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// End of the exception, for example 2027-01-31T00:00:00Z. Objects created from then on are evaluated, by the clock
    /// of the API server.
    #[schemars(schema_with = "crate::time::written")]
    pub expires: Time,
}

/// Objects in a namespace for which checks are waived.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("(self.kind == 'Namespace') != has(self.name)",
    "name is required for a workload, pod or object, and not allowed with kind Namespace"))]
#[x_kube(validation = ("(self.kind == 'Object') == has(self.resource)",
    "resource is required with kind Object, and not allowed with other kinds"))]
#[x_kube(validation = ("self.kind != 'Object' || !has(self.container) && !has(self.imagePrefix)",
    "container and imagePrefix are not allowed with kind Object"))]
#[x_kube(validation = ("!has(self.imagePrefix) || !self.imagePrefix.matches('^(sha256|sha384|sha512|blake3):[^/]*$')",
    "imagePrefix must not match image IDs, which any image on a node can have: use a registry or a repository"))]
pub struct ExceptionScope {
    /// Scope of the exception. Namespace: everything in the namespace. Pod: a pod without a workload. Object: an object of
    /// the kind in resource, for checks of objects other than pods and workloads. Any other value: one workload of this kind,
    /// including its pods.
    pub kind: ScopeKind,
    /// Plural name of the kind of the object, for example services, or with its API group ingresses.networking.k8s.io.
    /// Required if kind is Object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 317),
        regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub resource: Option<String>,
    /// Name of the workload, pod or object. Required unless kind is Namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// Name of a container. If set, the exception covers only containers with this name: violations of other
    /// containers, of volumes and of the pod as a whole are still denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub container: Option<String>,
    /// Prefix of a container image, up to a slash, a colon or an @, for example registry.example/drivers/. If set, the
    /// exception covers only containers with a matching image: violations of other containers, of volumes and of the
    /// pod as a whole are still denied. A prefix never matches an image ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 256), regex(pattern = r"^[^\s]+[/:@]$"))]
    pub image_prefix: Option<String>,
}

impl ExceptionScope {
    /// The workload, pod or object as in policies, for example `Deployment/encoder` or `services/web`. `None` for the
    /// namespace. No kind begins with a small letter, and each resource does.
    pub fn workload(&self) -> Option<String> {
        match (self.kind, &self.name) {
            (ScopeKind::Namespace, _) => None,
            (ScopeKind::Object, name) => {
                let [resource, name] = [&self.resource, name].map(|text| text.as_deref().unwrap_or_default());
                Some(format!("{resource}/{name}"))
            }
            // Without a name, which the API server does not accept, it is the name of nothing.
            (kind, name) => Some(format!("{kind}/{}", name.as_deref().unwrap_or_default())),
        }
    }

    /// True if it covers only some containers.
    pub fn is_of_containers(&self) -> bool {
        self.container.is_some() || self.image_prefix.is_some()
    }
}

/// Kind of the objects that an exception covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, strum::Display)]
pub enum ScopeKind {
    /// Everything in the namespace.
    Namespace,
    /// A pod without a workload.
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
    /// An object of another kind.
    Object,
}

/// Approval of an exception, and its observed state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolSecurityExceptionStatus {
    /// Approval of the exception. Requires the role palisade-exception-approver, bound in the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// Conditions of the exception, written by the controller. Approved: the current spec is approved. Ready: the
    /// exception is in effect, and the API server waives the checks until spec.expires. Stalled: the exception must be
    /// changed or deleted. `InUse`, if the background scan is enabled: an existing object needs it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Generation of the spec that the conditions describe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// An approval of one generation of one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// metadata.uid of the approved object. The approval is void for another object of the same name.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
    /// metadata.generation of the approved object. Every change of the spec increments it, which voids the approval.
    pub generation: i64,
    /// User who approved it. Only the approver's own name is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub by: Option<String>,
}

/// State of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalState {
    /// There is no approval.
    Missing,
    /// The current spec is approved.
    Current,
    /// The approval is void: it is for another generation or another object of the same name, or the exception is being
    /// deleted.
    Outdated,
}

impl ToolSecurityException {
    /// The state of its approval.
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

    /// True if the current spec is approved.
    pub fn is_approved(&self) -> bool {
        self.approval_state() == ApprovalState::Current
    }

    /// A condition of the current spec, if the controller has reported it.
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
            ExceptionScope { kind, resource: None, name, container: None, image_prefix: None }.workload()
        };
        assert_eq!(scope(ScopeKind::CronJob, Some("a")), Some("CronJob/a".to_owned()));
        assert_eq!(scope(ScopeKind::Pod, None), Some("Pod/".to_owned()));
        assert_eq!(scope(ScopeKind::Namespace, Some("a")), None);
    }
}
