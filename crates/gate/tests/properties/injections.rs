//! Random additions, and pods that have some of what is added, or something else in its place.

use serde_json::{Map, Value as Json, json};

use crate::properties::random::Random;

const LABELS: [&str; 3] = ["example.org/storage", "tier", "x"];
const VALUES: [&str; 4] = ["all", "none", "", "it's"];
const PATHS: [&str; 4] = ["/data/project", "/public/dumps", "/etc/ldap.conf", "/run/s"];
const NAMES: [&str; 4] = ["home", "dumps", "ldap", "cache"];
const VARIABLES: [&str; 5] = ["HOME", "TOOL_DATA_DIR", "API_URL", "A.b-c", "_X"];
const CONDITIONS: [&str; 2] = ["NO_HOME", "KEEP"];
const CONTAINERS: [&str; 3] = ["proxy", "agent", "i"];
const KEYS: [&str; 3] = ["nodes.example.org/nfs", "zone", "it~s"];

fn some<T: Copy>(random: &mut Random, of: &[T], percent: usize) -> Vec<T> {
    of.iter().copied().filter(|_| random.percent(percent)).collect()
}

fn selector(random: &mut Random) -> Json {
    let mut selector = json!({});
    if random.percent(40) {
        selector["matchLabels"] = json!({random.one(&LABELS): random.one(&VALUES)});
    }
    if random.percent(70) {
        let operator = random.one(&["In", "NotIn", "Exists", "DoesNotExist"]);
        let mut requirement = json!({"key": random.one(&LABELS[1..]), "operator": operator});
        if operator.ends_with("In") {
            let first = random.below(VALUES.len());
            requirement["values"] = VALUES[first..].iter().copied().take(2).collect();
        }
        selector["matchExpressions"] = json!([requirement]);
    }
    selector
}

/// The source of a volume, which depends on its name, so that entries agree.
fn source(name: &str, restricted: bool) -> (&'static str, Json) {
    match name {
        "home" => ("hostPath", json!({"path": "/data/project", "type": "Directory"})),
        "dumps" if restricted => ("hostPath", json!({"path": "/public/dumps/$text"})),
        "dumps" => ("secret", json!({"secretName": "$text-dumps", "optional": true})),
        "ldap" => ("configMap", json!({"name": "ldap"})),
        _ => ("emptyDir", json!({"medium": "Memory"})),
    }
}

fn entry(random: &mut Random, name: &str, restricted: bool) -> Json {
    let mut entry = json!({"name": name});
    let mut set = |field: &str, value: Json| {
        if value.as_array().is_some_and(|list| !list.is_empty()) || value.as_object().is_some_and(|map| !map.is_empty())
        {
            entry[field] = value;
        }
    };
    let mut when = json!({});
    if random.percent(50) {
        when["podSelector"] = selector(random);
    }
    if random.percent(20) {
        when["annotationSelector"] = selector(random);
    }
    set("when", when);
    let mut paths = PATHS.to_vec();
    let volumes = some(random, &NAMES, 40).into_iter().map(|name| {
        let (kind, source) = source(name, restricted);
        let mut mounts = Vec::new();
        while random.percent(60)
            && let Some(path) = paths.pop()
        {
            let mut mount = json!({"mountPath": path, "readOnly": random.percent(50)});
            if random.percent(30) {
                mount["subPath"] = "$text/${uid}".into();
            }
            mounts.push(mount);
        }
        json!({"name": name, kind: source, "mounts": mounts})
    });
    let volumes: Vec<_> = volumes.collect();
    let entry_volumes: Vec<_> = volumes.iter().map(|volume| volume["name"].clone()).collect();
    set("volumes", volumes.into());
    set("containers", containers(random, &entry_volumes).into());
    let env = some(random, &VARIABLES, 40).into_iter().map(|name| {
        let mut variable = json!({"name": name, "unlessSet": some(random, &CONDITIONS, 30)});
        match random.below(3) {
            0 => variable["value"] = "/data/$text/$$x".into(),
            1 => variable["valueFrom"] = json!({"secretKeyRef": {"name": "$text", "key": "k", "optional": true}}),
            _ => variable["valueFrom"] = json!({"configMapKeyRef": {"name": "c", "key": "$text"}}),
        }
        if random.percent(30) {
            variable["policy"] = "Always".into();
        }
        variable
    });
    set("env", env.collect::<Vec<_>>().into());
    set("removeWorkingDirIfSet", some(random, &CONDITIONS, 25).into());
    let mut map = |random: &mut Random, field: &str, keys: &[&str]| {
        let map: Map<_, _> = some(random, keys, 30)
            .into_iter()
            .map(|key| (key.to_owned(), random.one(&["true", "$text"]).into()))
            .collect();
        set(field, map.into());
    };
    map(random, "labels", &["example.org/added", "team"]);
    map(random, "annotations", &["example.org/a", "b"]);
    map(random, "nodeSelector", &KEYS[..2]);
    let mut list = |random: &mut Random, field: &str, of: &[Json]| {
        set(field, of.iter().filter(|_| random.percent(25)).cloned().collect());
    };
    list(random, "preferredNodeAffinity", &preferred());
    list(random, "tolerations", &tolerations());
    list(
        random,
        "topologySpreadConstraints",
        &[json!({
            "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 1, "matchLabels": {"app": "$text"},
        })],
    );
    list(random, "imagePullSecrets", &[json!("registry"), json!("$text")]);
    list(random, "hostAliases", &[json!({"ip": "192.0.2.1", "hostnames": ["a.example", "$text.example"]})]);
    list(random, "dnsOptions", &[json!({"name": "ndots", "value": "2"}), json!({"name": "edns0"})]);
    if random.percent(50) {
        entry["initContainers"] = true.into();
    }
    if entry
        .as_object()
        .is_some_and(|fields| fields.keys().all(|field| ["name", "when", "initContainers"].contains(&field.as_str())))
    {
        entry["labels"] = json!({"example.org/added": "true"});
    }
    entry
}

/// Init containers and sidecars that mount volumes of their entry.
fn containers(random: &mut Random, volumes: &[Json]) -> Vec<Json> {
    let names = some(random, &CONTAINERS, 25).into_iter();
    names
        .map(|name| {
            let mut container = json!({
                "name": name, "type": random.one(&["Init", "Sidecar"]),
                "image": random.one(&["registry.example/x", "docker.io/library/y", "registry.example/$text:${uid}"]),
            });
            if random.percent(50) {
                container["command"] = json!(["/bin/x", "$text", "$$HOME"]);
            }
            if random.percent(50) {
                container["env"] = json!([
                    {"name": random.one(&VARIABLES), "value": "$text"},
                    {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "$text", "key": "k"}}},
                ]);
            }
            if random.percent(30) {
                container["resources"] = json!({"limits": {"memory": "32Mi"}, "requests": {"cpu": "${uid}m"}});
            }
            if random.percent(30) {
                container["securityContext"] = json!({
                    "runAsUser": 1337, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
                    "seccompProfile": {"type": "RuntimeDefault"},
                });
            }
            if random.percent(50)
                && let Some(volume) = volumes.first()
            {
                let path = random.one(&["/out", PATHS[0]]);
                container["volumeMounts"] = json!([{"name": volume, "mountPath": path, "subPath": "$text"}]);
            }
            container
        })
        .collect()
}

fn preferred() -> [Json; 2] {
    [
        json!({"weight": 100, "matchExpressions": [{"key": "nfs", "operator": "NotIn", "values": ["true"]}]}),
        json!({"weight": 1, "matchExpressions": [{"key": "$text", "operator": "Exists"}, {"key": "b", "operator": "In", "values": ["$text"]}]}),
    ]
}

fn tolerations() -> [Json; 3] {
    [
        json!({"key": "dedicated", "operator": "Equal", "value": "$text", "effect": "NoSchedule"}),
        json!({"key": "slow", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}),
        json!({"key": "plain"}),
    ]
}

/// A profile with additions. The keys of labels that it adds are not those that it reads.
pub(crate) fn profile(random: &mut Random, name: &str) -> Json {
    let restricted = random.percent(50);
    let mut entries: Vec<_> =
        (0..=random.below(3)).map(|index| entry(random, &format!("e{index}"), restricted)).collect();
    // The key of a preferred term has no parameters.
    for term in entries.iter_mut().filter_map(|entry| entry["preferredNodeAffinity"].as_array_mut()).flatten() {
        if term["weight"] == 1 {
            term["matchExpressions"][0]["key"] = "a".into();
        }
    }
    for entry in &mut entries {
        if let Some(fields) = entry.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
    }
    let allowed = if random.percent(70) {
        json!([{"pathPrefix": "/data/project"}, {"pathPrefix": "/public"}])
    } else {
        json!([{"pathPrefix": "/data/project"}])
    };
    let redirect = json!({"redirect": {"hosts": [{"host": "docker.io", "target": "registry.example/mirror"}]}});
    let images = if random.percent(30) { redirect } else { json!({}) };
    json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged",
            "parameters": [
                {"name": "text", "type": "String", "default": "text"}, {"name": "uid", "type": "Integer", "default": 1000},
            ],
            "volumes": {"hostPaths": allowed}, "images": images,
            "mutation": {"defaults": random.one(&["None", "Secure"]), "inject": entries},
        },
    })
}

/// A pod with some of what is added.
pub(crate) fn pod(random: &mut Random) -> Json {
    let mut pod = palisade_kube_json::pod::minimal("random");
    for field in ["labels", "annotations"] {
        let keys = some(random, &[LABELS[0], LABELS[1], LABELS[2], "team", "example.org/a"], 40);
        let map: Map<_, _> = keys
            .into_iter()
            // No label has such a value.
            .map(|key| (key.to_owned(), random.one(if field == "labels" { &VALUES[..3] } else { &VALUES }).into()))
            .collect();
        pod["metadata"][field] = map.into();
    }
    let spec = &mut pod["spec"];
    let volumes = some(random, &NAMES, 30).into_iter().map(|name| {
        let other = random.one(&NAMES);
        let (kind, source) = source(if random.percent(50) { name } else { other }, false);
        let source: Json = serde_json::from_str(&source.to_string().replace("$text", "text")).unwrap();
        json!({"name": name, kind: source})
    });
    let volumes: Vec<_> = volumes.collect();
    let mut containers = Vec::new();
    let second = if random.percent(20) { CONTAINERS[0] } else { "b" };
    for name in ["a", second, "i"].into_iter().take(1 + random.below(3)) {
        let mut container = json!({"name": name, "image": "registry.example/x"});
        let env: Vec<_> = (0..random.below(4))
            .map(|_| {
                let all = [&VARIABLES[..], &CONDITIONS].concat();
                json!({"name": random.one(&all), "value": random.one(&["/x", "/data/text/$x"])})
            })
            .collect();
        if !env.is_empty() {
            container["env"] = env.into();
        }
        if random.percent(40) {
            container["workingDir"] = "/w".into();
        }
        if !volumes.is_empty() {
            let mounts = some(random, &PATHS, 30)
                .into_iter()
                .map(|path| json!({"name": volumes[random.below(volumes.len())]["name"], "mountPath": path}));
            container["volumeMounts"] = mounts.collect::<Vec<_>>().into();
        }
        containers.push(container);
    }
    if containers.len() == 3 {
        spec["initContainers"] = json!([containers.pop()]);
    }
    spec["containers"] = containers.into();
    if !volumes.is_empty() {
        spec["volumes"] = volumes.into();
    }
    if random.percent(30) {
        spec["nodeSelector"] = json!({random.one(&KEYS[..2]): "own"});
    }
    if random.percent(30) {
        spec["tolerations"] = json!([{"key": "plain"}, {"key": "dedicated", "operator": "Exists"}]);
    }
    if random.percent(20) {
        spec["hostAliases"] = json!([{"ip": "192.0.2.1", "hostnames": ["own"]}]);
        spec["dnsConfig"] = json!({"options": [{"name": "ndots", "value": "5"}]});
        spec["imagePullSecrets"] = json!([{"name": "text"}]);
    }
    if random.percent(20) {
        spec["affinity"] = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": {"matchExpressions": [{"key": "nfs", "operator": "NotIn", "values": ["true"]}]}},
        ]}});
    }
    if random.percent(8) {
        spec["os"] = json!({"name": "windows"});
    }
    pod
}
