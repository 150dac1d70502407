//! Changes of pods that people rarely make: several of what is mostly one, long lists and texts, empty texts, ends of
//! numbers, spellings that look alike.

use palisade_kube_json::json::Change as _;
use serde_json::{Value as Json, json};

use crate::properties::random::Random;

const LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

const IMAGES: [&str; 29] = [
    "nginx",
    "docker.io/nginx",
    "index.docker.io/library/x",
    "DOCKER.io/x",
    "EVIL/x",
    "registry.example",
    "registry.example/team",
    "registry.example/team/x",
    "registry.example/team:1",
    "registry.example/teamx",
    "registry.example/../x",
    "localhost:5000",
    "localhost:5000/x",
    "localhost/x",
    "own.example/text/x",
    "own.example/text",
    "own.example/texty",
    "own.example/",
    "/x",
    "",
    "registry.example//x",
    "registry.example/team@sha256:0",
    "library/x",
    "a.b/registry.example/x",
    "docker.io/library/x",
    "docker.io/libraryx",
    "sha256:aaaa",
    "sea.hub:5000/x",
    "mirror.example/a/x",
];

const PATHS: [&str; 20] = [
    "/",
    "/data",
    "/data/",
    "/data/project/text",
    "/data/project/text/x",
    "/data/project/texts",
    "/data/../etc",
    "/data/..",
    "/data/.",
    "//data",
    "/public",
    "/public/x",
    "/publicx",
    "",
    "data",
    "/data/project",
    "/data/project/text/../x",
    "/..",
    "/data//project/text",
    "/DATA",
];

const ANNOTATIONS: [&str; 7] = [
    "container.apparmor.security.beta.kubernetes.io/main",
    "container.apparmor.security.beta.kubernetes.io/init",
    "container.apparmor.security.beta.kubernetes.io/",
    "container.seccomp.security.alpha.kubernetes.io/main",
    "container.seccomp.security.alpha.kubernetes.io/zz",
    "seccomp.security.alpha.kubernetes.io/pod",
    "x",
];

/// Changes a pod in one to three places.
pub(crate) fn change(random: &mut Random, pod: &mut Json) {
    for _ in 0..=random.below(3) {
        match random.below(17) {
            0 => *pod.at_mut(&["spec", "securityContext"]) = security_context(random, true),
            1 | 2 => of_containers(random, pod, |random, container| {
                *container.at_mut(&["securityContext"]) = security_context(random, false);
            }),
            3 => of_containers(random, pod, |random, container| *container.at_mut(&["image"]) = json!(image(random))),
            4 => of_containers(random, pod, |random, container| {
                *container.at_mut(&["ports"]) = (0..random.below(4)).map(|_| port(random)).collect();
            }),
            5 => of_containers(random, pod, |random, container| {
                let probe = random.one(&["livenessProbe", "readinessProbe", "startupProbe"]);
                *container.at_mut(&[probe]) = handler(random);
                let hook = random.one(&["postStart", "preStop"]);
                *container.at_mut(&["lifecycle", hook]) = handler(random);
            }),
            6..=8 => volumes(random, pod),
            9 => *pod.at_mut(&["spec", "tolerations"]) = (0..random.below(4)).map(|_| toleration(random)).collect(),
            10 => {
                let field = random.one(&[
                    "hostNetwork",
                    "hostPID",
                    "hostIPC",
                    "hostUsers",
                    "shareProcessNamespace",
                    "automountServiceAccountToken",
                    "setHostnameAsFQDN",
                ]);
                *pod.at_mut(&["spec", field]) = json!(random.percent(50));
            }
            11 => {
                let fields = [
                    "serviceAccountName",
                    "serviceAccount",
                    "priorityClassName",
                    "schedulerName",
                    "runtimeClassName",
                    "nodeName",
                ];
                let values = ["", "default", "builder", "text", "batch", "kata", "gvisor", "default-scheduler", "x"];
                *pod.at_mut(&["spec", random.one(&fields)]) = json!(random.one(&values));
            }
            12 => many(random, pod),
            13 => {
                let values = [
                    "runtime/default",
                    "docker/default",
                    "unconfined",
                    "localhost/a.json",
                    "localhost/z.json",
                    "",
                    "localhost/",
                    "RUNTIME/default",
                ];
                let key = random.one(&ANNOTATIONS);
                *pod.at_mut(&["metadata", "annotations", key]) = json!(random.one(&values));
            }
            14 => match random.below(4) {
                0 => *pod.at_mut(&["spec", "os"]) = json!({"name": random.one(&["windows", "linux", ""])}),
                1 => {
                    let (key, value) =
                        (random.one(&["pool", "example.org/zone", "q"]), random.one(&["text", "shared", ""]));
                    *pod.at_mut(&["spec", "nodeSelector"]) = json!({key: value});
                }
                2 => *pod.at_mut(&["spec", "affinity"]) = json!({"nodeAffinity": {}}),
                _ => {
                    *pod.at_mut(&["spec", "dnsConfig"]) =
                        json!({"nameservers": ["192.0.2.1"], "options": [{"value": "x"}]});
                }
            },
            15 => {
                let mut extra = pod["spec"]["containers"][0].clone();
                *extra.at_mut(&["name"]) = json!("extra");
                *extra.at_mut(&["image"]) = json!(image(random));
                let list = random.one(&LISTS);
                let mut all = pod["spec"][list].as_array().cloned().unwrap_or_default();
                all.push(extra);
                *pod.at_mut(&["spec", list]) = all.into();
            }
            _ => {
                let field = random.one(&["securityContext", "nodeSelector", "tolerations", "serviceAccountName"]);
                let (spec, field) = if random.percent(50) {
                    (pod.at_mut(&["spec"]), field)
                } else {
                    let field = random.one(&["securityContext", "volumeMounts"]);
                    (&mut pod["spec"]["containers"][0], field)
                };
                if let Some(object) = spec.as_object_mut() {
                    object.remove(field);
                }
            }
        }
    }
}

/// Changes some containers of one kind.
fn of_containers(random: &mut Random, pod: &mut Json, change: impl Fn(&mut Random, &mut Json)) {
    let list = random.one(&LISTS);
    for container in pod["spec"].get_mut(list).and_then(Json::as_array_mut).into_iter().flatten() {
        if random.percent(60) {
            change(random, container);
        }
    }
}

/// Longer lists than the fast path reads, and than are judged at all.
fn many(random: &mut Random, pod: &mut Json) {
    if random.percent(50) {
        let first = pod["spec"]["containers"][0].clone();
        let of = |index: usize, random: &mut Random| {
            let mut container = first.clone();
            *container.at_mut(&["name"]) = json!(format!("c{index}"));
            if random.percent(5) {
                *container.at_mut(&["image"]) = json!(image(random));
            }
            if random.percent(5) {
                *container.at_mut(&["securityContext"]) = security_context(random, false);
            }
            container
        };
        *pod.at_mut(&["spec", "containers"]) = (0..30 + random.below(16)).map(|index| of(index, random)).collect();
        return;
    }
    let of = |index: usize, random: &mut Random| {
        if random.percent(5) {
            json!({"name": format!("v{index}"), "hostPath": {"path": path(random)}})
        } else {
            json!({"name": format!("v{index}"), "emptyDir": {}})
        }
    };
    *pod.at_mut(&["spec", "volumes"]) = (0..30 + random.below(10)).map(|index| of(index, random)).collect();
}

fn long(random: &mut Random, before: &str) -> String {
    format!("{before}{}", "a".repeat(random.one(&[10, 500, 513, 700, 2000])))
}

fn image(random: &mut Random) -> String {
    let name = random.one(&IMAGES);
    match random.below(7) {
        0 => long(random, &format!("{name}/")),
        1 => format!("{name}:1"),
        2 => format!("{name}@sha256:1"),
        3 => format!(
            "{}{}",
            random.one(&["", "sha256:"]),
            random.one(&["a", "0", "F"]).repeat(random.one(&[63, 64, 65]))
        ),
        _ => name.to_owned(),
    }
}

fn path(random: &mut Random) -> String {
    let path = random.one(&PATHS);
    if random.percent(10) { long(random, &format!("{path}/")) } else { path.to_owned() }
}

fn port(random: &mut Random) -> Json {
    let mut port = json!({"containerPort": 80});
    if random.percent(70) {
        *port.at_mut(&["hostPort"]) = json!(random.one(&[0, 1, 5, 6, 80, 1000, 8080, 65535]));
    }
    if random.percent(30) {
        *port.at_mut(&["hostIP"]) = json!("127.0.0.1");
    }
    port
}

fn handler(random: &mut Random) -> Json {
    match random.below(6) {
        0 => json!({"httpGet": {"port": 80, "host": random.one(&["", "a", "127.0.0.1", "localhost", "::1"])}}),
        1 => json!({"httpGet": {"port": 80, "httpHeaders": [{"name": "Host", "value": "x"}]}}),
        2 => json!({"tcpSocket": {"port": 80, "host": random.one(&["", "a", "127.0.0.1"])}}),
        3 => json!({"exec": {"command": ["x"]}}),
        4 => json!({"grpc": {"port": 1}}),
        _ => json!({"tcpSocket": {"port": 1}}),
    }
}

fn toleration(random: &mut Random) -> Json {
    let mut toleration = json!({});
    let keys =
        ["gpu", "dedicated", "text", "other", "", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    let fields: [(&str, &[&str]); 4] = [
        ("key", &keys),
        ("operator", &["Exists", "Equal", "Lt", "Gt", ""]),
        ("value", &["text", "", "x"]),
        ("effect", &["NoSchedule", "NoExecute", "PreferNoSchedule", ""]),
    ];
    for (field, values) in fields {
        if random.percent(60) {
            *toleration.at_mut(&[field]) = json!(random.one(values));
        }
    }
    toleration
}

fn volumes(random: &mut Random, pod: &mut Json) {
    let number = 1 + random.below(3);
    let all: Vec<Json> = (0..number).map(|index| volume(random, index)).collect();
    *pod.at_mut(&["spec", "volumes"]) = all.into();
    for list in LISTS {
        for container in pod["spec"].get_mut(list).and_then(Json::as_array_mut).into_iter().flatten() {
            if random.percent(60) {
                // One mount may be of no volume.
                let mounts = (0..random.below(4)).map(|index| mount(random, number + 1, index));
                *container.at_mut(&["volumeMounts"]) = mounts.collect();
            }
        }
    }
}

fn volume(random: &mut Random, index: usize) -> Json {
    let mut volume = match random.below(9) {
        0 => json!({"emptyDir": {}}),
        1 => json!({"csi": {"driver": random.one(&["csi.example.org", "other.example.org", "text", "evil", ""])}}),
        2 => {
            json!({"flexVolume": {"driver": random.one(&["example.org/flex", "example.org/text", "example.org/flexx", "x"])}})
        }
        3 => json!({"image": {"reference": image(random)}}),
        4 => json!({"projected": {"sources": (0..random.below(3)).map(|_| source(random)).collect::<Vec<_>>()}}),
        5 => json!({"nfs": {"server": "x", "path": "/"}}),
        6 => json!({"ephemeral": {}}),
        _ => {
            let mut path = json!({"path": path(random)});
            if random.percent(50) {
                let types = [
                    "",
                    "Directory",
                    "DirectoryOrCreate",
                    "File",
                    "FileOrCreate",
                    "Socket",
                    "CharDevice",
                    "BlockDevice",
                ];
                *path.at_mut(&["type"]) = json!(random.one(&types));
            }
            json!({"hostPath": path})
        }
    };
    *volume.at_mut(&["name"]) = json!(format!("v{index}"));
    volume
}

fn source(random: &mut Random) -> Json {
    match random.below(4) {
        0 => {
            let audience = random.one(&["", "vault", "text", "other"]);
            let seconds = random.one(&[600, 3600, 86_400, 86_401]);
            json!({"serviceAccountToken": {"path": "t", "audience": audience, "expirationSeconds": seconds}})
        }
        1 => json!({"serviceAccountToken": {"path": "t"}}),
        2 => json!({"secret": {"name": "x"}}),
        _ => json!({"podCertificate": {"signerName": "a/b", "keyType": "RSA3072"}}),
    }
}

fn mount(random: &mut Random, volumes: usize, index: usize) -> Json {
    let mut mount = json!({"name": format!("v{}", random.below(volumes)), "mountPath": format!("/m{index}")});
    if random.percent(50) {
        *mount.at_mut(&["readOnly"]) = json!(random.percent(60));
    }
    if random.percent(30) {
        *mount.at_mut(&["recursiveReadOnly"]) = json!(random.one(&["Enabled", "IfPossible", "Disabled"]));
    }
    if random.percent(30) {
        *mount.at_mut(&["mountPropagation"]) = json!(random.one(&["None", "HostToContainer", "Bidirectional"]));
    }
    mount
}

/// What a container or, if so said, a pod has in its security context.
fn security_context(random: &mut Random, of_pod: bool) -> Json {
    let mut context = json!({});
    let mut set = |random: &mut Random, percent: usize, path: &[&str], value: &dyn Fn(&mut Random) -> Json| {
        if random.percent(percent) {
            *context.at_mut(path) = value(random);
        }
    };
    let profile = |random: &mut Random| match random.below(6) {
        0 => json!({"type": "RuntimeDefault"}),
        1 => json!({"type": "Unconfined"}),
        2 => {
            json!({"type": "Localhost", "localhostProfile": random.one(&["a.json", "z.json", "profiles/text", "", "text"])})
        }
        3 => json!({"type": "Localhost"}),
        4 => json!({"type": ""}),
        _ => json!({"type": "RuntimeDefault", "localhostProfile": "z.json"}),
    };
    let id = |random: &mut Random| json!(random.one(&[0_i64, 1, 5, 6, 9, 80, 1000, -1, 4_294_967_296, 65_535]));
    let truth = |random: &mut Random| json!(random.percent(50));
    set(random, 25, &["runAsUser"], &id);
    set(random, 25, &["runAsGroup"], &id);
    set(random, 25, &["runAsNonRoot"], &truth);
    set(random, 30, &["seccompProfile"], &profile);
    set(random, 20, &["appArmorProfile"], &profile);
    for field in ["type", "user", "role", "level"] {
        let values = ["", "container_t", "spc_t", "text", "system_u", "system_r", "s0", "s0:c1,c2", "other"];
        set(random, 10, &["seLinuxOptions", field], &|random| json!(random.one(&values)));
    }
    set(random, 5, &["windowsOptions"], &|random| {
        random.one(&[Some(true), Some(false), None]).map_or_else(|| json!({}), |host| json!({"hostProcess": host}))
    });
    if of_pod {
        let ids = |random: &mut Random| (0..random.below(4)).map(|_| id(random)).collect();
        let sysctls = [
            "kernel.shm_rmid_forced",
            "kernel.msgmax",
            "kernel/msgmax",
            "net.ipv4.tcp_syncookies",
            "net/ipv4/tcp_syncookies",
            "fs.x",
            "net.core.somaxconn",
            "kernel",
            "kernel.",
            "net",
            "KERNEL.msgmax",
        ];
        let sysctl = |random: &mut Random| json!({"name": random.one(&sysctls), "value": "1"});
        set(random, 25, &["fsGroup"], &id);
        set(random, 25, &["supplementalGroups"], &ids);
        set(random, 25, &["sysctls"], &|random| (0..random.below(3)).map(|_| sysctl(random)).collect());
        set(random, 20, &["supplementalGroupsPolicy"], &|random| json!(random.one(&["Merge", "Strict"])));
        return context;
    }
    set(random, 25, &["privileged"], &truth);
    set(random, 40, &["allowPrivilegeEscalation"], &truth);
    set(random, 30, &["readOnlyRootFilesystem"], &truth);
    set(random, 25, &["procMount"], &|random| json!(random.one(&["Default", "Unmasked", ""])));
    let names = ["ALL", "NET_RAW", "MKNOD", "CHOWN", "NET_BIND_SERVICE", "SYS_TIME", "CAP_NET_RAW", "net_raw", ""];
    for list in ["add", "drop"] {
        let capabilities = |random: &mut Random| (0..random.below(4)).map(|_| json!(random.one(&names))).collect();
        set(random, 30, &["capabilities", list], &capabilities);
    }
    context
}
