//! # networkEndpoints
//!
//! Endpoints and EndpointSlices are the addresses behind a Service. Controllers write them for the pods that a Service
//! selects. A tenant that writes them itself can make an Ingress controller or a load balancer send requests to addresses
//! that the tenant cannot reach, such as pods of other tenants
//! ([CVE-2021-25740](https://github.com/kubernetes/kubernetes/issues/103675)).
//!
//! A tenant can also change labels and ports of EndpointSlices that controllers wrote, so that another Service has their
//! addresses, or no controller removes addresses that other pods get later. Such an update is denied as well.
//!
//! Set `network.allowServicesWithoutSelector: false` too: if a Service loses its selector, its addresses remain. Tenants
//! should not have permission to update `pods/status`: controllers copy the addresses of a pod from its status.
//!
//! The check does not evaluate requests of the control plane: service accounts in `kube-system`, and
//! `system:kube-controller-manager`. List other controllers that write Endpoints in `exemptions.users`.
//!
//! ## If your object was denied
//!
//! Remove the addresses, and give the Service a selector.

use super::kinds::{ENDPOINT_SLICE, ENDPOINTS};
use crate::{ObjectCheck, ObjectRule};

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "networkEndpoints",
    title: "Endpoints that users write",
    settings: &["network.allowEndpoints"],
    kinds: &[ENDPOINTS, ENDPOINT_SLICE],
    fields: &["subsets", "endpoints", "ports", "metadata.labels"],
    exempt: Some(super::by_control_plane!()),
    fixtures: include_str!("network_endpoints.yaml"),
    compile: |settings, cx| {
        let allowed = settings.network.allow_endpoints.as_ref()?;
        let violated = |list: &str| format!("variables.object.?{list}.orValue([]).size() > 0");
        let mut rule = ObjectRule::default();
        // Each subset has an address: the API server rejects others.
        if let Some(violated) = cx.unless("spec.network.allowEndpoints", allowed, &violated("subsets")) {
            rule.finding(&[ENDPOINTS], violated, "'subsets has addresses, must be empty'");
        }
        if let Some(violated) = cx.unless("spec.network.allowEndpoints", allowed, &violated("endpoints")) {
            rule.finding(&[ENDPOINT_SLICE], violated, "'endpoints has addresses, must be empty'");
        }
        // By another label, an EndpointSlice that a controller wrote is of another Service, or no controller removes
        // addresses that pods of other tenants get later.
        rule.reads = vec!["variables.object.metadata.?labels", "variables.object.?ports"];
        rule.unless_empty()
    },
};
