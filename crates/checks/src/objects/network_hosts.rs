//! # networkHosts
//!
//! An Ingress controller, or a Gateway, serves all tenants at one address. A tenant that can name any host receives
//! requests for hosts of other tenants and of the platform, with their cookies. A rule without a host, and the default
//! backend, receive requests for all hosts that no other rule names. The same holds for routes and listeners of the
//! Gateway API.
//!
//! A listener with the protocol `TCP` or `UDP` has no host names, and is not evaluated.
//!
//! ## If your object was denied
//!
//! Set `spec.rules[*].host` and `spec.tls[*].hosts` of an Ingress, `spec.hostnames` of a route, and
//! `spec.listeners[*].hostname` of a Gateway to hosts that the message lists. Remove `spec.defaultBackend`.

use super::kinds::{EXPERIMENTAL_LISTENER_SET, GATEWAY, GRPC_ROUTE, HTTP_ROUTE, INGRESS, LISTENER_SET, TLS_ROUTE};
use crate::{
    Flag, Lowering, Meaning, ObjectCheck, ObjectResource, ObjectRule,
    settings::any,
    texts::{Patterns, Wildcard},
};

const INGRESSES: &[ObjectResource] = &[INGRESS];
/// The routes with host names.
const ROUTES: &[ObjectResource] = &[HTTP_ROUTE, GRPC_ROUTE, TLS_ROUTE];
const GATEWAYS: &[ObjectResource] = &[GATEWAY, LISTENER_SET, EXPERIMENTAL_LISTENER_SET];

/// The most rules, the most elements of `tls`, and the most hosts in each of them that are evaluated.
const MOST: [usize; 3] = [256, 64, 128];
/// The most host names of a route, and the most listeners. The Gateway API accepts 16 and 64.
const MOST_IN_GATEWAY_API: usize = 64;

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "networkHosts",
    title: "Hosts of Ingresses, routes and Gateways",
    settings: &["network.allowedHosts", "network.allowDefaultBackend"],
    kinds: &[INGRESS, HTTP_ROUTE, GRPC_ROUTE, TLS_ROUTE, GATEWAY, LISTENER_SET, EXPERIMENTAL_LISTENER_SET],
    fields: &[
        "spec.defaultBackend",
        "spec.rules[*].host",
        "spec.tls[*].hosts",
        "spec.hostnames",
        "spec.listeners[*].hostname",
    ],
    exempt: None,
    fixtures: include_str!("network_hosts.yaml"),
    compile: |settings, cx| {
        let mut rule = ObjectRule::default();
        let hosts = settings.network.allowed_hosts.as_ref().filter(|hosts| !any(hosts));
        let backend = hosts.is_some().then_some(Flag::Constant(false));
        if let Some(allowed) = settings.network.allow_default_backend.clone().or(backend) {
            default_backend(&allowed, cx, &mut rule);
        }
        if let Some(hosts) = hosts {
            let allowed = cx.patterns("spec.network.allowedHosts", hosts, Meaning::Host, Wildcard::Host);
            ingress(&allowed, &mut rule);
            routes(&allowed, &mut rule);
            listeners(&allowed, &mut rule);
        }
        rule.unless_empty()
    },
};

fn default_backend(allowed: &Flag, cx: &mut Lowering<'_>, rule: &mut ObjectRule) {
    let violated = "variables.object.?spec.?defaultBackend.hasValue()";
    if let Some(violated) = cx.unless("spec.network.allowDefaultBackend", allowed, violated) {
        let says = "'spec.defaultBackend receives requests for all other hosts, must be unset'";
        rule.finding(INGRESSES, violated, says);
    }
}

fn ingress(allowed: &Patterns, rule: &mut ObjectRule) {
    let says = allowed.says();
    let rules = "variables.object.?spec.?rules.orValue([])";
    let tls = "variables.object.?spec.?tls.orValue([])";
    let [most_rules, most_tls, most_hosts] = MOST;
    rule.limit(INGRESSES, "spec.rules", rules, most_rules);
    rule.limit(INGRESSES, "spec.tls", tls, most_tls);
    rule.limit_if(INGRESSES, "spec.tls[*].hosts", most_hosts, |most| {
        format!("{tls}.size() <= {most_tls} && {tls}.exists(t, t.?hosts.orValue([]).size() > {most})")
    });
    let is_other = format!("!({})", allowed.matches("h"));
    let bad_rules = format!("{rules}.map(r, r.?host.orValue('') != '', string(r.host)).filter(h, {is_other})");
    let bad_tls = format!("t.?hosts.orValue([]).map(h, string(h)).filter(h, {is_other})");
    rule.finding(
        INGRESSES,
        format!("{rules}.exists(r, r.?host.orValue('') == '')"),
        format!("'spec.rules[*].host is unset, which means all hosts, allowed: ' + {says}"),
    );
    rule.forbid(INGRESSES, ("spec.rules[*].host", "hosts"), &bad_rules, &says);
    rule.finding(
        INGRESSES,
        format!("{tls}.exists(t, t.?hosts.orValue([]).size() == 0)"),
        format!("'spec.tls[*].hosts is unset, which means all hosts, allowed: ' + {says}"),
    );
    rule.finding(
        INGRESSES,
        format!("{tls}.exists(t, {bad_tls}.size() > 0)"),
        format!(
            "'spec.tls[*].hosts: forbidden hosts: ' + {tls}.map(t, {bad_tls}.join(', ')).filter(h, h != '').join(', ') \
             + ', allowed: ' + {says}"
        ),
    );
}

fn routes(allowed: &Patterns, rule: &mut ObjectRule) {
    let says = allowed.says();
    let hosts = "variables.object.?spec.?hostnames.orValue([])";
    rule.limit(ROUTES, "spec.hostnames", hosts, MOST_IN_GATEWAY_API);
    rule.finding(
        ROUTES,
        format!("{hosts}.size() == 0"),
        format!("'spec.hostnames is unset, which means all hosts, allowed: ' + {says}"),
    );
    let bad = format!("{hosts}.map(h, string(h)).filter(h, !({}))", allowed.matches("h"));
    rule.forbid(ROUTES, ("spec.hostnames", "hosts"), &bad, &says);
}

fn listeners(allowed: &Patterns, rule: &mut ObjectRule) {
    let says = allowed.says();
    let listeners = "variables.object.?spec.?listeners.orValue([])";
    rule.limit(GATEWAYS, "spec.listeners", listeners, MOST_IN_GATEWAY_API);
    rule.finding(
        GATEWAYS,
        format!("{listeners}.exists(l, l.?hostname.orValue('') == '' && !(l.?protocol.orValue('') in ['TCP', 'UDP']))"),
        format!("'spec.listeners[*].hostname is unset, which means all hosts, allowed: ' + {says}"),
    );
    let bad = format!(
        "{listeners}.map(l, l.?hostname.orValue('') != '', string(l.hostname)).filter(h, !({}))",
        allowed.matches("h")
    );
    rule.forbid(GATEWAYS, ("spec.listeners[*].hostname", "hosts"), &bad, &says);
}
