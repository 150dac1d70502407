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
    /// The user that containers run as. If unset: any except an explicit 0 (MustRunAsNonRoot).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_user: Option<UserRules>,
    /// The primary group that containers run as. If unset: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_group: Option<GroupRules>,
    /// The group that owns the pod's volumes. If unset: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_group: Option<GroupRules>,
    /// Supplemental groups of the pod's processes. If unset: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supplemental_groups: Option<GroupRules>,
    /// Strict: each pod must set supplementalGroupsPolicy: Strict, so that its processes get no groups from /etc/group
    /// of the image. Merge: pods may use any value. If unset: Merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supplemental_groups_policy: Option<SupplementalGroupsPolicy>,
    /// Whether the pod or each container must set runAsNonRoot, so that the kubelet does not start an image as root.
    /// true, false or $name. If unset: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_run_as_non_root: Option<Flag>,
    /// Whether a pod in a separate user namespace (hostUsers: false), where root is not root on the node, is exempt
    /// from requireRunAsNonRoot and from the rule MustRunAsNonRoot. true, false or $name. If unset: as in baseline;
    /// true for Baseline and Restricted from v1.35 on.
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

/// The restriction of a container's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UserRule {
    /// The user must be set and in one of the ranges.
    MustRunAs,
    /// If the user is set, it must be in one of the ranges.
    MayRunAs,
    /// The user must not be set to 0.
    MustRunAsNonRoot,
    /// Anything.
    RunAsAny,
}

/// The restriction of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GroupRule {
    /// The group must be set and in one of the ranges.
    MustRunAs,
    /// If the group is set, it must be in one of the ranges.
    MayRunAs,
    /// Anything.
    RunAsAny,
}

/// A restriction of users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("self.rule in ['MustRunAs', 'MayRunAs'] == (has(self.ranges) && self.ranges.size() > 0)",
    "MustRunAs and MayRunAs need at least one range; the other rules must have none"))]
pub struct UserRules {
    /// MustRunAs: set and in a range. MayRunAs: unset, or in a range. MustRunAsNonRoot: not set to 0. RunAsAny: any
    /// value.
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
    "MustRunAs and MayRunAs need at least one range; RunAsAny must have none"))]
pub struct GroupRules {
    /// MustRunAs: set and in a range. MayRunAs: unset, or in a range. RunAsAny: any value.
    pub rule: GroupRule,
    /// The allowed group ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub ranges: Vec<Range>,
}

// The schema describes it where it is used.
/// The use of groups that the image defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SupplementalGroupsPolicy {
    /// Pods decide.
    Merge,
    /// They are not used.
    Strict,
}
