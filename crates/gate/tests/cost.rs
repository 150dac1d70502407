//! What generated policies cost in the API server's own units, and that it is within the budget: a policy that runs
//! out of it denies.

use palisade_api::{
    ContainerException, Level, MAX_CONTAINERS, Settings, ToolSecurityProfile, catalogue,
    names::Shape,
    settings::{self, Kind, standard::Version},
};
use palisade_gate::{BUDGET, ValidationRequest, Validator};
use palisade_kube_json::{pod, workload::WORKLOADS};
use serde_json::{Value as Json, json};

const TOOLFORGE: &str = include_str!("../../../examples/toolforge/profile.yaml");

/// A list as long as profiles may have it: constants, and one parameter that is a list of its own.
fn longest(of: impl Fn(usize) -> String) -> Json {
    (0..63).map(of).chain(["$list".to_owned()]).collect::<Vec<_>>().into()
}

/// Every check, with lists that are as long as they may be and name nothing that a pod has.
fn largest() -> Json {
    let text = |n: usize| format!("{n:02}-{}", "x".repeat(60));
    let ranges = |n: i64| -> Vec<_> { (0..16).map(|i| json!({"min": n + 2 * i, "max": n + 2 * i})).collect() };
    let ids = |n| json!({"rule": "MustRunAs", "ranges": ranges(n)});
    let mut profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "largest"},
        "spec": {
            "namespaceSelector": {"matchLabels": {"a": "b"}},
            "parameters": [{"name": "list", "type": "StringList", "sources": [{"namespaceAnnotation": "list"}]}],
            "exemptions": {
                "users": (0..64).map(text).collect::<Vec<_>>(), "groups": (0..64).map(text).collect::<Vec<_>>(),
                "runtimeClasses": (0..64).map(text).collect::<Vec<_>>(),
            },
            "exceptions": [{
                "namespaces": ["a"], "reason": "x", "expires": "2099-01-01T00:00:00Z",
                "checks": catalogue::ALL.iter().map(|check| check.id).collect::<Vec<_>>(),
            }],
            "exceptionRequests": {
                "checks": catalogue::ALL.iter().map(|check| check.id).collect::<Vec<_>>(), "message": "x".repeat(256),
            },
            "users": {
                "runAsUser": ids(1000), "runAsGroup": ids(2000), "fsGroup": ids(3000), "supplementalGroups": ids(4000),
                "supplementalGroupsPolicy": "Strict",
            },
            "privileges": {
                "capabilities": {"allowedAdd": longest(text), "requiredDrop": longest(text)},
                "seccomp": {"allowed": ["RuntimeDefault", "Localhost"], "localhostProfiles": longest(text)},
                "appArmor": {"allowed": ["RuntimeDefault", "Localhost"], "localhostProfiles": longest(text)},
                "seLinux": {
                    "types": longest(text), "users": longest(text), "roles": longest(text), "levels": longest(text),
                },
                "sysctls": {"allowed": longest(text), "forbidden": longest(text)},
            },
            "host": {"ports": ranges(5000)},
            "volumes": {
                "allowed": ["hostPath", "csi", "flexVolume", "projected"], "mountPropagation": [],
                "hostPaths": (0..64).map(|n| json!({"pathPrefix": format!("/{}", text(n))})).collect::<Vec<_>>(),
            },
            "identity": {
                "serviceAccountTokens": {"audiences": longest(text), "maxExpirationSeconds": 600},
            },
            "scheduling": {
                "nodeSelector": (0..8).map(|n| json!({"key": text(n), "values": longest(text)})).collect::<Vec<_>>(),
                "tolerations": (0..32).map(|n| json!({"key": text(n), "value": text(n), "effect": "NoSchedule"}))
                    .collect::<Vec<_>>(),
            },
            "network": {
                "allowedNodePorts": ranges(30000),
                // The compiler accepts only CIDRs.
                "allowedExternalIPs": longest(|n| format!("10.{n}.0.0/16")),
                "allowedLoadBalancerSourceRanges": longest(|n| format!("10.{n}.0.0/16")),
                "allowedPolicyIngressCIDRs": longest(|n| format!("10.{n}.0.0/16")),
                "allowedPolicyEgressCIDRs": longest(|n| format!("10.{n}.0.0/16")),
                "deniedPolicyCIDRs": (0..16).map(|n| format!("10.{n}.0.0/16")).collect::<Vec<_>>(),
                "annotations": {"denied": longest(text), "allowed": longest(text)},
            },
            "storage": {"maxRequest": "1Gi"},
            "access": {
                "maxTokenExpirationSeconds": 600,
                "allowedConnections": (0..8).map(|n| json!({
                    "resources": if n % 2 == 0 { ["pods/exec"] } else { ["services/proxy"] },
                    (if n % 2 == 0 { "commands" } else { "ports" }): (0..16).map(text).collect::<Vec<_>>(),
                    "groups": (0..16).map(text).collect::<Vec<_>>(),
                })).collect::<Vec<_>>(),
            },
            "metadata": {"rules": [{
                "kinds": [{"versions": ["v1"], "resource": "configmaps"}],
                "labels": [{"key": "team", "required": true, "values": longest(text)}], "allowedLabels": longest(text),
            }]},
            "images": {"allowedRegistries": longest(|n| format!("{}.example/x", text(n)))},
        },
    });
    // The others: what the default level does not ask for.
    let seed = json!(Settings::seed(Level::Restricted, Version::default()));
    for setting in settings::all() {
        let (group, field) = setting.path.split_once('.').unwrap();
        if profile["spec"][group].get(field).is_some() || seed[group].get(field).is_some() {
            continue;
        }
        profile["spec"][group][field] = match setting.kind {
            Kind::Allowance(_) => json!(false),
            Kind::Demand(_) => json!(true),
            Kind::Texts(_) => longest(text),
            Kind::Relaxation(_) | Kind::Change(_) => continue,
            Kind::Other(_) => panic!("crates/gate/tests/cost.rs has no longest {}", setting.path),
        };
    }
    profile
}

/// A pod of so many containers, each of which asks for something with everything that it can, and so many volumes.
fn hostile(size: usize) -> Json {
    let container = |n: usize| {
        json!({
            "name": format!("container-{n}"), "image": format!("registry-{n}.invalid/some/where:1"),
            "ports": [{"containerPort": 80, "hostPort": 80}],
            "volumeMounts": [{"name": format!("volume-{n}"), "mountPath": "/x", "mountPropagation": "HostToContainer"}],
            "securityContext": {
                "privileged": true, "runAsUser": 0, "runAsGroup": 0, "procMount": "Unmasked",
                "capabilities": {"add": ["SYS_ADMIN", "NET_ADMIN", "NET_RAW"], "drop": ["KILL"]},
                "seccompProfile": {"type": "Localhost", "localhostProfile": "some/profile.json"},
                "appArmorProfile": {"type": "Localhost", "localhostProfile": "some-profile"},
                "seLinuxOptions": {"type": "spc_t", "user": "u", "role": "r", "level": "s0"},
            },
        })
    };
    let volume = |n: usize| match n % 4 {
        0 => json!({"name": format!("volume-{n}"), "hostPath": {"path": "/var/lib/some/where"}}),
        1 => json!({"name": format!("volume-{n}"), "csi": {"driver": "driver.csi.invalid"}}),
        2 => json!({"name": format!("volume-{n}"), "projected": {"sources": [
            {"serviceAccountToken": {"audience": "other", "path": "a"}},
            {"serviceAccountToken": {"path": "b", "expirationSeconds": 86400}},
        ]}}),
        _ => json!({"name": format!("volume-{n}"), "flexVolume": {"driver": "invalid/driver"}}),
    };
    let mut pod = pod::minimal("hostile");
    pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    pod::merge(
        &mut pod["spec"],
        &json!({
            "hostNetwork": true, "hostPID": true, "runtimeClassName": "some-class",
            "serviceAccountName": "other", "automountServiceAccountToken": true, "priorityClassName": "some-class",
            "schedulerName": "other", "nodeName": "some-node", "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["a"]}],
            "tolerations": (0..size).map(|n| json!({"key": format!("key-{n}"), "operator": "Exists"})).collect::<Vec<_>>(),
            "securityContext": {
                "fsGroup": 0, "supplementalGroups": [0, 1, 2],
                "sysctls": (0..size).map(|n| json!({"name": format!("net.x.{n}"), "value": "1"})).collect::<Vec<_>>(),
            },
            "volumes": (0..size).map(volume).collect::<Vec<_>>(),
        }),
    );
    pod["spec"]["containers"] = (0..size).map(container).collect();
    pod
}

/// An exception that is looked at for each container, and lifts nothing.
fn for_another(n: usize) -> ContainerException {
    ContainerException {
        check: catalogue::ALL[n % catalogue::ALL.len()].id.to_owned(),
        workload: String::new(),
        container: String::new(),
        image_prefix: format!("{}{n}/", "registry-".repeat(25)),
        expires: "2099-01-01T00:00:00Z".to_owned(),
    }
}

struct Case {
    name: &'static str,
    profile: Json,
    pod: Json,
    list: Vec<String>,
}

#[test]
fn policies_stay_within_their_budget() {
    let list: Vec<_> = (0..64).map(|n| format!("{n:02}-{}", "y".repeat(60))).collect();
    let mut restricted = largest();
    restricted["spec"] = json!({"namespaceSelector": {"matchLabels": {"a": "b"}}});
    let cases = [
        Case { name: "Restricted, a small pod", profile: restricted.clone(), pod: pod::minimal("small"), list: vec![] },
        Case { name: "Restricted, a hostile pod of 20", profile: restricted, pod: hostile(20), list: vec![] },
        Case {
            name: "Toolforge, a hostile pod of 20",
            profile: serde_saphyr::from_str(TOOLFORGE).unwrap(),
            pod: hostile(20),
            list: vec![],
        },
        Case { name: "largest lists, a small pod", profile: largest(), pod: pod::minimal("small"), list: list.clone() },
        Case { name: "largest lists, a hostile pod of 5", profile: largest(), pod: hostile(5), list: list.clone() },
        Case { name: "largest lists, a hostile pod of 10", profile: largest(), pod: hostile(10), list: list.clone() },
        Case { name: "largest lists, a hostile pod of 20", profile: largest(), pod: hostile(20), list: list.clone() },
    ];
    for Case { name, profile, mut pod, list } in cases {
        pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        let profile: ToolSecurityProfile = serde_json::from_value(profile).unwrap();
        let compiled = palisade_compiler::compile(&profile).unwrap();
        let mut params = compiled.probes.params.clone().unwrap_or_default();
        if !list.is_empty() {
            params.string_lists.insert("list".to_owned(), list);
            params.container_exceptions = (0..MAX_CONTAINERS).map(for_another).collect();
        }
        let params = json!({"spec": params});
        for shape in Shape::OF_PODS {
            let policy = Validator::new(&compiled.bundle.pair(shape).unwrap().policy).unwrap();
            let (kind, object) = match shape {
                Shape::Pods => ("Pod", pod.clone()),
                Shape::Workloads | Shape::Objects => {
                    let mut object = WORKLOADS[0].around("hostile", &pod);
                    object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
                    ("Deployment", object)
                }
            };
            let request = ValidationRequest { params: Some(&params), ..ValidationRequest::create(kind, &object) };
            let judged = policy.judge(&request).unwrap_or_else(|error| panic!("{name}, {shape:?}: {error}"));
            println!("{name:36} {shape:?}: {} of {BUDGET}", judged.cost);
            assert!(judged.cost < BUDGET / 3, "{name}, {shape:?}: {}", judged.cost);
        }
    }
}
