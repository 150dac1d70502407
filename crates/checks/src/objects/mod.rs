//! The checks of objects other than pods and workloads.
//!
//! To add a check: write its file and its fixtures, list it in [`ALL`] and give its setting a field and a row in a
//! group of [`settings`](crate::settings).

use crate::ObjectCheck;

pub mod access_bindings;
pub mod access_connect;
pub mod access_roles;
pub mod access_tokens;
mod classes;
mod kinds;
pub mod metadata;
pub mod network_annotations;
pub mod network_classes;
pub mod network_endpoints;
pub mod network_external_addresses;
pub mod network_gateways;
pub mod network_hosts;
pub mod network_load_balancers;
pub mod network_node_ports;
pub mod network_policies;
pub mod network_services;
pub mod storage_claims;
pub mod storage_snapshots;

/// Requests of the control plane: CEL of type bool. Both spellings of the controllers' identity depend on a flag of
/// kube-controller-manager (`--use-service-account-credentials`).
macro_rules! by_control_plane {
    () => {
        "request.userInfo.username == 'system:kube-controller-manager' \
         || 'system:serviceaccounts:kube-system' in request.userInfo.?groups.orValue([])"
    };
}
use by_control_plane;

/// The annotation in which kubectl records the last applied manifest.
const BY_KUBECTL: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Every check, in the order in which violations are reported.
pub static ALL: &[&ObjectCheck] = &[
    &network_hosts::CHECK,
    &network_classes::CHECK,
    &network_gateways::CHECK,
    &network_services::CHECK,
    &network_external_addresses::CHECK,
    &network_load_balancers::CHECK,
    &network_node_ports::CHECK,
    &network_endpoints::CHECK,
    &network_policies::CHECK,
    &network_annotations::CHECK,
    &storage_claims::CHECK,
    &storage_snapshots::CHECK,
    &access_bindings::CHECK,
    &access_roles::CHECK,
    &access_tokens::CHECK,
    &access_connect::CHECK,
    &metadata::CHECK,
];
