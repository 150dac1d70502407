//! `spec.access`.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Kind::{Allowance, Other, Texts},
    Setting, at, setting,
};
use crate::{Flag, Integer, Text};

/// Restrictions on RoleBindings, Roles, tokens of service accounts and connections to pods and Services. They are evaluated at the stage in enforcement.objects.
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
    /// Whether Roles may have wildcards in verbs, apiGroups or resources. true, false or $name. If unset: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_role_wildcards: Option<Flag>,
    /// Verbs that Roles may have in rules, for example get, list, watch, create, update, patch and delete; * for all, or
    /// $name. Omit escalate, bind, and verbs of impersonation: they give users permissions that they do not have. An
    /// empty list allows only Roles without rules. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    pub allowed_role_verbs: Option<Vec<Text>>,
    /// Service accounts whose tokens users may get, by requests to serviceaccounts/token and by Secrets of the type
    /// kubernetes.io/service-account-token: a name, where * at the end matches any suffix; * for all, or $name. Nodes may
    /// always request tokens for their pods. An empty list allows none. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    pub allowed_token_service_accounts: Option<Vec<Text>>,
    /// Audiences that requested tokens may have, * for all, or $name. A request without audiences has those of the API
    /// server. A Secret with a token is denied, because the token has no audience. An empty list allows none. If unset:
    /// all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    pub allowed_token_audiences: Option<Vec<Text>>,
    /// Maximum expirationSeconds of requested tokens. The default of a request is 3600. A Secret with a token is denied,
    /// because the token does not expire. If unset: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("type(self) == string || self >= 600",
        "must be at least 600 seconds, the minimum of the API server"))]
    pub max_token_expiration_seconds: Option<Integer>,
    /// Connections to pods and Services that users may open: one entry must allow each. An empty list allows none. If
    /// unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8))]
    pub allowed_connections: Option<Vec<AllowedConnection>>,
}

/// Connections that are allowed, if all fields that are set match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("!has(self.commands) || self.resources.all(x, x == 'pods/exec')",
    "commands is only allowed with pods/exec"))]
#[x_kube(validation = ("!has(self.ports) || self.resources.all(x, x in ['pods/proxy', 'services/proxy'])",
    "ports is only allowed with pods/proxy and services/proxy"))]
pub struct AllowedConnection {
    /// Resources to connect to: pods/exec, pods/attach, pods/portforward, pods/proxy and services/proxy.
    #[schemars(length(min = 1, max = 5))]
    pub resources: Vec<ConnectionResource>,
    /// Groups, or $name. The user must be in one of them. If unset: all users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 128)))]
    pub groups: Option<Vec<Text>>,
    /// Commands, or $name: the first words of a command, separated by single spaces. The command of the request must
    /// begin with all words of one of them, and can have more. Only with pods/exec. If unset: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 128)))]
    pub commands: Option<Vec<Text>>,
    /// Ports, as numbers or names, '' for a request without a port, or $name. Only with pods/proxy and services/proxy. If
    /// unset: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16), inner(length(min = 0, max = 128)))]
    pub ports: Option<Vec<Text>>,
}

// The schema describes these where they are used.
/// A resource that clients can connect to.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::EnumIter,
    strum::IntoStaticStr,
)]
pub enum ConnectionResource {
    /// A new process in a container.
    #[serde(rename = "pods/exec")]
    #[strum(serialize = "pods/exec")]
    Exec,
    /// The main process of a container.
    #[serde(rename = "pods/attach")]
    #[strum(serialize = "pods/attach")]
    Attach,
    /// Ports of a pod, by streams.
    #[serde(rename = "pods/portforward")]
    #[strum(serialize = "pods/portforward")]
    PortForward,
    /// A port of a pod, by HTTP.
    #[serde(rename = "pods/proxy")]
    #[strum(serialize = "pods/proxy")]
    PodProxy,
    /// A port of a Service, by HTTP.
    #[serde(rename = "services/proxy")]
    #[strum(serialize = "services/proxy")]
    ServiceProxy,
}

/// The settings of this group, in the order in which messages name them.
pub(super) static SETTINGS: &[Setting] = &[
    setting("access.allowedRoleRefs", Texts(at!(access.allowed_role_refs))),
    setting("access.allowedSubjects", Texts(at!(access.allowed_subjects))),
    setting("access.allowRoleWildcards", Allowance(at!(access.allow_role_wildcards))),
    setting("access.allowedRoleVerbs", Texts(at!(access.allowed_role_verbs))),
    setting("access.allowedTokenServiceAccounts", Texts(at!(access.allowed_token_service_accounts))),
    setting("access.allowedTokenAudiences", Texts(at!(access.allowed_token_audiences))),
    setting("access.maxTokenExpirationSeconds", Other(&at!(access.max_token_expiration_seconds))),
    setting("access.allowedConnections", Other(&at!(access.allowed_connections))),
];
