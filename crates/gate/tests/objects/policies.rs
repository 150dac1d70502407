//! NetworkPolicies: no admitted policy opens another network.

use std::{net::Ipv4Addr, sync::LazyLock};

use palisade_gate::{Decision, ValidationRequest, Validator};
use proptest::{collection::vec, prelude::*, sample, test_runner::Config};

use super::*;

fn validator(network: &Json) -> Validator {
    let compiled = compile(&profile(&json!({"network": network}))).unwrap();
    Validator::new(&compiled.bundle.objects.unwrap().policy).unwrap_or_else(|found| panic!("{found:?}"))
}

fn with_egress(to: &Json) -> Json {
    object("networking.k8s.io/v1", "NetworkPolicy", &json!({"spec": {"podSelector": {}, "egress": [{"to": to}]}}))
}

/// The message of the denial, without the validation of the API server; empty if it is admitted.
fn denial(policy: &Validator, object: &Json) -> String {
    let created = ValidationRequest { namespace: "tool-weather", ..ValidationRequest::create("NetworkPolicy", object) };
    match policy.evaluate(&created).unwrap_or_else(|error| panic!("{error}\n{object}")) {
        Decision::Admit => String::new(),
        Decision::Deny { message, .. } => message,
    }
}

/// Notations that some API servers accept in this field, besides the usual one.
#[test]
fn unusual_notations_of_networks_are_compared_or_denied() {
    let allowed = validator(&json!({"allowedPolicyEgressCIDRs": ["10.0.0.0/8", "2001:db8::/32"]}));
    let denied = validator(&json!({"deniedPolicyCIDRs": ["10.0.0.0/8", "2001:db8::/32"]}));
    // The network, and whether it is in these networks, and outside of them.
    for (cidr, is_inside, is_outside) in [
        ("10.1.2.3/16", true, false),
        ("10.1.2.3/7", false, false),
        ("2001:DB8:0:0::/64", true, false),
        ("2001:db8::ffff/31", false, false),
        ("192.0.2.7/24", false, true),
        ("2001:db9::/32", false, true),
        // Not CIDRs in CEL.
        ("::ffff:10.0.0.0/104", false, false),
        ("::ffff:192.0.2.0/120", false, false),
        ("010.0.0.0/8", false, false),
        ("192.000.002.000/24", false, false),
        ("10.0.0.0/08", false, false),
        ("10.0.0.0", false, false),
        ("", true, true),
    ] {
        let object = with_egress(&json!([{"ipBlock": {"cidr": cidr}}]));
        for (policy, is_admitted) in [(&allowed, is_inside), (&denied, is_outside)] {
            let found = denial(policy, &object);
            assert_eq!(found.is_empty(), is_admitted, "{cidr}: {found}");
        }
    }
    for (cidr, except, is_admitted) in [
        ("::/0", json!(["10.0.0.0/8", "2001:db8::/32"]), true),
        ("::/0", json!(["10.0.0.0/8"]), false),
        ("8.0.0.0/6", json!(["10.9.9.9/8"]), true),
        ("8.0.0.0/6", json!(["::ffff:10.0.0.0/104"]), false),
        ("8.0.0.0/6", json!(["10.0.0.0/9", "10.128.0.0/9"]), false),
        ("8.0.0.0/6", json!([]), false),
    ] {
        let found = denial(&denied, &with_egress(&json!([{"ipBlock": {"cidr": cidr, "except": except}}])));
        assert_eq!(found.is_empty(), is_admitted, "{cidr} {except}: {found}");
    }
}

/// A network with an address and a prefix, also with bits beyond it.
type Network = (u32, u8);

fn contains((address, length): Network, other: u32) -> bool {
    let mask = u32::MAX.checked_shl(u32::from(32 - length)).unwrap_or(0);
    address & mask == other & mask
}

fn written((address, length): Network) -> String {
    format!("{}/{length}", Ipv4Addr::from(address))
}

const ALLOWED: [Network; 2] = [(0x0a00_0000, 8), (0xc000_0200, 24)];
const DENIED: [Network; 2] = [(0x0a0a_0000, 16), (0xc000_0280, 26)];

static POLICY: LazyLock<Validator> = LazyLock::new(|| {
    validator(&json!({
        "allowedPolicyEgressCIDRs": ALLOWED.map(written), "deniedPolicyCIDRs": DENIED.map(written),
        "allowedPolicyNamespaces": ["ingress"],
    }))
});

/// Networks at the borders of these.
fn network() -> impl Strategy<Value = Network> {
    let begins = vec![0x0a00_0000, 0x0a0a_0000, 0x0a0b_0000, 0xc000_0200, 0xc000_0280, 0xc000_02c0, 0];
    (sample::select(begins), sample::select(vec![0_u8, 1, 7, 8, 9, 15, 16, 17, 24, 25, 26, 27, 32]), 0_u32..4)
        .prop_map(|(address, length, beyond)| (address | beyond, length))
}

/// The name that a term of a selector requires, and the term.
fn requirement() -> impl Strategy<Value = Json> {
    const KEY: &str = "kubernetes.io/metadata.name";
    sample::select(vec![
        json!({"key": KEY, "operator": "In", "values": ["ingress"]}),
        json!({"key": KEY, "operator": "In", "values": ["ingress", "other"]}),
        json!({"key": KEY, "operator": "In", "values": ["tool-weather"]}),
        json!({"key": KEY, "operator": "NotIn", "values": ["ingress"]}),
        json!({"key": KEY, "operator": "Exists"}),
        json!({"key": "team", "operator": "In", "values": ["ingress"]}),
        json!({"key": KEY, "operator": "DoesNotExist"}),
    ])
}

/// Whether a namespace with this name, and other labels of the tenant's choice, can match the selector.
fn can_match(selector: &Json, name: &str) -> bool {
    let key = "kubernetes.io/metadata.name";
    let by_label = selector["matchLabels"].get(key).is_none_or(|value| value == name);
    by_label
        && selector["matchExpressions"].as_array().into_iter().flatten().all(|one| {
            let has = one["values"].as_array().is_some_and(|values| values.contains(&json!(name)));
            one["key"] != key
                || match one["operator"].as_str() {
                    Some("In") => has,
                    Some("NotIn") => !has,
                    Some("DoesNotExist") => false,
                    _ => true,
                }
        })
}

proptest! {
    #![proptest_config(Config { cases: 1024, ..Config::default() })]

    #[test]
    fn an_admitted_network_policy_opens_only_allowed_networks(
        blocks in vec((network(), vec(network(), 0..3)), 1..3), addresses in vec(any::<u32>(), 4),
    ) {
        let peers: Vec<_> = blocks
            .iter()
            .map(|(block, except)| {
                let except: Vec<_> = except.iter().copied().map(written).collect();
                json!({"ipBlock": {"cidr": written(*block), "except": except}})
            })
            .collect();
        if !denial(&POLICY, &with_egress(&json!(peers))).is_empty() {
            return Ok(());
        }
        let borders = ALLOWED.into_iter().chain(DENIED).chain(blocks.iter().map(|(block, _)| *block));
        let borders = borders.flat_map(|(address, _)| [address, address.wrapping_sub(1), address | 0xff]);
        for address in borders.chain(addresses) {
            let is_open = |(block, except): &(Network, Vec<Network>)| {
                contains(*block, address) && !except.iter().any(|one| contains(*one, address))
            };
            if blocks.iter().any(is_open) {
                prop_assert!(ALLOWED.iter().any(|one| contains(*one, address)), "{:?} {blocks:?}", Ipv4Addr::from(address));
                prop_assert!(!DENIED.iter().any(|one| contains(*one, address)), "{:?} {blocks:?}", Ipv4Addr::from(address));
            }
        }
    }

    #[test]
    fn an_admitted_network_policy_opens_only_allowed_namespaces(
        label in proptest::option::of(sample::select(vec!["ingress", "other", "tool-weather"])),
        requirements in vec(requirement(), 0..3), with_pods in any::<bool>(),
    ) {
        let labels = label.map_or(json!({}), |name| json!({"kubernetes.io/metadata.name": name}));
        let selector = json!({"matchLabels": labels, "matchExpressions": requirements});
        let mut peer = json!({"namespaceSelector": selector});
        if with_pods {
            peer["podSelector"] = json!({});
        }
        if denial(&POLICY, &with_egress(&json!([peer]))).is_empty() {
            prop_assert!(!can_match(&selector, "other") && !can_match(&selector, "third"), "{selector}");
        }
    }
}

/// The longest lists that are evaluated, with the longest settings, are within the API server's budget.
#[test]
fn the_largest_network_policies_are_evaluated_in_full() {
    let all = |of: &dyn Fn(usize) -> String| (0..64).map(of).collect::<Vec<_>>();
    let policy = validator(&json!({
        "allowedPolicyIngressCIDRs": all(&|n| format!("2001:db8:{n}::/48")),
        "allowedPolicyEgressCIDRs": all(&|n| format!("2001:db8:{n}::/48")),
        "deniedPolicyCIDRs": (0..16).map(|n| format!("fd00:{n}::/32")).collect::<Vec<_>>(),
        "allowedPolicyNamespaces": all(&|n| format!("{n:02}-{}*", "x".repeat(40))),
    }));
    let except: Vec<_> = (0..4).map(|n| format!("fd01:{n}::/32")).collect();
    let key = "kubernetes.io/metadata.name";
    let value = "y".repeat(63);
    let expressions: Vec<_> = (0..2).map(|_| json!({"key": key, "operator": "In", "values": [value]})).collect();
    let blocks: Vec<_> = (0..64).map(|_| json!({"ipBlock": {"cidr": "fd00::/8", "except": except}})).collect();
    let selectors: Vec<_> = (0..64).map(|_| json!({"namespaceSelector": {"matchExpressions": expressions}})).collect();
    let peers = [blocks, selectors].concat();
    let object = |peers: &[Json]| {
        let spec = json!({"podSelector": {}, "ingress": [{"from": peers}], "egress": [{"to": peers}]});
        object("networking.k8s.io/v1", "NetworkPolicy", &json!({"spec": spec}))
    };
    let found = denial(&policy, &object(&peers));
    assert!(found.starts_with("6 violations of ToolSecurityProfile test: [networkPolicies]"), "{found}");
    let found = denial(&policy, &object(&[peers, vec![json!({"podSelector": {}})]].concat()));
    assert!(found.contains("spec.egress[*].to must have at most 128 elements"), "{found}");
}

/// The API server drops this field, unless a feature gate is on.
#[test]
fn data_sources_in_other_namespaces_are_denied() {
    let compiled = compile(&profile(&json!({"storage": {"allowedDataSourceNamespaces": ["images-*"]}}))).unwrap();
    let policy = Validator::new(&compiled.bundle.objects.unwrap().policy).unwrap();
    let denial = |source: &Json| {
        let spec = json!({"accessModes": ["ReadWriteOnce"], "dataSourceRef": source});
        let object = object("v1", "PersistentVolumeClaim", &json!({"spec": spec}));
        let created = ValidationRequest::create("PersistentVolumeClaim", &object);
        match policy.evaluate(&ValidationRequest { namespace: "tool-weather", ..created }).unwrap() {
            Decision::Admit => String::new(),
            Decision::Deny { message, .. } => message,
        }
    };
    let source = |namespace: &str| json!({"kind": "PersistentVolumeClaim", "name": "data", "namespace": namespace});
    for namespace in ["images-a", "tool-weather", ""] {
        assert_eq!(denial(&source(namespace)), "", "{namespace}");
    }
    assert_eq!(denial(&json!({"kind": "PersistentVolumeClaim", "name": "data"})), "");
    assert!(
        denial(&source("tool-other")).contains(
            "[storageClaims] PersistentVolumeClaim: spec.dataSourceRef.namespace: forbidden namespaces: tool-other, allowed: images-*"
        ),
        "{}",
        denial(&source("tool-other"))
    );
}
