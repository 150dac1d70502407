//! All checks, and the settings of a profile that they read.
//!
//! To add a check: write its file and its fixtures, list it in [`ALL`] and give its setting a field in a
//! group below.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::{Check, Flag, Text};

pub mod allow_privilege_escalation;
pub mod capabilities;
pub mod fs_group;
pub mod host_namespaces;
pub mod host_path_volumes;
pub mod host_ports;
mod ids;
pub mod image_registries;
pub mod privileged;
pub mod proc_mount;
mod ranges;
pub mod read_only_root_filesystem;
pub mod restricted_volumes;
pub mod run_as_group;
pub mod run_as_non_root;
pub mod run_as_user;
pub mod seccomp_profile;
pub mod supplemental_groups;

pub use ids::{GroupRule, GroupRules, UserRule, UserRules};
pub use ranges::Range;

/// Every check, in the order in which violations are reported.
pub static ALL: &[&Check] = &[
    &privileged::CHECK,
    &host_namespaces::CHECK,
    &allow_privilege_escalation::CHECK,
    &capabilities::CHECK,
    &run_as_non_root::CHECK,
    &run_as_user::CHECK,
    &run_as_group::CHECK,
    &fs_group::CHECK,
    &supplemental_groups::CHECK,
    &seccomp_profile::CHECK,
    &proc_mount::CHECK,
    &read_only_root_filesystem::CHECK,
    &host_ports::CHECK,
    &restricted_volumes::CHECK,
    &host_path_volumes::CHECK,
    &image_registries::CHECK,
];

/// The settings of all checks, in the groups of a profile's `spec`. A check whose setting is `None` is off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Settings {
    /// `spec.users`
    pub users: Users,
    /// `spec.privileges`
    pub privileges: Privileges,
    /// `spec.host`
    pub host: Host,
    /// `spec.volumes`
    pub volumes: Volumes,
    /// `spec.images`
    pub images: Images,
}

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
    /// Whether the pod or each container must set runAsNonRoot, so that the kubelet refuses to start an
    /// image as root. true, false or $name. If absent: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_run_as_non_root: Option<Flag>,
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
    /// Seccomp profiles that containers run under. If absent: RuntimeDefault or any Localhost profile, and
    /// one of them must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<seccomp_profile::Seccomp>,
    /// Whether each container must have a read-only root filesystem. true, false or $name. If absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_root_filesystem: Option<Flag>,
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
}

/// Images that pods may run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Images {
    /// Registries, or paths in them, that images may come from: host[:port][/path], compared by path segment
    /// after docker.io and library/ are filled in; * for all, or $name. Holds for containers and for image
    /// volumes. If absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = ("self.all(x, x == '*' || (!x.endsWith('/') && !x.contains('://') && !x.contains(' ')))",
        "a registry is host[:port][/path], without a scheme and without a slash at its end"))]
    pub allowed_registries: Option<Vec<Text>>,
}

impl Settings {
    /// What an absent setting means: what the Restricted level of the Pod Security Standards asks for. What
    /// the standard does not know is not restricted.
    pub fn restricted() -> Self {
        Self {
            users: Users {
                run_as_user: Some(UserRules { rule: UserRule::MustRunAsNonRoot, ranges: vec![] }),
                require_run_as_non_root: Some(true.into()),
                ..Users::default()
            },
            privileges: Privileges {
                privileged: Some(false.into()),
                allow_privilege_escalation: Some(false.into()),
                capabilities: Some(capabilities::Capabilities::default()),
                proc_mount: Some(vec!["Default".into()]),
                seccomp: Some(seccomp_profile::Seccomp::default()),
                read_only_root_filesystem: None,
            },
            host: Host {
                network: Some(false.into()),
                pid: Some(false.into()),
                ipc: Some(false.into()),
                ports: Some(vec![]),
            },
            volumes: Volumes {
                allowed: Some(restricted_volumes::RESTRICTED.iter().map(|&kind| kind.into()).collect()),
                host_paths: Some(vec![]),
            },
            images: Images::default(),
        }
    }

    /// These settings, with those of `seed` where they say nothing.
    #[must_use]
    pub fn or(self, seed: Self) -> Self {
        // Destructured without `..`, so that a new setting fails to compile here instead of losing its seed.
        let Users { run_as_user, run_as_group, fs_group, supplemental_groups, require_run_as_non_root } = self.users;
        let Privileges {
            privileged,
            allow_privilege_escalation,
            capabilities,
            proc_mount,
            seccomp,
            read_only_root_filesystem,
        } = self.privileges;
        let Host { network, pid, ipc, ports } = self.host;
        let Volumes { allowed, host_paths } = self.volumes;
        let Images { allowed_registries } = self.images;
        Self {
            users: Users {
                run_as_user: run_as_user.or(seed.users.run_as_user),
                run_as_group: run_as_group.or(seed.users.run_as_group),
                fs_group: fs_group.or(seed.users.fs_group),
                supplemental_groups: supplemental_groups.or(seed.users.supplemental_groups),
                require_run_as_non_root: require_run_as_non_root.or(seed.users.require_run_as_non_root),
            },
            privileges: Privileges {
                privileged: privileged.or(seed.privileges.privileged),
                allow_privilege_escalation: allow_privilege_escalation.or(seed.privileges.allow_privilege_escalation),
                capabilities: capabilities.or(seed.privileges.capabilities),
                proc_mount: proc_mount.or(seed.privileges.proc_mount),
                seccomp: seccomp.or(seed.privileges.seccomp),
                read_only_root_filesystem: read_only_root_filesystem.or(seed.privileges.read_only_root_filesystem),
            },
            host: Host {
                network: network.or(seed.host.network),
                pid: pid.or(seed.host.pid),
                ipc: ipc.or(seed.host.ipc),
                ports: ports.or(seed.host.ports),
            },
            volumes: Volumes {
                allowed: allowed.or(seed.volumes.allowed),
                host_paths: host_paths.or(seed.volumes.host_paths),
            },
            images: Images { allowed_registries: allowed_registries.or(seed.images.allowed_registries) },
        }
    }
}

/// Whether a list of texts says `*`: anything.
fn any(texts: &[Text]) -> bool {
    texts.iter().any(|text| text.0 == "*")
}
