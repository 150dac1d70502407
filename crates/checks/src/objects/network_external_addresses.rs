//! # networkExternalAddresses
//!
//! Each node sends packets for the external addresses of a Service to its pods. With any address in `externalIPs`, a tenant
//! receives the traffic of other tenants and of the platform to that address
//! ([CVE-2020-8554](https://github.com/kubernetes/kubernetes/issues/97076)). `loadBalancerIP` asks for an address of a load
//! balancer.
//!
//! The status of a Service also has addresses. Tenants should not have permission to update `services/status`.
//!
//! ## If your object was denied
//!
//! Remove `spec.externalIPs` and `spec.loadBalancerIP`, or use addresses in a network that the message lists.

use super::kinds::SERVICE;
use crate::{ObjectCheck, ObjectResource, ObjectRule, settings::any, shared::cidrs::Cidrs};

const SERVICES: &[ObjectResource] = &[SERVICE];
/// The most addresses that are evaluated.
const MOST: usize = 64;

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "networkExternalAddresses",
    title: "External addresses of Services",
    settings: &["network.allowedExternalIPs"],
    kinds: SERVICES,
    fields: &["spec.externalIPs", "spec.loadBalancerIP"],
    exempt: None,
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
        rule.unless_empty()
    },
};
