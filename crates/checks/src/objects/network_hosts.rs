//! The hosts that tenants may publish.
//!
//! An Ingress controller serves all Ingresses of a cluster at one address. A tenant that can name any host receives
//! requests for hosts of other tenants and of the platform, with their cookies. A rule without a host, and the default
//! backend, receive requests for all hosts that no other rule names. The same holds for routes of the Gateway API.
//!
//! Set `spec.rules[*].host` and `spec.tls[*].hosts` of an Ingress, and `spec.hostnames` of a route, to hosts that the
//! profile allows, and remove `spec.defaultBackend`.

use crate::{
    Flag, Lowering, Meaning, ObjectCheck, ObjectFinding, ObjectResource, ObjectRule,
    settings::any,
    texts::{Patterns, Wildcard},
};

/// Ingresses.
const INGRESS: ObjectResource =
    ObjectResource { group: "networking.k8s.io", versions: &["v1"], kind: "Ingress", resource: "ingresses" };
/// The routes of the Gateway API with host names. In all these versions they have the same field.
const ROUTES: [ObjectResource; 3] = [
    route("HTTPRoute", "httproutes", &["v1", "v1beta1"]),
    route("GRPCRoute", "grpcroutes", &["v1", "v1alpha2"]),
    route("TLSRoute", "tlsroutes", &["v1", "v1alpha3", "v1alpha2"]),
];

const fn route(kind: &'static str, resource: &'static str, versions: &'static [&'static str]) -> ObjectResource {
    ObjectResource { group: "gateway.networking.k8s.io", versions, kind, resource }
}

/// The most rules, the most elements of `tls`, and the most hosts in each of them that are evaluated.
const MOST: [usize; 3] = [256, 64, 128];

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "networkHosts",
    title: "Hosts of Ingresses and routes",
    settings: &["network.allowedHosts", "network.allowDefaultBackend"],
    kinds: &[INGRESS, ROUTES[0], ROUTES[1], ROUTES[2]],
    fields: &["spec.defaultBackend", "spec.hostnames", "spec.rules[*].host", "spec.tls[*].hosts"],
    fixtures: include_str!("network_hosts.yaml"),
    compile: |settings, cx| {
        let mut rule = ObjectRule::default();
        let hosts = settings.network.allowed_hosts.as_ref().filter(|hosts| !any(hosts));
        let backend = hosts.is_some().then_some(Flag::Constant(false));
        if let Some(allowed) = settings.network.allow_default_backend.clone().or(backend) {
            rule.findings.extend(default_backend(&allowed, cx));
        }
        if let Some(hosts) = hosts {
            let allowed = cx.patterns("spec.network.allowedHosts", hosts, Meaning::Host, Wildcard::Host);
            ingress(&allowed, &mut rule);
            ROUTES.into_iter().for_each(|of| hostnames(of, &allowed, &mut rule));
        }
        (!rule.findings.is_empty()).then_some(rule)
    },
};

fn default_backend(allowed: &Flag, cx: &mut Lowering<'_>) -> Option<ObjectFinding> {
    let violated = "variables.object.?spec.?defaultBackend.hasValue()";
    let violated = cx.unless("spec.network.allowDefaultBackend", allowed, violated)?;
    let says = "'spec.defaultBackend receives requests for all other hosts, must be unset'".to_owned();
    Some(finding(violated, says))
}

fn finding(violated: String, says: String) -> ObjectFinding {
    ObjectFinding { of: INGRESS, violated, says }
}

fn ingress(allowed: &Patterns, rule: &mut ObjectRule) {
    let says = allowed.says();
    let rules = "variables.object.?spec.?rules.orValue([])";
    let tls = "variables.object.?spec.?tls.orValue([])";
    let [most_rules, most_tls, most_hosts] = MOST;
    rule.limits.extend([
        finding(
            format!("{rules}.size() > {most_rules}"),
            format!("'spec.rules must have at most {most_rules} elements'"),
        ),
        finding(format!("{tls}.size() > {most_tls}"), format!("'spec.tls must have at most {most_tls} elements'")),
        finding(
            format!("{tls}.size() <= {most_tls} && {tls}.exists(t, t.?hosts.orValue([]).size() > {most_hosts})"),
            format!("'spec.tls[*].hosts must have at most {most_hosts} elements'"),
        ),
    ]);
    let is_other = format!("!({})", allowed.matches("h"));
    let bad_rules = format!("{rules}.map(r, r.?host.orValue('') != '', string(r.host)).filter(h, {is_other})");
    let bad_tls = format!("t.?hosts.orValue([]).map(h, string(h)).filter(h, {is_other})");
    rule.findings.extend([
        finding(
            format!("{rules}.exists(r, r.?host.orValue('') == '')"),
            format!("'spec.rules[*].host is unset, which means all hosts, allowed: ' + {says}"),
        ),
        finding(
            format!("{bad_rules}.size() > 0"),
            format!("'spec.rules[*].host: forbidden hosts: ' + {bad_rules}.join(', ') + ', allowed: ' + {says}"),
        ),
        finding(
            format!("{tls}.exists(t, t.?hosts.orValue([]).size() == 0)"),
            format!("'spec.tls[*].hosts is unset, which means all hosts, allowed: ' + {says}"),
        ),
        finding(
            format!("{tls}.exists(t, {bad_tls}.size() > 0)"),
            format!(
                "'spec.tls[*].hosts: forbidden hosts: ' + {tls}.map(t, {bad_tls}.join(', ')).filter(h, h != '').join(', ') \
                 + ', allowed: ' + {says}"
            ),
        ),
    ]);
}

/// The host names of a route. The API accepts at most 16.
fn hostnames(of: ObjectResource, allowed: &Patterns, rule: &mut ObjectRule) {
    let says = allowed.says();
    let hosts = "variables.object.?spec.?hostnames.orValue([])";
    let bad = format!("{hosts}.map(h, string(h)).filter(h, !({}))", allowed.matches("h"));
    let most = MOST[2];
    rule.limits.push(ObjectFinding {
        of,
        violated: format!("{hosts}.size() > {most}"),
        says: format!("'spec.hostnames must have at most {most} elements'"),
    });
    rule.findings.extend([
        ObjectFinding {
            of,
            violated: format!("{hosts}.size() == 0"),
            says: format!("'spec.hostnames is unset, which means all hosts, allowed: ' + {says}"),
        },
        ObjectFinding {
            of,
            violated: format!("{bad}.size() > 0"),
            says: format!("'spec.hostnames: forbidden hosts: ' + {bad}.join(', ') + ', allowed: ' + {says}"),
        },
    ]);
}
