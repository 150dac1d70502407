//! # networkLoadBalancers
//!
//! A Service of the type `LoadBalancer` gets an address from a controller, which its class selects. A load balancer
//! accepts clients of all networks unless `loadBalancerSourceRanges` names some.
//!
//! ## If your object was denied
//!
//! Set `spec.loadBalancerClass` to a class that the message lists, and each element of `spec.loadBalancerSourceRanges` to a
//! part of a network that it lists.

use super::kinds::SERVICE;
use crate::{Meaning, ObjectCheck, ObjectResource, ObjectRule, settings::any, shared::cidrs::Cidrs};

const SERVICES: &[ObjectResource] = &[SERVICE];
const IS_BALANCED: &str = "variables.object.?spec.?type.orValue('') == 'LoadBalancer'";
/// The most networks that are evaluated.
const MOST: usize = 128;

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "networkLoadBalancers",
    title: "Classes and clients of load balancers",
    settings: &["network.allowedLoadBalancerClasses", "network.allowedLoadBalancerSourceRanges"],
    kinds: SERVICES,
    fields: &["spec.loadBalancerClass", "spec.loadBalancerSourceRanges"],
    exempt: None,
    fixtures: include_str!("network_load_balancers.yaml"),
    compile: |settings, cx| {
        let network = &settings.network;
        let mut rule = ObjectRule::default();
        if let Some(classes) = network.allowed_load_balancer_classes.as_ref().filter(|classes| !any(classes)) {
            let allowed = cx.texts("spec.network.allowedLoadBalancerClasses", classes, Meaning::Word);
            let bad = format!(
                "[string(variables.object.?spec.?loadBalancerClass.orValue(''))].filter(c, {IS_BALANCED} && !(c in {})) \
                 .map(c, c == '' ? '(unset)' : c)",
                allowed.cel()
            );
            rule.forbid(SERVICES, ("spec.loadBalancerClass", "classes"), &bad, &allowed.says_unset());
        }
        if let Some(cidrs) = network.allowed_load_balancer_source_ranges.as_ref().filter(|cidrs| !any(cidrs)) {
            let allowed = Cidrs::lower(cx, "spec.network.allowedLoadBalancerSourceRanges", cidrs);
            let found = "variables.object.?spec.?loadBalancerSourceRanges.orValue([])";
            rule.limit(SERVICES, "spec.loadBalancerSourceRanges", found, MOST);
            rule.finding(
                SERVICES,
                format!("{IS_BALANCED} && {found}.size() == 0"),
                format!(
                    "'spec.loadBalancerSourceRanges is unset, which means all networks, allowed: ' + {}",
                    allowed.says()
                ),
            );
            let bad =
                format!("{found}.map(r, string(r)).filter(r, {IS_BALANCED} && !({}))", allowed.contain_network("r"));
            rule.forbid(SERVICES, ("spec.loadBalancerSourceRanges", "networks"), &bad, &allowed.says());
        }
        rule.unless_empty()
    },
};
