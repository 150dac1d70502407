//! # networkExternalAddresses
//!
//! Each node sends packets for the external addresses of a Service to its pods. With any address in `externalIPs`, a tenant
//! receives the traffic of other tenants and of the platform to that address
//! ([CVE-2020-8554](https://github.com/kubernetes/kubernetes/issues/97076)). `loadBalancerIP` asks for an address of a load
//! balancer.
//!
//! Nodes also send packets for the addresses in the status of a load balancer. The check evaluates updates of
//! `services/status`, except those of the control plane and of the cloud controller manager. Other controllers of load
//! balancers can write addresses in the allowed networks: list the others in `exemptions.users`.
//!
//! ## If your object was denied
//!
//! Remove `spec.externalIPs` and `spec.loadBalancerIP`, or use addresses in a network that the message lists. Do not write
//! `status.loadBalancer`.

use super::{
    by_control_plane,
    kinds::{SERVICE, SERVICE_STATUS},
};
use crate::{ObjectCheck, ObjectResource, ObjectRule, settings::any, shared::cidrs::Cidrs};

const SERVICES: &[ObjectResource] = &[SERVICE];
const STATUS: &[ObjectResource] = &[SERVICE_STATUS];
/// The most addresses that are evaluated.
const MOST: usize = 64;

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "networkExternalAddresses",
    title: "External addresses of Services",
    settings: &["network.allowedExternalIPs"],
    kinds: &[SERVICE, SERVICE_STATUS],
    fields: &["spec.externalIPs", "spec.loadBalancerIP", "status.loadBalancer.ingress[*].ip"],
    exempt: Some(concat!(
        "request.?subResource.orValue('') == 'status' && (request.userInfo.username == 'system:cloud-controller-manager' || ",
        by_control_plane!(),
        ")"
    )),
    fixtures: include_str!("network_external_addresses.yaml"),
    compile: |settings, cx| {
        let cidrs = settings.network.allowed_external_ips.as_ref().filter(|cidrs| !any(cidrs))?;
        let allowed = Cidrs::lower(cx, "spec.network.allowedExternalIPs", cidrs);
        let mut rule = ObjectRule::default();
        let external = "variables.object.?spec.?externalIPs.orValue([])";
        rule.limit(SERVICES, "spec.externalIPs", external, MOST);
        let bad = format!("{external}.map(a, string(a)).filter(a, !({}))", allowed.contain_address("a"));
        rule.forbid(SERVICES, ("spec.externalIPs", "addresses"), &bad, &allowed.says());
        let bad = format!(
            "[string(variables.object.?spec.?loadBalancerIP.orValue(''))].filter(a, a != '' && !({}))",
            allowed.contain_address("a")
        );
        rule.forbid(SERVICES, ("spec.loadBalancerIP", "addresses"), &bad, &allowed.says());
        // Nodes also send packets for these addresses to the pods (`newBaseServiceInfo` in Kubernetes
        // `pkg/proxy/serviceport.go`).
        let ingress = "variables.object.?status.?loadBalancer.?ingress.orValue([])";
        rule.limit(STATUS, "status.loadBalancer.ingress", ingress, MOST);
        let bad = format!(
            "{ingress}.map(i, i.?ip.orValue('') != '', string(i.ip)).filter(a, !({}))",
            allowed.contain_address("a")
        );
        rule.forbid(STATUS, ("status.loadBalancer.ingress[*].ip", "addresses"), &bad, &allowed.says());
        rule.unless_empty()
    },
};
