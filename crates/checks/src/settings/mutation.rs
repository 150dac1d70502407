//! What is defaulted in pods: `spec.mutation`, and the fields that no check asks about.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is defaulted in new pods where they say nothing. A value that a pod sets is never changed, nor are pod
/// templates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mutation {
    /// Secure: what a check of this profile demands of every pod is defaulted, if one value is the obvious one:
    /// allowPrivilegeEscalation false, runAsNonRoot true, a seccomp profile, capabilities to drop, a read-only root
    /// filesystem, the first user or group of a range that a pod must be in, SELinux options that must be set,
    /// supplementalGroupsPolicy Strict. None:
    /// only what additionalDefaults and privileges.capabilities.defaultAdd name.
    #[serde(default)]
    pub defaults: Defaults,
    /// Fields that are defaulted though no check demands them, each with its safe value. AllowPrivilegeEscalation:
    /// false. HostUsers: false, but not in a pod that uses the node's network, processes or IPC, or block devices.
    /// ReadOnlyRootFilesystem: true. RunAsNonRoot: true. SeccompProfile: RuntimeDefault, or the first that is allowed.
    /// SupplementalGroupsPolicy: Strict, so that a pod is in no group only because its image says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "set"))]
    pub additional_defaults: Vec<AdditionalDefault>,
    /// Who changes pods. Auto: the API server itself where it serves MutatingAdmissionPolicy (from Kubernetes 1.36
    /// on, and 1.34 where it is turned on), or else Palisade's webhook. Native: the API server, and nobody where it cannot. Webhook: the webhook.
    /// Off: nobody, whatever else is said here and in images.redirect.
    #[serde(default)]
    pub engine: Engine,
    /// What happens to a pod where who changes it fails. Ignore: it is judged as it is, and denied if it does not
    /// comply. Fail: it is refused.
    #[serde(default)]
    pub failure_policy: FailurePolicy,
}

impl Mutation {
    /// Whether it says nothing.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

// The schema describes each of these where it is used.
/// What is defaulted because a check demands it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Defaults {
    /// Nothing.
    #[default]
    None,
    /// All that has an obvious value.
    Secure,
}

/// A field that is defaulted though no check demands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum AdditionalDefault {
    /// `allowPrivilegeEscalation: false` in containers.
    AllowPrivilegeEscalation,
    /// `hostUsers: false` in the pod.
    HostUsers,
    /// `readOnlyRootFilesystem: true` in containers.
    ReadOnlyRootFilesystem,
    /// `runAsNonRoot: true` in the pod.
    RunAsNonRoot,
    /// `seccompProfile` in the pod.
    SeccompProfile,
    /// `supplementalGroupsPolicy: Strict` in the pod.
    SupplementalGroupsPolicy,
}

/// Who changes pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
pub enum Engine {
    /// The API server if it can, or else the webhook.
    #[default]
    Auto,
    /// The webhook.
    Webhook,
    /// The API server.
    Native,
    /// Nobody.
    Off,
}

/// What happens to a pod where who changes it fails.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum FailurePolicy {
    /// It is judged as it is.
    #[default]
    Ignore,
    /// It is refused.
    Fail,
}
