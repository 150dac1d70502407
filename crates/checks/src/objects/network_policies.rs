//! # networkPolicies
//!
//! NetworkPolicies only add permissions: a pod that a policy selects accepts all connections that at least one policy
//! allows. A platform that closes the network of a namespace by a policy therefore does not restrict the namespace as long
//! as its tenant can create another policy that opens it.
//!
//! Peers with a `podSelector` and without a `namespaceSelector` are pods in the namespace of the policy, and are always
//! allowed. A `namespaceSelector` is allowed if it requires the label `kubernetes.io/metadata.name` to be an allowed name,
//! or the name of the policy's namespace. The API server sets this label, and no user can change it. A rule without peers
//! means all peers. Rules are evaluated whether or not `policyTypes` lists their direction.
//!
//! Many network plugins also compare `ipBlock` with the addresses of pods: if you restrict namespaces, restrict networks too.
//!
//! ## If your object was denied
//!
//! List peers in each rule of `spec.ingress` and `spec.egress`. Set `ipBlock.cidr` to a part of a network that the message
//! lists, without leading zeros and not as an IPv4-mapped IPv6 address. Name forbidden networks in `ipBlock.except`. Select
//! another namespace by the label `kubernetes.io/metadata.name`, in `matchLabels` or with the operator `In`.

use super::kinds::NETWORK_POLICY;
use crate::{
    Meaning, ObjectCheck, ObjectResource, ObjectRule, Patterns, Text, cel, settings::any, shared::cidrs::Cidrs,
    texts::Wildcard,
};

const POLICIES: &[ObjectResource] = &[NETWORK_POLICY];
/// The label that the API server sets to the name of a namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The most rules of a direction that are evaluated, and the most peers, `matchExpressions` and values of these in all of
/// them.
const MOST: usize = 128;
/// The most elements of `except` in all rules of a direction.
const MOST_EXCEPT: usize = 256;

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "networkPolicies",
    title: "Peers of NetworkPolicies",
    settings: &[
        "network.allowedPolicyIngressCIDRs",
        "network.allowedPolicyEgressCIDRs",
        "network.deniedPolicyCIDRs",
        "network.allowedPolicyNamespaces",
    ],
    kinds: POLICIES,
    fields: &[
        "spec.ingress[*].from",
        "spec.ingress[*].from[*].ipBlock",
        "spec.ingress[*].from[*].namespaceSelector",
        "spec.egress[*].to",
        "spec.egress[*].to[*].ipBlock",
        "spec.egress[*].to[*].namespaceSelector",
    ],
    exempt: None,
    fixtures: include_str!("network_policies.yaml"),
    compile: |settings, cx| {
        let network = &settings.network;
        let mut rule = ObjectRule::default();
        let restricted = |texts: &Option<Vec<Text>>| texts.clone().filter(|texts| !any(texts));
        let namespaces = restricted(&network.allowed_policy_namespaces)
            .map(|names| cx.patterns("spec.network.allowedPolicyNamespaces", &names, Meaning::Pattern, Wildcard::End));
        let denied = network.denied_policy_cidrs.as_ref().filter(|cidrs| !cidrs.is_empty());
        let denied = denied.map(|cidrs| Cidrs::lower(cx, "spec.network.deniedPolicyCIDRs", cidrs));
        let [ingress, egress] = [
            ("spec.network.allowedPolicyIngressCIDRs", &network.allowed_policy_ingress_cidrs),
            ("spec.network.allowedPolicyEgressCIDRs", &network.allowed_policy_egress_cidrs),
        ]
        .map(|(path, cidrs)| restricted(cidrs).map(|cidrs| Cidrs::lower(cx, path, &cidrs)));
        for (direction, allowed) in [(INGRESS, ingress), (EGRESS, egress)] {
            direction.restrict(allowed.as_ref(), denied.as_ref(), namespaces.as_ref(), &mut rule);
        }
        rule.unless_empty()
    },
};

/// The rules of a direction.
struct Direction {
    rules: &'static str,
    peers: &'static str,
    /// The peers of a rule without a list of peers.
    all: &'static str,
}

const INGRESS: Direction = Direction { rules: "ingress", peers: "from", all: "all sources" };
const EGRESS: Direction = Direction { rules: "egress", peers: "to", all: "all destinations" };

impl Direction {
    fn restrict(
        &self,
        allowed: Option<&Cidrs>,
        denied: Option<&Cidrs>,
        namespaces: Option<&Patterns>,
        rule: &mut ObjectRule,
    ) {
        if allowed.is_none() && denied.is_none() && namespaces.is_none() {
            return;
        }
        let Self { rules: direction, peers, all } = self;
        let rules = format!("variables.object.?spec.?{direction}.orValue([])");
        let peers_of_rule = format!("r.?{peers}.orValue([])");
        let [at_rules, at_peers] = [format!("spec.{direction}"), format!("spec.{direction}[*].{peers}")];
        rule.limit(POLICIES, &at_rules, &rules, MOST);
        rule.limit_if(POLICIES, &at_peers, MOST, |most| {
            format!("{rules}.size() <= {MOST} && {rules}.map(r, {peers_of_rule}.size()).sum() > {most}")
        });
        let few = format!("{rules}.size() <= {MOST} && {rules}.map(r, {peers_of_rule}.size()).sum() <= {MOST}");
        rule.finding(
            POLICIES,
            format!("{rules}.exists(r, {peers_of_rule}.size() == 0)"),
            cel::quote(&format!("{at_peers} is unset, which means {all}, must list peers")),
        );
        // The values of the field `ipBlock.cidr` that satisfy a condition on the peer `p`, of all rules.
        let forbidden = |condition: &str| {
            let of_rule = format!(
                "{peers_of_rule}.filter(p, p.?ipBlock.?cidr.orValue('') != '' && {condition}).map(p, string(p.ipBlock.cidr))"
            );
            let violated = format!("{rules}.exists(r, {of_rule}.size() > 0)");
            (violated, format!("{rules}.map(r, {of_rule}.join(', ')).filter(c, c != '').join(', ')"))
        };
        let begin = cel::quote(&format!("{at_peers}[*].ipBlock.cidr: forbidden networks: "));
        if let Some(allowed) = allowed {
            let (violated, found) = forbidden(&format!("!({})", allowed.contain_network("string(p.ipBlock.cidr)")));
            rule.finding(POLICIES, violated, format!("{begin} + {found} + ', allowed: ' + {}", allowed.says()));
        }
        if let Some(denied) = denied {
            let except =
                format!("{rules}.map(r, {peers_of_rule}.map(p, p.?ipBlock.?except.orValue([]).size()).sum()).sum()");
            rule.limit_if(POLICIES, &format!("{at_peers}[*].ipBlock.except"), MOST_EXCEPT, |most| {
                format!("{few} && {except} > {most}")
            });
            let overlaps = denied.overlap_network("string(p.ipBlock.cidr)", "p.ipBlock.?except.orValue([])");
            let (violated, found) = forbidden(&format!("({overlaps})"));
            rule.finding(POLICIES, violated, format!("{begin} + {found} + ', must except: ' + {}", denied.says()));
        }
        if let Some(namespaces) = namespaces {
            let expressions = "p.?namespaceSelector.?matchExpressions.orValue([])";
            let at = format!("{at_peers}[*].namespaceSelector.matchExpressions");
            // The sum of a number for each peer.
            let sum = |of_peer: &str| format!("{rules}.map(r, {peers_of_rule}.map(p, {of_peer}).sum()).sum()");
            let count = sum(&format!("{expressions}.size()"));
            rule.limit_if(POLICIES, &at, MOST, |most| format!("{few} && {count} > {most}"));
            let values = sum(&format!("{expressions}.map(e, e.?values.orValue([]).size()).sum()"));
            rule.limit_if(POLICIES, &format!("{at}[*].values"), MOST, |most| {
                format!("{few} && {count} <= {MOST} && {values} > {most}")
            });
            let is_allowed = |name: &str| format!("({name} == request.namespace || {})", namespaces.matches(name));
            let label = format!("p.namespaceSelector.?matchLabels[?{}]", cel::quote(NAME_LABEL));
            let selects = format!(
                "({label}.hasValue() && [string({label}.orValue(''))].exists(v, {})) || {expressions}.exists(e, \
                 e.?key.orValue('') == {} && e.?operator.orValue('') == 'In' && e.?values.orValue([]).size() > 0 \
                 && e.?values.orValue([]).all(v, [string(v)].exists(v, {})))",
                is_allowed("v"),
                cel::quote(NAME_LABEL),
                is_allowed("v"),
            );
            rule.finding(
                POLICIES,
                format!("{rules}.exists(r, {peers_of_rule}.exists(p, p.?namespaceSelector.hasValue() && !({selects})))"),
                format!(
                    "{} + {}",
                    cel::quote(&format!(
                        "{at_peers}[*].namespaceSelector must require the label {NAME_LABEL} to be an allowed name, allowed: "
                    )),
                    namespaces.says()
                ),
            );
        }
    }
}
