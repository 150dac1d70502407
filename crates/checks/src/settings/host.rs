//! `spec.host`.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{
    Kind::{Allowance, Other},
    Range, Setting, at, setting,
};
use crate::Flag;

/// Use of the node's namespaces and ports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Host {
    /// Whether pods may use the node's network namespace. true, false or $name. If unset: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Flag>,
    /// Whether pods may use the node's process namespace. true, false or $name. If unset: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Flag>,
    /// Whether pods may use the node's IPC namespace. true, false or $name. If unset: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipc: Option<Flag>,
    /// Ranges of host ports that containers may use (hostPort). If unset or empty: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub ports: Option<Vec<Range>>,
    /// Whether probes and lifecycle handlers may set the field host; the kubelet calls that host from the node. true,
    /// false or $name. If unset: as in baseline; false for Baseline and Restricted from v1.34 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_hosts: Option<Flag>,
    /// Whether pods may set hostAliases: names with addresses that take precedence over DNS in their containers. true,
    /// false or $name. If unset: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aliases: Option<Flag>,
}

/// The settings of this group, in the order in which messages name them.
pub(super) static SETTINGS: &[Setting] = &[
    setting("host.network", Allowance(at!(host.network))),
    setting("host.pid", Allowance(at!(host.pid))),
    setting("host.ipc", Allowance(at!(host.ipc))),
    setting("host.probeHosts", Allowance(at!(host.probe_hosts))),
    setting("host.ports", Other(&at!(host.ports))),
    setting("host.aliases", Allowance(at!(host.aliases))),
];
