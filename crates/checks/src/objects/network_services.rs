//! # networkServices
//!
//! The type of a Service decides what it publishes. A `NodePort` opens a port on every node, past Ingress controllers and
//! their logs. A `LoadBalancer` also takes an address and costs money. An `ExternalName` makes the name of the Service an
//! alias of any other name: an Ingress controller that follows it reaches hosts that tenants cannot reach, and clients of
//! the Service reach any host of the tenant's choice.
//!
//! A Service without a selector sends requests to the addresses in Endpoints or EndpointSlices that users write.
//!
//! ## If your object was denied
//!
//! Set `spec.type` to a type that the message lists, `spec.externalName` to a host that it lists, and `spec.selector` to
//! labels of your pods.

use super::kinds::SERVICE;
use crate::{Meaning, ObjectCheck, ObjectResource, ObjectRule, settings::any, texts::Wildcard};

const SERVICES: &[ObjectResource] = &[SERVICE];
const TYPE: &str = "variables.object.?spec.?type.orValue('ClusterIP')";

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "networkServices",
    title: "Types and targets of Services",
    settings: &["network.allowedServiceTypes", "network.allowedExternalNames", "network.allowServicesWithoutSelector"],
    kinds: SERVICES,
    fields: &["spec.type", "spec.externalName", "spec.selector"],
    exempt: None,
    fixtures: include_str!("network_services.yaml"),
    compile: |settings, cx| {
        let network = &settings.network;
        let mut rule = ObjectRule::default();
        if let Some(types) = network.allowed_service_types.as_ref().filter(|types| !any(types)) {
            let allowed = cx.texts("spec.network.allowedServiceTypes", types, Meaning::Word);
            rule.finding(
                SERVICES,
                format!("!({TYPE} in {})", allowed.cel()),
                format!("'spec.type is ' + {TYPE} + ', allowed: ' + {}", allowed.says()),
            );
        }
        if let Some(names) = network.allowed_external_names.as_ref().filter(|names| !any(names)) {
            let allowed = cx.patterns("spec.network.allowedExternalNames", names, Meaning::Host, Wildcard::Host);
            let bad = format!(
                "[string(variables.object.?spec.?externalName.orValue(''))].filter(h, {TYPE} == 'ExternalName' && !({}))",
                allowed.matches("h")
            );
            rule.forbid(SERVICES, ("spec.externalName", "hosts"), &bad, &allowed.says());
        }
        let without = format!("{TYPE} != 'ExternalName' && variables.object.?spec.?selector.orValue({{}}).size() == 0");
        let allowed = network.allow_services_without_selector.as_ref();
        if let Some(violated) =
            allowed.and_then(|allowed| cx.unless("spec.network.allowServicesWithoutSelector", allowed, &without))
        {
            rule.finding(SERVICES, violated, "'spec.selector is unset, must select pods'");
        }
        rule.unless_empty()
    },
};
