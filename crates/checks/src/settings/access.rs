//! `spec.access`.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{Kind::Texts, Setting, at, setting};
use crate::Text;

/// Restrictions on RoleBindings. They are evaluated at the stage in enforcement.objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Access {
    /// Roles that RoleBindings may have in roleRef: Role/name or ClusterRole/name, where * at the end matches any suffix;
    /// * for all, or $name. An empty list allows none. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    #[x_kube(validation = ("self.all(x, x == '*' || x.startsWith('$') || x.startsWith('Role/') || x.startsWith('ClusterRole/'))",
        "must be Role/name, ClusterRole/name, * or $name"))]
    pub allowed_role_refs: Option<Vec<Text>>,
    /// Subjects that RoleBindings may have, in addition to the service accounts in their namespace: User/name, Group/name or
    /// ServiceAccount/namespace/name, where * at the end matches any suffix; * for all, or $name. User/* includes
    /// system:anonymous, and service accounts by the names of their users. An empty list allows no others. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    #[x_kube(validation = ("self.all(x, x == '*' || x.startsWith('$') || x.startsWith('User/') || x.startsWith('Group/') || x.startsWith('ServiceAccount/'))",
        "must be User/name, Group/name, ServiceAccount/namespace/name, * or $name"))]
    pub allowed_subjects: Option<Vec<Text>>,
}

/// The settings of this group, in the order in which messages name them.
pub(super) static SETTINGS: &[Setting] = &[
    setting("access.allowedRoleRefs", Texts(at!(access.allowed_role_refs))),
    setting("access.allowedSubjects", Texts(at!(access.allowed_subjects))),
];
