//! Defaults for pods and additions to them: `spec.mutation`.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inject::Injection;

/// Defaults for fields that new pods leave unset, and additions to new pods. Pod templates are never changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mutation {
    /// Secure: set each field that a check of this profile requires, if it has one obvious value:
    /// allowPrivilegeEscalation false, runAsNonRoot true, a seccomp profile, capabilities to drop, a read-only root
    /// filesystem, the first user or group of a required range, required SELinux options, supplementalGroupsPolicy
    /// Strict. None: set only the fields in additionalDefaults and the capabilities in
    /// privileges.capabilities.defaultAdd.
    #[serde(default)]
    pub defaults: Defaults,
    /// Fields that are set to a safe value even if no check requires them. AllowPrivilegeEscalation: false. HostUsers:
    /// false, except in a pod that uses the node's network, process or IPC namespace, or block devices.
    /// ReadOnlyRootFilesystem: true. RunAsNonRoot: true. SeccompProfile: RuntimeDefault, or the first allowed profile.
    /// SupplementalGroupsPolicy: Strict, so that a pod has no groups that only its image defines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "set"))]
    pub additional_defaults: Vec<AdditionalDefault>,
    /// Additions to new pods: volumes, environment variables, labels, tolerations and others. Values that a pod sets are kept,
    /// except environment variables with the policy Always and workingDir. If several entries that match a pod add the
    /// same element, the first one counts. Additions must comply with the settings of this profile. At most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub inject: Vec<Injection>,
    /// The engine that mutates pods. Auto: the API server if it serves MutatingAdmissionPolicy (from Kubernetes 1.36
    /// on, and from 1.34 if it is enabled), and Palisade's webhook otherwise. Native: only the API server; if it does
    /// not serve MutatingAdmissionPolicy, pods are not mutated. Webhook: the webhook. Off: pods are not mutated,
    /// regardless of the other settings here and in images.redirect.
    #[serde(default)]
    pub engine: Engine,
    /// The result if the mutation of a pod fails. Ignore: the pod is evaluated unchanged, and denied if it does not
    /// comply. Fail: the pod is rejected.
    #[serde(default)]
    pub failure_policy: FailurePolicy,
}

impl Mutation {
    /// Whether all its fields have their defaults.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

// The schema describes each of these where it is used.
/// The defaults for fields that a check requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Defaults {
    /// None.
    #[default]
    None,
    /// All fields with an obvious value.
    Secure,
}

/// A field that is defaulted even if no check requires it.
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

/// The engine that mutates pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
pub enum Engine {
    /// The API server if it can, and the webhook otherwise.
    #[default]
    Auto,
    /// The webhook.
    Webhook,
    /// The API server.
    Native,
    /// None.
    Off,
}

/// The result if the mutation of a pod fails.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum FailurePolicy {
    /// The pod is evaluated unchanged.
    #[default]
    Ignore,
    /// The pod is rejected.
    Fail,
}
