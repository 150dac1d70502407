//! The Pod Security Standards, level by level and version by version, as settings.
//!
//! What changed from version to version is data here: each addition says since which minor version of
//! Kubernetes it holds. The source is `k8s.io/pod-security-admission/policy`.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Host, Privileges, Settings, UserRule, UserRules, Users, Volumes, WindowsRule};
use crate::{
    Level, Text,
    catalogue::{
        app_armor_profile::AppArmor, capabilities::Capabilities, restricted_volumes, se_linux_options::SeLinux,
        seccomp_profile::Seccomp, sysctls::Sysctls,
    },
};

/// The latest minor version of Kubernetes whose standards are known.
pub const LATEST: u8 = 37;

/// A version of the Pod Security Standards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// The latest that is known.
    #[default]
    Latest,
    /// That of Kubernetes 1 with this minor version, at most [`LATEST`].
    Minor(u8),
}

impl Version {
    /// The minor version of Kubernetes.
    pub fn minor(self) -> u8 {
        match self {
            Self::Latest => LATEST,
            Self::Minor(minor) => minor.min(LATEST),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest"),
            Self::Minor(minor) => write!(f, "v1.{minor}"),
        }
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let minor = text.strip_prefix("v1.").and_then(|minor| minor.parse().ok());
        match minor {
            _ if text == "latest" => Ok(Self::Latest),
            Some(minor) if minor <= LATEST && text == format!("v1.{minor}") => Ok(Self::Minor(minor)),
            _ => Err(format!("{text:?} is not latest or one of v1.0 to v1.{LATEST}")),
        }
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Version {
    fn schema_name() -> Cow<'static, str> {
        "Version".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "maxLength": 6, "pattern": r"^(latest|v1\.([0-9]|[12][0-9]|3[0-7]))$"})
    }
}

/// What was added since which minor version.
type Since = &'static [(u8, &'static [&'static str])];

const SYSCTLS: Since = &[
    (
        0,
        &[
            "kernel.shm_rmid_forced",
            "net.ipv4.ip_local_port_range",
            "net.ipv4.tcp_syncookies",
            "net.ipv4.ping_group_range",
            "net.ipv4.ip_unprivileged_port_start",
        ],
    ),
    (27, &["net.ipv4.ip_local_reserved_ports"]),
    (
        29,
        &[
            "net.ipv4.tcp_keepalive_time",
            "net.ipv4.tcp_fin_timeout",
            "net.ipv4.tcp_keepalive_intvl",
            "net.ipv4.tcp_keepalive_probes",
        ],
    ),
    (32, &["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]),
    (37, &["net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"]),
];

const SE_LINUX_TYPES: Since =
    &[(0, &["container_t", "container_init_t", "container_kvm_t"]), (31, &["container_engine_t"])];

const BASELINE_CAPABILITIES: Since = &[(
    0,
    &[
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ],
)];

fn until(since: Since, version: Version) -> Vec<Text> {
    since
        .iter()
        .filter(|(minor, _)| *minor <= version.minor())
        .flat_map(|(_, names)| *names)
        .map(|&n| n.into())
        .collect()
}

/// The sysctls that a version calls safe.
pub(crate) fn sysctls(version: Version) -> Vec<Text> {
    until(SYSCTLS, version)
}

/// The SELinux types that a version allows.
pub(crate) fn se_linux_types(version: Version) -> Vec<Text> {
    until(SE_LINUX_TYPES, version)
}

impl Settings {
    /// What absent settings mean: what a level of the Pod Security Standards asks for in a version. What the
    /// level does not know is not restricted.
    pub fn seed(level: Level, version: Version) -> Self {
        if level == Level::Privileged {
            return Self::default();
        }
        let since = |minor: u8| version.minor() >= minor;
        let restricted = |minor: u8| level == Level::Restricted && since(minor);
        Self {
            users: Users {
                run_as_user: restricted(23).then(|| UserRules { rule: UserRule::MustRunAsNonRoot, ranges: vec![] }),
                require_run_as_non_root: restricted(0).then(|| true.into()),
                relax_for_user_namespaces: since(35).then(|| true.into()),
                ..Users::default()
            },
            privileges: Privileges {
                privileged: Some(false.into()),
                allow_privilege_escalation: restricted(8).then(|| false.into()),
                capabilities: Some(if restricted(22) {
                    Capabilities::default()
                } else {
                    let allowed_add = until(BASELINE_CAPABILITIES, version);
                    Capabilities { allowed_add, required_drop: vec![], default_add: vec![] }
                }),
                proc_mount: Some(vec!["Default".into()]),
                unmasked_in_user_namespaces: (level == Level::Baseline && since(35)).then(|| true.into()),
                seccomp: Some(Seccomp {
                    required: restricted(19).into(),
                    annotations: (!since(19)).into(),
                    ..Seccomp::default()
                }),
                app_armor: Some(AppArmor::default()),
                se_linux: Some(SeLinux { types: se_linux_types(version), ..SeLinux::default() }),
                sysctls: Some(Sysctls { allowed: sysctls(version), forbidden: vec![] }),
                windows_host_process: Some(false.into()),
                windows: since(25).then_some(WindowsRule::Exempt),
                ..Privileges::default()
            },
            host: Host {
                network: Some(false.into()),
                pid: Some(false.into()),
                ipc: Some(false.into()),
                ports: Some(vec![]),
                probe_hosts: since(34).then(|| false.into()),
                ..Host::default()
            },
            volumes: Volumes {
                allowed: restricted(0)
                    .then(|| restricted_volumes::RESTRICTED.iter().map(|&kind| kind.into()).collect()),
                host_paths: Some(vec![]),
                ..Volumes::default()
            },
            ..Self::default()
        }
    }
}
