//! All checks, and the settings of a profile that they read.
//!
//! To add a check: write its file and its fixtures, list it in [`ALL`] and give its setting a field in a
//! group: below, in `identity.rs` or in `scheduling.rs`.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::{Check, Flag, Lowering, Resolve, Text, Values};

pub mod allow_privilege_escalation;
pub mod app_armor_profile;
pub mod automount_service_account_token;
pub mod capabilities;
pub mod csi_drivers;
pub mod flex_volumes;
pub mod fs_group;
pub mod host_aliases;
pub mod host_namespaces;
pub mod host_path_volumes;
pub mod host_ports;
pub mod host_probes_and_host_lifecycle;
mod identity;
mod ids;
pub mod image_registries;
mod implied;
pub mod mount_propagation;
pub mod mutation;
pub mod node_name;
pub mod node_selector;
pub mod priority_classes;
pub mod privileged;
pub mod proc_mount;
mod profiles;
mod ranges;
pub mod read_only_root_filesystem;
pub mod redirect;
pub mod restricted_volumes;
pub mod run_as_group;
pub mod run_as_non_root;
pub mod run_as_user;
pub mod runtime_classes;
pub mod schedulers;
mod scheduling;
pub mod se_linux_options;
pub mod seccomp_profile;
pub mod service_account_tokens;
pub mod service_accounts;
mod settings;
pub mod share_process_namespace;
pub mod standard;
pub mod supplemental_groups;
pub mod supplemental_groups_policy;
pub mod sysctls;
pub mod tolerations;
pub mod windows_host_process;

pub use identity::{Identity, TokenRules};
pub use ids::{GroupRule, GroupRules, UserRule, UserRules};
pub use implied::{Implied, implied};
pub use ranges::Range;
pub use scheduling::{AllowedToleration, NodeLabel, Scheduling, TaintEffect, TolerationOperator};
pub use settings::Settings;

/// Every check, in the order in which violations are reported.
pub static ALL: &[&Check] = &[
    &privileged::CHECK,
    &windows_host_process::CHECK,
    &host_namespaces::CHECK,
    &allow_privilege_escalation::CHECK,
    &capabilities::CHECK,
    &run_as_non_root::CHECK,
    &run_as_user::CHECK,
    &run_as_group::CHECK,
    &fs_group::CHECK,
    &supplemental_groups::CHECK,
    &supplemental_groups_policy::CHECK,
    &seccomp_profile::CHECK,
    &app_armor_profile::CHECK,
    &se_linux_options::CHECK,
    &proc_mount::CHECK,
    &sysctls::CHECK,
    &read_only_root_filesystem::CHECK,
    &share_process_namespace::CHECK,
    &host_ports::CHECK,
    &host_probes_and_host_lifecycle::CHECK,
    &host_aliases::CHECK,
    &restricted_volumes::CHECK,
    &host_path_volumes::CHECK,
    &csi_drivers::CHECK,
    &flex_volumes::CHECK,
    &mount_propagation::CHECK,
    &automount_service_account_token::CHECK,
    &service_account_tokens::CHECK,
    &runtime_classes::CHECK,
    &priority_classes::CHECK,
    &schedulers::CHECK,
    &node_name::CHECK,
    &node_selector::CHECK,
    &tolerations::CHECK,
    &image_registries::CHECK,
    // Last: the pod that is to violate a profile violates this one where it can, so that it names a service account
    // that every namespace has.
    &service_accounts::CHECK,
];

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
    pub supplemental_groups_policy: Option<supplemental_groups_policy::SupplementalGroupsPolicy>,
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
    pub capabilities: Option<capabilities::Capabilities>,
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
    pub seccomp: Option<seccomp_profile::Seccomp>,
    /// AppArmor profiles that containers run under. If absent: RuntimeDefault, any Localhost profile, or none set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_armor: Option<app_armor_profile::AppArmor>,
    /// SELinux options that the pod and its containers may set. If absent: the types that confine a container,
    /// any level, and neither user nor role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub se_linux: Option<se_linux_options::SeLinux>,
    /// Sysctls that pods may set. If absent: those that the Pod Security Standards call safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sysctls: Option<sysctls::Sysctls>,
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

/// Use of the node's namespaces and ports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Host {
    /// Whether pods may use the node's network namespace. true, false or $name. If absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Flag>,
    /// Whether pods may use the node's process namespace. true, false or $name. If absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Flag>,
    /// Whether pods may use the node's IPC namespace. true, false or $name. If absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipc: Option<Flag>,
    /// Ranges of ports of the node that containers may use as hostPort. If absent or empty: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub ports: Option<Vec<Range>>,
    /// Whether probes and lifecycle handlers may name a host, which the kubelet then calls from the node. true,
    /// false or $name. If absent: as in baseline; false for Baseline and Restricted from v1.34 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_hosts: Option<Flag>,
    /// Whether pods may set hostAliases: addresses that names have in their containers, whatever DNS says. true, false
    /// or $name. If absent: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aliases: Option<Flag>,
}

/// Volumes that pods may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Volumes {
    /// Allowed kinds of volumes, by their field in a pod (configMap, emptyDir, ...), * for all, or $name. An
    /// empty list allows none. If absent: configMap, csi, downwardAPI, emptyDir, ephemeral, image,
    /// persistentVolumeClaim, projected and secret. Kinds that Kubernetes adds later are refused unless listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 48))]
    #[x_kube(validation = ("self.all(x, x == '*' || x.matches('^[a-z][A-Za-z]*$') || x.startsWith('$'))",
        "a kind of volume is the name of its field in a pod, such as configMap or cephfs; or * or $name"))]
    pub allowed: Option<Vec<Text>>,
    /// Directories and files of the node that hostPath volumes may use, where that kind is allowed. If absent
    /// or empty: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub host_paths: Option<Vec<host_path_volumes::HostPath>>,
    /// Drivers that csi volumes may use, where that kind is allowed; * for all, or $name. An empty list allows
    /// none. If absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub csi_drivers: Option<Vec<Text>>,
    /// Drivers that flexVolume volumes may use, where that kind is allowed; * for all, or $name. An empty list
    /// allows none. If absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub flex_volumes: Option<Vec<Text>>,
    /// Values of mountPropagation that containers may set in volumeMounts besides None: HostToContainer, Bidirectional,
    /// * for both, or $name. An empty list allows None alone. If absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4))]
    #[x_kube(validation = ("self.all(x, x in ['None', 'HostToContainer', 'Bidirectional', '*'] || x.startsWith('$'))",
        "an allowed mountPropagation is None, HostToContainer, Bidirectional, * or $name"))]
    pub mount_propagation: Option<Vec<Text>>,
    /// Whether a hostPath volume that must be mounted with readOnly: true must be so with all that is mounted below
    /// its path on the node: with recursiveReadOnly: Enabled, which needs a container runtime that knows it. true,
    /// false or $name. If absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recursive_read_only: Option<Flag>,
}

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

/// Images that pods may run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Images {
    /// Registries, or paths in them, that images may come from: host[:port][/path], compared by path segment
    /// after docker.io and library/ are added; * for all, or $name. Holds for containers and for image
    /// volumes. If absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = ("self.all(x, x == '*' || (!x.endsWith('/') && !x.contains('://') && !x.contains(' ')))",
        "a registry is host[:port][/path], without a scheme and without a slash at its end"))]
    pub allowed_registries: Option<Vec<Text>>,
    /// Where images are taken from instead of where a pod says: in each new pod the names of images are changed, of
    /// containers and of image volumes, before anything judges them. Names in pod templates are not. If absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<redirect::Redirect>,
}

/// Whether a list of texts says `*`: anything.
fn any(texts: &[Text]) -> bool {
    texts.iter().any(|text| text.0 == "*")
}

/// Whether a kind of volume is refused in every namespace. Then restrictedVolumes says so; once is enough.
fn kind_refused(settings: &Settings, kind: &str) -> bool {
    let allowed = settings.volumes.allowed.as_deref();
    allowed.is_some_and(|kinds| !any(kinds) && kinds.iter().all(|text| text.0 != kind && !text.0.contains('$')))
}

/// Whether a kind of volume is allowed in a namespace.
fn kind_allowed(settings: &Settings, values: &Values, kind: &str) -> bool {
    let allowed = settings.volumes.allowed.as_ref().map(|kinds| kinds.resolve(values));
    allowed.is_none_or(|kinds| kinds.iter().any(|allowed| allowed == "*" || allowed == kind))
}

/// `violated`, but not by a pod for Windows where such pods are exempt.
fn unless_windows(settings: &Settings, violated: &str) -> String {
    match settings.privileges.windows {
        Some(WindowsRule::Exempt) => format!("variables.spec.?os.?name.orValue('') != 'windows' && {violated}"),
        Some(WindowsRule::Check) | None => violated.to_owned(),
    }
}

/// `violated`, but not by a pod in a user namespace of its own where the flag at `path` frees such pods.
fn unless_user_namespace(cx: &mut Lowering<'_>, path: &str, relax: Option<&Flag>, violated: &str) -> String {
    let of_node = "variables.spec.?hostUsers.orValue(true)";
    match relax.map(|relax| cx.flag(path, relax)) {
        None | Some(Ok(false)) => violated.to_owned(),
        Some(Ok(true)) => format!("{of_node} && {violated}"),
        Some(Err(differs)) => format!("(!{differs} || {of_node}) && {violated}"),
    }
}

/// Whether a pod is in a user namespace of its own, and the flag frees such pods in a namespace.
fn is_relaxed(relax: Option<&Flag>, values: &Values, pod: &Json) -> bool {
    relax.is_some_and(|relax| relax.resolve(values)) && pod["spec"]["hostUsers"] == json!(false)
}
