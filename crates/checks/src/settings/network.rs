//! `spec.network`.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{
    Kind::{Allowance, Texts},
    Setting, at, setting,
};
use crate::{Flag, Text};

/// Restrictions on objects that publish services. They are evaluated at the stage in enforcement.objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Network {
    /// Hosts that Ingresses may have in rules and tls, and HTTPRoutes, GRPCRoutes and TLSRoutes in hostnames: a host name;
    /// *. and a domain for the hosts below it, at any depth; * for all, or $name. A rule or route without a host is
    /// denied. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 253)))]
    pub allowed_hosts: Option<Vec<Text>>,
    /// Whether Ingresses may have a defaultBackend, which receives requests for all hosts that no rule has. true, false
    /// or $name. If unset: false if allowedHosts restricts hosts, otherwise true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_default_backend: Option<Flag>,
}

/// The settings of this group, in the order in which messages name them.
pub(super) static SETTINGS: &[Setting] = &[
    setting("network.allowedHosts", Texts(at!(network.allowed_hosts))),
    setting("network.allowDefaultBackend", Allowance(at!(network.allow_default_backend))),
];
