//! The match condition of policies for objects, and their probes.

use std::sync::LazyLock;

use palisade_api::{
    ToolSecurityParamsSpec,
    names::{Part, Shape},
};
use palisade_checks::{CREATION, WRITES};
use palisade_compiler::{MAY_VIOLATE, Options, compile_with};
use palisade_gate::{Decision, Judgement, ValidationRequest, Validator};
use proptest::{collection::vec, option, prelude::*, sample, test_runner::Config};

use super::*;

/// Four checks of Ingresses (one with parameters), two of Services (one of them custom), one of NetworkPolicies, two of
/// Widgets, and all of access.
fn spec(excepted: bool) -> Json {
    let custom = |id: &str, group: &str, resource: &str, expression: &str| {
        json!({
            "id": id, "target": "Object", "message": "m", "expression": expression,
            "kinds": [{"group": group, "versions": ["v1"], "resource": resource}],
        })
    };
    let exception = json!({
        "namespaces": ["tool-weather"], "checks": ["serviceTypes", "accessConnect", "accessTokens"], "reason": "r",
        "expires": "2027-01-01T00:00:00Z",
    });
    json!({
        "parameters": [{"name": "tool", "type": "String", "sources": [{"namespaceNameTrimPrefix": "tool-"}]}],
        "network": {
            "allowedHosts": ["$tool.example.org", "*.apps.example.org"], "allowedIngressClasses": ["c0", "c1"],
            "annotations": {"denied": ["example.org/*"], "allowed": ["example.org/a"]},
            "allowedPolicyIngressCIDRs": ["10.0.0.0/8"], "deniedPolicyCIDRs": ["10.1.0.0/16"],
            "allowedPolicyNamespaces": ["ingress"],
        },
        "metadata": {"rules": [{
            "kinds": [{"group": "networking.k8s.io", "versions": ["v1"], "resource": "ingresses"}],
            "labels": [{"key": "team", "values": ["a"]}], "allowedLabels": ["app.kubernetes.io/*"],
        }]},
        "access": {
            "allowRoleWildcards": false, "allowedRoleVerbs": ["get", "list", "$tool"],
            "allowedTokenServiceAccounts": ["$tool-*", "default"], "allowedTokenAudiences": ["vault", "$tool"],
            "maxTokenExpirationSeconds": 3600,
            "allowedConnections": [
                {"resources": ["pods/exec"], "commands": ["ps", "cat /$tool"]},
                {"resources": ["pods/exec", "pods/attach"], "groups": ["oncall", "$tool"]},
                {"resources": ["pods/proxy", "services/proxy"], "ports": ["", "80", "$tool"]},
            ],
        },
        "exemptions": {"users": ["robot"]},
        "exceptions": if excepted { json!([exception]) } else { json!([]) },
        "customChecks": [
            custom("serviceTypes", "", "services", "object.spec.type == 'ClusterIP' // the default"),
            custom("sizes", "example.org", "widgets", "object.spec.size < 3"),
            custom("growth", "example.org", "widgets", "oldObject == null || object.spec.size >= oldObject.spec.size"),
        ],
    })
}

/// Without and with an exception: the policy with and without its match condition, and the parameters.
static ALL: LazyLock<[([Validator; 2], [Json; 2]); 2]> = LazyLock::new(|| {
    [false, true].map(|excepted| (policies(excepted), [false, true].map(|problem| params(excepted, problem))))
});

/// The policy of the profile, with and without its match condition.
fn policies(excepted: bool) -> [Validator; 2] {
    [true, false].map(|fast_path| {
        let compiled = compile_with(&profile(&spec(excepted)), Options { fast_path, ..Options::default() }).unwrap();
        let policy = compiled.bundle.objects.unwrap().policy;
        let conditions = policy.spec.as_ref().unwrap().match_conditions.clone().unwrap_or_default();
        let names: Vec<_> = conditions.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, if fast_path { vec![MAY_VIOLATE] } else { vec![] });
        Validator::new(&policy).unwrap_or_else(|found| panic!("{found:?}"))
    })
}

fn params(excepted: bool, problem: bool) -> Json {
    let mut params = if problem {
        ToolSecurityParamsSpec::denying("a problem")
    } else {
        let namespace = palisade_compiler::Namespace { name: "tool-weather".to_owned(), ..Default::default() };
        compiled(&spec(false)).resolver.params(&namespace)
    };
    if excepted {
        let waived = ["serviceTypes", "accessConnect", "accessTokens"];
        params.exceptions = waived.map(|check| (check.to_owned(), "2027-01-01T00:00:00Z".to_owned())).into();
    }
    json!({"spec": params})
}

/// Hosts that the profile allows, and others.
const HOSTS: [&str; 6] =
    ["weather.example.org", "other.example.org", "a.apps.example.org", "*.apps.example.org", "*", ""];

fn host() -> impl Strategy<Value = Option<&'static str>> {
    option::weighted(0.9, sample::select(&HOSTS[..]))
}

prop_compose! {
    fn ingress()(
        rules in prop_oneof![9 => vec(host(), 0..4), 1 => vec(Just(Some(HOSTS[0])), 30..36)],
        tls in vec(vec(host(), 0..3), 0..3), backend in any::<bool>(), class in 0..3,
        labels in some_of(&[("team", "a"), ("team", "b"), ("app.kubernetes.io/name", "x"), ("other", "x")]),
        annotations in some_of(&[("example.org/a", "1"), ("example.org/b", "1"), ("other", "x")]),
    ) -> Json {
        let rules: Vec<_> = rules.into_iter().map(|host| host.map_or(json!({}), |host| json!({"host": host}))).collect();
        let tls: Vec<_> = tls
            .into_iter()
            .map(|hosts| json!({"hosts": hosts.into_iter().flatten().collect::<Vec<_>>()}))
            .collect();
        let mut spec = json!({"rules": rules, "tls": tls, "ingressClassName": format!("c{class}")});
        if backend {
            spec["defaultBackend"] = json!({"service": {"name": "a", "port": {"number": 80}}});
        }
        let object = object("networking.k8s.io/v1", "Ingress", &json!({"spec": spec}));
        with(&with(&object, "/metadata/labels", labels), "/metadata/annotations", annotations)
    }
}

/// A map with at most one of these keys, or with two in one of sixteen.
fn some_of(pairs: &'static [(&str, &str)]) -> impl Strategy<Value = Json> {
    let most = prop_oneof![15 => Just(1), 1 => Just(2)];
    most.prop_flat_map(move |most| sample::subsequence(pairs, 0..=most))
        .prop_map(|found| Json::Object(found.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect()))
}

fn peer() -> impl Strategy<Value = Json> {
    let named = |name: &str| json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}});
    sample::select(vec![
        json!({"podSelector": {}}),
        json!({"ipBlock": {"cidr": "10.2.0.0/16"}}),
        json!({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}),
        json!({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/17"]}}),
        json!({"ipBlock": {"cidr": "0.0.0.0/0"}}),
        named("ingress"),
        named("other"),
        json!({"namespaceSelector": {}}),
    ])
}

prop_compose! {
    fn network_policy()(
        ingress in vec(vec(peer(), 0..3), 0..3), many in prop_oneof![9 => Just(0_usize), 1 => Just(20)],
    ) -> Json {
        let mut rules: Vec<_> = ingress.into_iter().map(|from| json!({"from": from})).collect();
        rules.extend((0..many).map(|_| json!({"from": [{"podSelector": {}}]})));
        object("networking.k8s.io/v1", "NetworkPolicy", &json!({"spec": {"podSelector": {}, "ingress": rules}}))
    }
}

fn strings(pool: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<String>> {
    vec(sample::select(pool).prop_map(str::to_owned), 0..most)
}

prop_compose! {
    fn role()(
        rules in option::of(vec((strings(&["get", "GET", "list", "*", "bind", "weather"], 4), strings(&["pods", "*/x", "*"], 3)), 0..3)),
    ) -> Json {
        let rules = rules.map(|rules| {
            let rule = |(verbs, resources)| json!({"verbs": verbs, "resources": resources, "apiGroups": [""]});
            rules.into_iter().map(rule).collect::<Vec<_>>()
        });
        object("rbac.authorization.k8s.io/v1", "Role", &json!({"rules": rules.unwrap_or_default()}))
    }
}

prop_compose! {
    fn secret()(
        kind in sample::select(vec!["Opaque", "kubernetes.io/service-account-token"]),
        account in option::of(sample::select(vec!["default", "weather-a", "admin", ""])),
    ) -> Json {
        let secret = object("v1", "Secret", &json!({"type": kind}));
        let annotations = account.map(|account| json!({"kubernetes.io/service-account.name": account}));
        with(&secret, "/metadata/annotations", annotations.unwrap_or_else(|| json!({})))
    }
}

prop_compose! {
    fn token_request()(
        audiences in strings(&["vault", "weather", "", "other"], 3), seconds in option::of(sample::select(vec![600, 3600, 3601])),
        bound in option::of(sample::select(vec!["Pod", "Secret"])),
    ) -> Json {
        let bound = bound.map(|kind| json!({"kind": kind, "name": "a"}));
        let mut spec = json!({"audiences": audiences, "boundObjectRef": bound});
        if let Some(seconds) = seconds {
            spec["expirationSeconds"] = json!(seconds);
        }
        object("authentication.k8s.io/v1", "TokenRequest", &json!({"spec": spec}))
    }
}

prop_compose! {
    /// The request for an object, or a connection.
    fn sent()(
        object in prop_oneof![
            2 => some_object(), 1 => role(), 1 => secret(), 2 => token_request(),
            4 => (
                sample::select(access::connections()),
                strings(&["ps", "cat", "/weather", "cat /weather", "", "sh"], 4),
            ).prop_map(|(of, command)| json!({"apiVersion": "v1", "kind": of.kind, "command": command})),
        ],
        name in sample::select(vec!["default", "weather-a", "admin", "x:80", "https:x:weather", "x:22", "x:", "weather"]),
    ) -> (Json, &'static str) {
        (object, name)
    }
}

fn some_object() -> impl Strategy<Value = Json> {
    prop_oneof![
        3 => ingress(),
        2 => network_policy(),
        1 => sample::select(vec!["ClusterIP", "NodePort"]).prop_map(service),
        1 => (0..5).prop_map(|size| object("example.org/v1", "Widget", &json!({"spec": {"size": size}}))),
    ]
}

proptest! {
    #![proptest_config(Config { cases: 256, ..Config::default() })]

    /// The verdict is that of the full evaluation for each request.
    #[test]
    fn fast_path_of_objects_never_admits_violation(
        (one, name) in sent(), (other, _) in sent(), excepted in any::<bool>(), problem in any::<bool>(),
        user in sample::select(vec!["tenant", "robot", "system:node:a"]),
        group in sample::select(vec!["oncall", "weather", "system:nodes", "other", ""]),
        namespace in sample::select(vec!["tool-weather", "palisade-probe"]),
    ) {
        let ([fast, full], params) = &ALL[usize::from(excepted)];
        let params = &params[usize::from(problem)];
        let kind = one["kind"].as_str().unwrap_or_default();
        let groups = ["system:authenticated", group];
        let mut created = ValidationRequest {
            namespace, user, groups: &groups, params: Some(params), ..ValidationRequest::create(kind, &one)
        };
        let of = palisade_api::objects::ALL.iter().flat_map(|check| check.kinds).find(|of| of.kind == kind);
        if let Some(of) = of.filter(|of| of.operations != WRITES) {
            created = ValidationRequest {
                operation: if of.operations == CREATION { Operation::Create } else { Operation::Connect },
                group: Some(of.group), resource: Some(of.resource), subresource: of.subresource, name: Some(name),
                ..created
            };
        }
        let mut requests = vec![created.clone()];
        if one["kind"] == other["kind"] && created.subresource.is_empty() {
            requests.push(ValidationRequest { operation: Operation::Update, old_object: &other, ..created });
        }
        for request in requests {
            let [fast, full] = [fast, full].map(|policy| policy.judge(&request).map_err(|error| error.to_string()));
            prop_assert_eq!(fast.map(|one| one.decision), full.map(|one| one.decision), "{}", one);
        }
    }
}

/// Complying requests are not evaluated in full.
#[test]
fn complying_objects_leave_early() {
    let ([fast, _], params) = (policies(false), params(false, false));
    let judge = |object: &Json, old: Option<&Json>| -> Judgement {
        let created = ValidationRequest {
            namespace: "tool-weather",
            params: Some(&params),
            ..ValidationRequest::create(object["kind"].as_str().unwrap(), object)
        };
        let request = match old {
            Some(old_object) => ValidationRequest { operation: Operation::Update, old_object, ..created },
            None => created,
        };
        fast.judge(&request).unwrap_or_else(|error| panic!("{error}"))
    };
    let rules = |host: &str, count| {
        let rules = vec![json!({"host": host}); count];
        object("networking.k8s.io/v1", "Ingress", &json!({"spec": {"ingressClassName": "c0", "rules": rules}}))
    };
    let hosts = |host: &str| rules(host, 1);
    let widget = |size: i64| object("example.org/v1", "Widget", &json!({"spec": {"size": size}}));
    assert!(!judge(&hosts("weather.example.org"), None).matched);
    // A list that is longer than the share of each of these checks.
    assert!(!judge(&rules("weather.example.org", 32), None).matched);
    assert!(judge(&rules("weather.example.org", 33), None).matched);
    // A custom check evaluates Services, too.
    assert!(judge(&service("ClusterIP"), None).matched);
    let alone = compiled(&json!({"customChecks": spec(false)["customChecks"]})).bundle.objects.unwrap().policy;
    let alone = Validator::new(&alone).unwrap();
    assert!(!alone.judge(&ValidationRequest::create("Service", &service("ClusterIP"))).unwrap().matched);
    let denied = judge(&hosts("other.example.org"), None);
    assert!(denied.matched && denied.decision != Decision::Admit);
    // Two checks evaluate Widgets, so only updates that neither evaluates leave early.
    assert!(judge(&widget(1), None).matched);
    let finalized = with(&widget(1), "/metadata/finalizers", json!(["example.com/a"]));
    assert!(!judge(&widget(1), Some(&finalized)).matched);
}

/// The tests of several checks share one budget. Objects with the longest lists that they allow, and the longest settings,
/// stay within it and leave early.
#[test]
fn shared_tests_of_the_largest_objects_are_within_the_budget() {
    let all = |of: &dyn Fn(usize) -> String| (0..64).map(of).collect::<Vec<_>>();
    let long = |n: usize| format!("{n:02}-{}", "x".repeat(60));
    let kinds = json!([
        {"group": "networking.k8s.io", "versions": ["v1"], "resource": "ingresses"}, {"versions": ["v1"], "resource": "services"},
        {"group": "networking.k8s.io", "versions": ["v1"], "resource": "networkpolicies"},
    ]);
    let compiled = compiled(&json!({
        "network": {
            "allowedHosts": all(&|n| format!("*.{}.example", long(n))), "allowedIngressClasses": all(&long),
            "annotations": {"denied": all(&|n| format!("{}/*", long(n))), "allowed": all(&|n| format!("a{}/*", long(n)))},
            "allowedExternalIPs": all(&|n| format!("2001:db8:{n}::/48")),
            "allowedLoadBalancerSourceRanges": all(&|n| format!("2001:db8:{n}::/48")),
            "allowedNodePorts": (0..16).map(|n| json!({"min": 30000 + n, "max": 30000 + n})).collect::<Vec<_>>(),
            "allowedPolicyIngressCIDRs": all(&|n| format!("2001:db8:{n}::/48")),
            "deniedPolicyCIDRs": (0..16).map(|n| format!("fd00:{n}::/32")).collect::<Vec<_>>(),
            "allowedPolicyNamespaces": all(&|n| format!("{}*", long(n))),
        },
        "metadata": {"rules": [{
            "kinds": kinds, "labels": [{"key": "team", "values": all(&long)}], "allowedLabels": all(&|n| format!("{n:02}-{}*", "y".repeat(50))),
            "allowedAnnotations": ["b*"],
        }]},
    }));
    let policy = Validator::new(&compiled.bundle.objects.unwrap().policy).unwrap();
    let host = format!("{}.{}.example", "a".repeat(60), long(63));
    let map = |begin: &str| -> Json {
        let keys = (0..32).map(|n| (format!("{begin}{}{n:02}", "y".repeat(58)), json!("z")));
        Json::Object(keys.collect())
    };
    let made = |api_version: &str, kind: &str, spec: Json| {
        let object = object(api_version, kind, &json!({"spec": spec}));
        with(&with(&object, "/metadata/labels", map("63-")), "/metadata/annotations", map("b"))
    };
    let tls: Vec<_> = (0..8).map(|_| json!({"hosts": vec![&host; 16]})).collect();
    let ingress = json!({"ingressClassName": long(63), "rules": vec![json!({"host": host}); 32], "tls": tls});
    let block = json!({"ipBlock": {"cidr": "2001:db8:63::/64", "except": ["2001:db8:63::/65", "2001:db8:63::/65"]}});
    let values = [format!("{}a", long(63))];
    let terms = vec![json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": values}); 2];
    let peers = [vec![block; 8], vec![json!({"namespaceSelector": {"matchExpressions": terms}}); 8]].concat();
    let service = json!({
        "type": "LoadBalancer", "externalIPs": (0..8).map(|n| format!("2001:db8:63::{n}")).collect::<Vec<_>>(),
        "loadBalancerSourceRanges": vec!["2001:db8:63::/64"; 16],
        "ports": (0..32).map(|n| json!({"port": n + 1, "nodePort": 30000 + n % 16})).collect::<Vec<_>>(),
    });
    for (api_version, kind, spec) in [
        ("networking.k8s.io/v1", "Ingress", ingress),
        ("v1", "Service", service),
        ("networking.k8s.io/v1", "NetworkPolicy", json!({"podSelector": {}, "ingress": [{"from": peers}]})),
    ] {
        let object = made(api_version, kind, spec);
        let created = ValidationRequest { namespace: "tool-weather", ..ValidationRequest::create(kind, &object) };
        let found = policy.judge(&created).unwrap_or_else(|error| panic!("{kind}: {error}"));
        println!("{kind}: {} of the match condition, {} of the policy", found.matching, found.cost);
        assert!(!found.matched, "{kind}: {:?}", found.decision);
        assert!(found.matching < 1_000_000, "{kind}: {}", found.matching);
    }
}

/// A probe is evaluated by its policy of its generation alone, and shows nothing about objects.
#[test]
fn probes_are_for_one_generation_of_one_policy() {
    let mut profile = profile(&spec(false));
    profile.metadata.generation = Some(7);
    profile.spec.enforcement.checks = [("serviceTypes".to_owned(), palisade_api::Stage::Warn)].into();
    let compiled = compile(&profile).unwrap();
    let params = params(false, false);
    for part in Part::judging(Shape::Objects) {
        let question = compiled.probes.question(part).unwrap();
        let policy = Validator::new(&compiled.bundle.part(part).unwrap().policy).unwrap();
        let is_denied = |object: &Json, namespace: &str| {
            let created = ValidationRequest::create("PodTemplate", object);
            let request = ValidationRequest { namespace, params: Some(&params), ..created };
            policy.evaluate(&request).unwrap_or_else(|error| panic!("{error}")) != Decision::Admit
        };
        assert!(question.path.ends_with("/namespaces/palisade-probe/podtemplates"), "{}", question.path);
        assert!(is_denied(&question.violating, names::PROBE_NAMESPACE));
        assert!(!is_denied(&question.compliant, names::PROBE_NAMESPACE));
        // In the namespace of a tenant, the name means nothing.
        assert!(!is_denied(&question.violating, "tool-weather"));
        let label = question.violating["metadata"]["labels"][names::PROFILE_LABEL].as_str().unwrap().to_owned();
        for other in ["test.6.o", "test.7", "other.7.o", "test.7.c", "test.7.o", "test.7.oc"] {
            let pointer = format!("/metadata/labels/{}", names::PROFILE_LABEL.replace('/', "~1"));
            let mut relabelled = question.violating.clone();
            *relabelled.pointer_mut(&pointer).unwrap() = json!(other);
            assert_eq!(is_denied(&relabelled, names::PROBE_NAMESPACE), other == label, "{other}");
        }
    }
}
