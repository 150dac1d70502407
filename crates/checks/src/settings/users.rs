//! `spec.users`.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Kind::{Demand, Other, Relaxation},
    Range, Setting, at, setting,
};
use crate::Flag;

/// The users and groups that processes may run as.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Users {
    /// The user that containers run as. If absent: any but an explicit 0 (MustRunAsNonRoot).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_user: Option<UserRules>,
    /// The primary group that containers run as. If absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_group: Option<GroupRules>,
    /// The group that owns the pod's volumes. If absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_group: Option<GroupRules>,
    /// Further groups of the pod's processes. If absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supplemental_groups: Option<GroupRules>,
    /// Strict: each pod must set supplementalGroupsPolicy: Strict, so that its processes are in no group only because
    /// /etc/group of the image says so. Merge: that is up to the pod. If absent: Merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supplemental_groups_policy: Option<SupplementalGroupsPolicy>,
    /// Whether the pod or each container must set runAsNonRoot, so that the kubelet refuses to start an
    /// image as root. true, false or $name. If absent: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_run_as_non_root: Option<Flag>,
    /// Whether a pod in a user namespace of its own (hostUsers: false), where root is not a user of the node, is
    /// free of requireRunAsNonRoot and of the rule MustRunAsNonRoot. true, false or $name. If absent: as in
    /// baseline; true for Baseline and Restricted from v1.35 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relax_for_user_namespaces: Option<Flag>,
}

/// The settings of this group, in the order in which messages name them.
pub(super) static SETTINGS: &[Setting] = &[
    setting("users.runAsUser", Other(&at!(users.run_as_user))),
    setting("users.requireRunAsNonRoot", Demand(at!(users.require_run_as_non_root))),
    setting("users.relaxForUserNamespaces", Relaxation(at!(users.relax_for_user_namespaces))),
    setting("users.runAsGroup", Other(&at!(users.run_as_group))),
    setting("users.fsGroup", Other(&at!(users.fs_group))),
    setting("users.supplementalGroups", Other(&at!(users.supplemental_groups))),
    setting("users.supplementalGroupsPolicy", Other(&at!(users.supplemental_groups_policy))),
];

/// How the user of a container is restricted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UserRule {
    /// The user must be set and lie in one of the ranges.
    MustRunAs,
    /// The user must lie in one of the ranges where it is set.
    MayRunAs,
    /// The user must not be set to 0.
    MustRunAsNonRoot,
    /// Anything.
    RunAsAny,
}

/// How a group is restricted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GroupRule {
    /// The group must be set and lie in one of the ranges.
    MustRunAs,
    /// The group must lie in one of the ranges where it is set.
    MayRunAs,
    /// Anything.
    RunAsAny,
}

/// A restriction of users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("self.rule in ['MustRunAs', 'MayRunAs'] == (has(self.ranges) && self.ranges.size() > 0)",
    "MustRunAs and MayRunAs need at least one range, the other rules take none"))]
pub struct UserRules {
    /// MustRunAs: set and in a range; MayRunAs: in a range where set; MustRunAsNonRoot: not set to 0;
    /// RunAsAny: anything.
    pub rule: UserRule,
    /// The allowed user ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub ranges: Vec<Range>,
}

/// A restriction of groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("self.rule in ['MustRunAs', 'MayRunAs'] == (has(self.ranges) && self.ranges.size() > 0)",
    "MustRunAs and MayRunAs need at least one range, RunAsAny takes none"))]
pub struct GroupRules {
    /// MustRunAs: set and in a range; MayRunAs: in a range where set; RunAsAny: anything.
    pub rule: GroupRule,
    /// The allowed group ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub ranges: Vec<Range>,
}

// The schema describes it where it is used.
/// What groups of the image count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SupplementalGroupsPolicy {
    /// That is up to the pod.
    Merge,
    /// None.
    Strict,
}
