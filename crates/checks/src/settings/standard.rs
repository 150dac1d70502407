//! The Pod Security Standards: their levels and versions, and their lists.
//!
//! Changes from version to version are data here: each addition specifies the minor version of Kubernetes in which it
//! was made. The source is `k8s.io/pod-security-admission/policy`.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Text;

/// A level of the Pod Security Standards.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, strum::Display,
)]
pub enum Level {
    /// Nothing is restricted.
    Privileged,
    /// Known privilege escalations are prevented.
    Baseline,
    /// Current hardening practice.
    #[default]
    Restricted,
}

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

/// Additions, each with the first minor version that has it.
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

/// The capabilities that the Baseline level of a version allows to add.
pub(crate) fn baseline_capabilities(version: Version) -> Vec<Text> {
    until(BASELINE_CAPABILITIES, version)
}

/// The kinds of volumes that the Restricted level allows.
pub(crate) const RESTRICTED_VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
