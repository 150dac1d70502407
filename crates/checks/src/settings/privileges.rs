//! `spec.privileges`.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Kind::{Allowance, Demand, Other, Relaxation, Texts},
    Setting, at, setting, standard,
};
use crate::{Flag, Text};

/// Privileges that containers may have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Privileges {
    /// Whether containers may be privileged. true, false or $name. If unset: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privileged: Option<Flag>,
    /// Whether a process may gain more privileges than its parent, for example through a setuid binary. If
    /// false, each container must set allowPrivilegeEscalation: false. true, false or $name. If unset: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_privilege_escalation: Option<Flag>,
    /// Linux capabilities that containers may add and must drop. If unset: all must be dropped, and
    /// NET_BIND_SERVICE may be added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// Allowed values of procMount: Default, Unmasked, $name. If unset: Default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4))]
    #[x_kube(validation = ("self.all(x, x in ['Default', 'Unmasked', '*'] || x.startsWith('$'))",
        "must be Default, Unmasked, * or $name (not DefaultProcMount)"))]
    pub proc_mount: Option<Vec<Text>>,
    /// Whether a pod in a separate user namespace (hostUsers: false) may use any procMount. true, false or
    /// $name. If unset: as in baseline; true for Baseline from v1.35 on, and false for Restricted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmasked_in_user_namespaces: Option<Flag>,
    /// Seccomp profiles that containers run under. If unset: RuntimeDefault or any Localhost profile, and
    /// one of them must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<Seccomp>,
    /// AppArmor profiles that containers run under. If unset: RuntimeDefault, any Localhost profile, or none set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_armor: Option<AppArmor>,
    /// SELinux options that the pod and its containers may set. If unset: the types that confine a container,
    /// any level, and neither user nor role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub se_linux: Option<SeLinux>,
    /// Sysctls that pods may set. If unset: the safe sysctls of the Pod Security Standards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sysctls: Option<Sysctls>,
    /// Whether containers may be HostProcess containers of a Windows node. true, false or $name. If unset:
    /// false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows_host_process: Option<Flag>,
    /// Requirements for Windows pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<WindowsRule>,
    /// Whether each container must have a read-only root filesystem. true, false or $name. If unset: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_root_filesystem: Option<Flag>,
    /// Whether the containers of a pod may share one process namespace. Each then sees the processes of the others,
    /// and their files below /proc. true, false or $name. If unset: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_process_namespace: Option<Flag>,
}

/// The settings of this group, in the order in which messages name them.
pub(super) static SETTINGS: &[Setting] = &[
    setting("privileges.privileged", Allowance(at!(privileges.privileged))),
    setting("privileges.allowPrivilegeEscalation", Allowance(at!(privileges.allow_privilege_escalation))),
    setting("privileges.windowsHostProcess", Allowance(at!(privileges.windows_host_process))),
    setting("privileges.unmaskedInUserNamespaces", Relaxation(at!(privileges.unmasked_in_user_namespaces))),
    setting("privileges.capabilities", Other(&at!(privileges.capabilities))),
    setting("privileges.procMount", Texts(at!(privileges.proc_mount))),
    setting("privileges.seccomp", Other(&at!(privileges.seccomp))),
    setting("privileges.appArmor", Other(&at!(privileges.app_armor))),
    setting("privileges.seLinux", Other(&at!(privileges.se_linux))),
    setting("privileges.sysctls", Other(&at!(privileges.sysctls))),
    setting("privileges.windows", Other(&at!(privileges.windows))),
    setting("privileges.readOnlyRootFilesystem", Demand(at!(privileges.read_only_root_filesystem))),
    setting("privileges.shareProcessNamespace", Allowance(at!(privileges.share_process_namespace))),
];

// The schema describes the setting with this.
/// Exempt: a pod with os.name windows may omit the fields that the API server does not allow in it
/// (allowPrivilegeEscalation, capabilities to drop, a seccomp profile, supplementalGroupsPolicy). Check: it must set
/// them, so no Windows pod is admitted if they are required. If unset: as in baseline; Exempt from v1.25 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WindowsRule {
    /// They may omit these fields.
    Exempt,
    /// They must set these fields, like any pod.
    Check,
}

/// Linux capabilities that containers may add and must drop, by their names without CAP_.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Capabilities {
    /// Capabilities that containers may add; * for all, or $name. An empty list allows none. If unset:
    /// NET_BIND_SERVICE.
    #[serde(default = "default_add")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = ("self.all(x, !x.startsWith('CAP_'))", "must be written without CAP_"))]
    pub allowed_add: Vec<Text>,
    /// Capabilities that each container must drop, or $name. ALL means every capability. An empty list requires
    /// nothing. If unset: ALL.
    #[serde(default = "default_drop")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = ("self.all(x, !x.startsWith('CAP_'))", "must be written without CAP_"))]
    pub required_drop: Vec<Text>,
    /// Capabilities that are added to containers that neither add any capability nor drop one of these, regardless of
    /// mutation.defaults. Containers may also add them. If unset or empty: none.
    #[serde(default)]
    #[schemars(length(max = 64))]
    #[x_kube(validation = ("self.all(x, !x.startsWith('CAP_') && x != '*')",
        "must be written without CAP_, and * is not allowed"))]
    pub default_add: Vec<Text>,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self { allowed_add: default_add(), required_drop: default_drop(), default_add: vec![] }
    }
}

fn default_add() -> Vec<Text> {
    vec!["NET_BIND_SERVICE".into()]
}

fn default_drop() -> Vec<Text> {
    vec!["ALL".into()]
}

/// Seccomp profiles that containers run under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Seccomp {
    /// Allowed types: RuntimeDefault, Localhost, Unconfined, * for all, or $name. If unset: RuntimeDefault and
    /// Localhost.
    #[serde(default = "runtime_or_localhost")]
    #[schemars(length(min = 1, max = 8))]
    #[x_kube(validation = ("self.all(x, x in ['RuntimeDefault', 'Localhost', 'Unconfined', '*'] || x.startsWith('$'))",
        "must be RuntimeDefault, Localhost, Unconfined, * or $name (not runtime/default)"))]
    pub allowed: Vec<Text>,
    /// Allowed profiles of type Localhost, relative to the kubelet's profile directory; * for all, or $name.
    /// If unset: all.
    #[serde(default = "anything")]
    #[schemars(length(max = 64))]
    pub localhost_profiles: Vec<Text>,
    /// Whether the pod or each container must set a profile. true, false or $name. If unset: true.
    #[serde(default = "yes")]
    pub required: Flag,
    /// Whether the seccomp annotations of Kubernetes before 1.19 are also evaluated. No maintained version reads
    /// them. true, false or $name. If unset: false.
    #[serde(default = "no")]
    pub annotations: Flag,
}

impl Default for Seccomp {
    fn default() -> Self {
        Self { allowed: runtime_or_localhost(), localhost_profiles: anything(), required: yes(), annotations: no() }
    }
}

/// AppArmor profiles that containers run under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppArmor {
    /// Types of profiles that the pod and its containers may set: RuntimeDefault, Localhost, Unconfined, * for
    /// all, or $name. If unset: RuntimeDefault and Localhost.
    #[serde(default = "runtime_or_localhost")]
    #[schemars(length(max = 8))]
    #[x_kube(validation = ("self.all(x, x in ['RuntimeDefault', 'Localhost', 'Unconfined', '*'] || x.startsWith('$'))",
        "must be RuntimeDefault, Localhost, Unconfined, * or $name (not runtime/default)"))]
    pub allowed: Vec<Text>,
    /// Allowed profiles of type Localhost; * for all, or $name. If unset: all.
    #[serde(default = "anything")]
    #[schemars(length(max = 64))]
    pub localhost_profiles: Vec<Text>,
}

impl Default for AppArmor {
    fn default() -> Self {
        Self { allowed: runtime_or_localhost(), localhost_profiles: anything() }
    }
}

fn runtime_or_localhost() -> Vec<Text> {
    vec!["RuntimeDefault".into(), "Localhost".into()]
}

/// SELinux options that the pod and its containers may set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SeLinux {
    /// Types that may be set; * for all, or $name. An empty list allows none. If unset: the types that the latest Pod
    /// Security Standards allow.
    #[serde(default = "confining_types")]
    #[schemars(length(max = 64))]
    pub types: Vec<Text>,
    /// Users that may be set; * for all, or $name. If unset or empty: none.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub users: Vec<Text>,
    /// Roles that may be set; * for all, or $name. If unset or empty: none.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub roles: Vec<Text>,
    /// Levels that may be set, such as s0:c123,c456; * for all, or $name. An empty list allows none. If unset:
    /// all.
    #[serde(default = "anything")]
    #[schemars(length(max = 64))]
    pub levels: Vec<Text>,
    /// Whether the pod or each container must set each option whose list is neither empty nor *. true, false or
    /// $name. If unset: false.
    #[serde(default = "no")]
    pub required: Flag,
}

impl Default for SeLinux {
    fn default() -> Self {
        Self { types: confining_types(), users: vec![], roles: vec![], levels: anything(), required: no() }
    }
}

fn confining_types() -> Vec<Text> {
    standard::se_linux_types(standard::Version::Latest)
}

/// Sysctls that pods may set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sysctls {
    /// Names of sysctls that pods may set; a trailing * matches any suffix; * for all, or $name. An empty list
    /// allows none. If unset: the safe sysctls of the latest Pod Security Standards.
    #[serde(default = "safe_sysctls")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = ("self.all(x, x.matches('^[^*]*[*]?$'))", "* is allowed only at the end of a name"))]
    pub allowed: Vec<Text>,
    /// Names of sysctls that pods may not set, even if they are in allowed; a trailing * matches any suffix, or
    /// $name. If unset or empty: none.
    #[serde(default)]
    #[schemars(length(max = 64))]
    #[x_kube(validation = ("self.all(x, x.matches('^[^*]*[*]?$'))", "* is allowed only at the end of a name"))]
    pub forbidden: Vec<Text>,
}

impl Default for Sysctls {
    fn default() -> Self {
        Self { allowed: safe_sysctls(), forbidden: vec![] }
    }
}

fn safe_sysctls() -> Vec<Text> {
    standard::sysctls(standard::Version::Latest)
}

fn anything() -> Vec<Text> {
    vec!["*".into()]
}

fn yes() -> Flag {
    Flag::Constant(true)
}

fn no() -> Flag {
    Flag::Constant(false)
}
