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
    /// Whether containers may be privileged. true, false or $name. If absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privileged: Option<Flag>,
    /// Whether a process may gain more privileges than its parent, for example through a setuid binary. If
    /// false, each container must say allowPrivilegeEscalation: false. true, false or $name. If absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_privilege_escalation: Option<Flag>,
    /// Linux capabilities that containers may add and must drop. If absent: all must be dropped, and
    /// NET_BIND_SERVICE may be added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// Allowed values of procMount: Default, Unmasked, $name. If absent: Default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4))]
    #[x_kube(validation = ("self.all(x, x in ['Default', 'Unmasked', '*'] || x.startsWith('$'))",
        "an allowed procMount is Default, Unmasked, * or $name (not DefaultProcMount)"))]
    pub proc_mount: Option<Vec<Text>>,
    /// Whether a pod in a user namespace of its own (hostUsers: false) may use any procMount. true, false or
    /// $name. If absent: as in baseline; true for Baseline from v1.35 on, and false for Restricted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmasked_in_user_namespaces: Option<Flag>,
    /// Seccomp profiles that containers run under. If absent: RuntimeDefault or any Localhost profile, and
    /// one of them must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<Seccomp>,
    /// AppArmor profiles that containers run under. If absent: RuntimeDefault, any Localhost profile, or none set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_armor: Option<AppArmor>,
    /// SELinux options that the pod and its containers may set. If absent: the types that confine a container,
    /// any level, and neither user nor role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub se_linux: Option<SeLinux>,
    /// Sysctls that pods may set. If absent: those that the Pod Security Standards call safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sysctls: Option<Sysctls>,
    /// Whether containers may be HostProcess containers of a Windows node. true, false or $name. If absent:
    /// false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows_host_process: Option<Flag>,
    /// What is asked of pods for Windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<WindowsRule>,
    /// Whether each container must have a read-only root filesystem. true, false or $name. If absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_root_filesystem: Option<Flag>,
    /// Whether the containers of a pod may share one process namespace, in which each sees the processes of the
    /// others, and their files below /proc. true, false or $name. If absent: true.
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
/// Exempt: a pod with os.name windows need not say what the API server does not let it say
/// (allowPrivilegeEscalation, capabilities to drop, a seccomp profile, supplementalGroupsPolicy). Check: it must, so that no pod for
/// Windows is admitted where these are demanded. If absent: as in baseline; Exempt from v1.25 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WindowsRule {
    /// It need not.
    Exempt,
    /// It must, like any pod.
    Check,
}

/// Linux capabilities that containers may add and must drop, by their names without CAP_.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Capabilities {
    /// Capabilities that containers may add; * for all, or $name. An empty list allows none. If absent:
    /// NET_BIND_SERVICE.
    #[serde(default = "default_add")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = ("self.all(x, !x.startsWith('CAP_'))", "capabilities are written without CAP_"))]
    pub allowed_add: Vec<Text>,
    /// Capabilities that each container must drop, or $name. ALL stands for every capability. An empty list
    /// demands nothing. If absent: ALL.
    #[serde(default = "default_drop")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = ("self.all(x, !x.startsWith('CAP_'))", "capabilities are written without CAP_"))]
    pub required_drop: Vec<Text>,
    /// Capabilities that are added to containers which neither add any nor drop one of these, whatever
    /// mutation.defaults says; containers may add them, too. If absent or empty: none.
    #[serde(default)]
    #[schemars(length(max = 64))]
    #[x_kube(validation = ("self.all(x, !x.startsWith('CAP_') && x != '*')",
        "capabilities are written without CAP_, and * is none to add"))]
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
    /// Allowed types: RuntimeDefault, Localhost, Unconfined, * for all, or $name. If absent: RuntimeDefault and
    /// Localhost.
    #[serde(default = "runtime_or_localhost")]
    #[schemars(length(min = 1, max = 8))]
    #[x_kube(validation = ("self.all(x, x in ['RuntimeDefault', 'Localhost', 'Unconfined', '*'] || x.startsWith('$'))",
        "a type of seccomp profile is RuntimeDefault, Localhost, Unconfined, * or $name (not runtime/default)"))]
    pub allowed: Vec<Text>,
    /// Profiles that type Localhost may name, relative to the kubelet's profile directory; * for all, or
    /// $name. If absent: all.
    #[serde(default = "anything")]
    #[schemars(length(max = 64))]
    pub localhost_profiles: Vec<Text>,
    /// Whether the pod or each container must set a profile. true, false or $name. If absent: true.
    #[serde(default = "yes")]
    pub required: Flag,
    /// Whether the annotations by which profiles were asked for before Kubernetes 1.19 are judged, too. No
    /// version that is still maintained reads them. true, false or $name. If absent: false.
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
    /// all, or $name. If absent: RuntimeDefault and Localhost.
    #[serde(default = "runtime_or_localhost")]
    #[schemars(length(max = 8))]
    #[x_kube(validation = ("self.all(x, x in ['RuntimeDefault', 'Localhost', 'Unconfined', '*'] || x.startsWith('$'))",
        "a type of AppArmor profile is RuntimeDefault, Localhost, Unconfined, * or $name (not runtime/default)"))]
    pub allowed: Vec<Text>,
    /// Profiles that type Localhost may name; * for all, or $name. If absent: all.
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
    /// Types that may be set; * for all, or $name. An empty list allows none. If absent: those that the latest Pod
    /// Security Standards allow.
    #[serde(default = "confining_types")]
    #[schemars(length(max = 64))]
    pub types: Vec<Text>,
    /// Users that may be set; * for all, or $name. If absent or empty: none.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub users: Vec<Text>,
    /// Roles that may be set; * for all, or $name. If absent or empty: none.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub roles: Vec<Text>,
    /// Levels that may be set, such as s0:c123,c456; * for all, or $name. An empty list allows none. If absent:
    /// all.
    #[serde(default = "anything")]
    #[schemars(length(max = 64))]
    pub levels: Vec<Text>,
    /// Whether each part whose list is neither empty nor * must be set by the pod or by each container. true,
    /// false or $name. If absent: false.
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
    /// Names of sysctls that pods may set, and no others; a trailing * stands for any rest; * for all, or $name.
    /// An empty list allows none. If absent: those that the latest Pod Security Standards call safe.
    #[serde(default = "safe_sysctls")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = ("self.all(x, x.matches('^[^*]*[*]?$'))", "* stands only at the end of a name"))]
    pub allowed: Vec<Text>,
    /// Names of sysctls that pods may not set, though they are allowed; a trailing * stands for any rest, or
    /// $name. If absent or empty: none.
    #[serde(default)]
    #[schemars(length(max = 64))]
    #[x_kube(validation = ("self.all(x, x.matches('^[^*]*[*]?$'))", "* stands only at the end of a name"))]
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
