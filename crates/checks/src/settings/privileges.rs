//! `spec.privileges`.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Kind::{Allowance, Demand, Other, Relaxation, Texts},
    Setting, at, setting,
};
use crate::{Flag, Text, catalogue};

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
    pub capabilities: Option<catalogue::capabilities::Capabilities>,
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
    pub seccomp: Option<catalogue::seccomp_profile::Seccomp>,
    /// AppArmor profiles that containers run under. If absent: RuntimeDefault, any Localhost profile, or none set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_armor: Option<catalogue::app_armor_profile::AppArmor>,
    /// SELinux options that the pod and its containers may set. If absent: the types that confine a container,
    /// any level, and neither user nor role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub se_linux: Option<catalogue::se_linux_options::SeLinux>,
    /// Sysctls that pods may set. If absent: those that the Pod Security Standards call safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sysctls: Option<catalogue::sysctls::Sysctls>,
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
