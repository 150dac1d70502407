//! Random pods: they comply with some settings, and are then changed where the checks look.

use palisade_api::{Settings, catalogue};
use palisade_checks::{Check, Field, Values, fixture::Fixture};
use palisade_kube_json::pod;
use proptest::{
    prelude::*,
    sample::{self, Index},
};
use serde_json::{Value as Json, json};

/// A change of a pod.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Of a field, or none where it is null, in one of the places of its kind.
    Field { place: Place, path: &'static str, value: Json, at: Index },
    /// Another volume, mounted by the first container in this way.
    Volume { source: Json, mount: Json },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// Below the spec.
    Pod,
    /// Below a container in this list.
    Container(&'static str),
    /// An annotation, whose key is the path.
    Annotation,
}

/// Which containers a pod has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    init: bool,
    second: bool,
    ephemeral: bool,
}

impl Shape {
    /// A pod of this shape that complies with the settings, as far as the catalogue knows how.
    pub(crate) fn complying(self, settings: &Settings, values: &Values) -> Json {
        let mut pod = self.bare();
        if self.ephemeral {
            append(&mut pod["spec"]["ephemeralContainers"], container("debug"));
        }
        for check in catalogue::ALL {
            (check.comply)(settings, values, &mut pod);
        }
        pod
    }

    /// A pod of this shape in which nothing is set, as one is made: it has no ephemeral container yet.
    pub(crate) fn bare(self) -> Json {
        let mut pod = pod::minimal("random");
        if self.init {
            append(&mut pod["spec"]["initContainers"], container("init"));
        }
        if self.second {
            append(&mut pod["spec"]["containers"], container("second"));
        }
        pod
    }
}

fn container(name: &str) -> Json {
    json!({"name": name, "image": "registry.example/x:1"})
}

fn append(list: &mut Json, item: Json) {
    match list.as_array_mut() {
        Some(items) => items.push(item),
        None => *list = json!([item]),
    }
}

impl Change {
    /// Changes the pod.
    pub(crate) fn apply(&self, pod: &mut Json) {
        match self {
            Self::Field { place: Place::Pod, path, value, .. } => set(&mut pod["spec"], path, value),
            Self::Field { place: Place::Container(list), path, value, at } => {
                if let Some(containers) = pod["spec"].get_mut(*list).and_then(Json::as_array_mut) {
                    set(at.get_mut(containers), path, value);
                }
            }
            Self::Field { place: Place::Annotation, path, value, .. } => {
                pod["metadata"]["annotations"][*path] = value.clone();
            }
            Self::Volume { source, mount } => {
                // Not too many, or each pod ends with one volume of each kind.
                if pod["spec"]["volumes"].as_array().is_some_and(|volumes| volumes.len() > 2) {
                    pod["spec"]["volumes"] = json!([]);
                    pod["spec"]["containers"][0]["volumeMounts"] = json!([]);
                }
                let name = format!("v{}", pod["spec"]["volumes"].as_array().map_or(0, Vec::len));
                let mut volume = source.clone();
                volume["name"] = json!(name);
                let mut mount = mount.clone();
                pod::merge(&mut mount, &json!({"name": name, "mountPath": format!("/{name}")}));
                append(&mut pod["spec"]["volumes"], volume);
                append(&mut pod["spec"]["containers"][0]["volumeMounts"], mount);
            }
        }
    }
}

/// Sets what the path leads to. Null takes it away; nothing has a field that is null.
fn set(object: &mut Json, path: &str, value: &Json) {
    let mut keys: Vec<_> = path.split('.').collect();
    let last = keys.pop().unwrap_or_default();
    let parent = keys.into_iter().fold(object, |at, key| {
        let below = &mut at[key];
        if below.is_null() {
            *below = json!({});
        }
        below
    });
    match value {
        Json::Null => {
            if let Some(fields) = parent.as_object_mut() {
                fields.remove(last);
            }
        }
        value => parent[last] = value.clone(),
    }
}

/// Fields that a pod and a container have alike.
fn shared() -> Vec<(&'static str, Vec<Json>)> {
    let profile = || {
        vec![
            Json::Null,
            json!({"type": "RuntimeDefault"}),
            json!({"type": "Unconfined"}),
            json!({"type": "Localhost", "localhostProfile": "a.json"}),
            json!({"type": "Localhost", "localhostProfile": "z.json"}),
        ]
    };
    let ids = || vec![Json::Null, json!(0), json!(1), json!(5), json!(10), json!(1000)];
    vec![
        ("securityContext.runAsUser", ids()),
        ("securityContext.runAsGroup", ids()),
        ("securityContext.runAsNonRoot", vec![Json::Null, json!(true), json!(false)]),
        ("securityContext.seccompProfile", profile()),
        ("securityContext.appArmorProfile", profile()),
        (
            "securityContext.seLinuxOptions",
            vec![
                Json::Null,
                json!({}),
                json!({"type": "container_t"}),
                json!({"type": "spc_t", "level": "s0"}),
                json!({"user": "system_u", "role": "system_r"}),
                json!({"type": "container_t", "user": "text", "role": "text", "level": "s0:c1,c2"}),
            ],
        ),
        (
            "securityContext.windowsOptions",
            vec![json!({}), json!({"hostProcess": true}), json!({"hostProcess": false})],
        ),
    ]
}

fn of_pod() -> Vec<(&'static str, Vec<Json>)> {
    let sysctls = ["kernel.shm_rmid_forced", "kernel.msgmax", "kernel/msgmax", "net.ipv4.tcp_syncookies", "fs.x"];
    let mut all = shared();
    all.extend([
        ("hostUsers", vec![Json::Null, json!(true), json!(false)]),
        ("os", vec![json!({"name": "windows"}), json!({"name": "linux"})]),
        ("runtimeClassName", vec![Json::Null, json!("gvisor"), json!("kata"), json!("runc")]),
        ("hostAliases", vec![Json::Null, json!([]), json!([{"ip": "192.0.2.1", "hostnames": ["a"]}])]),
        ("serviceAccountName", texts(&["default", "builder", "text", "other"])),
        ("serviceAccount", texts(&["default", "builder", "other"])),
        ("priorityClassName", texts(&["", "batch", "system-node-critical", "text"])),
        ("schedulerName", texts(&["default-scheduler", "volcano", "other"])),
        (
            "nodeSelector",
            vec![Json::Null, json!({"pool": "text"}), json!({"pool": "shared", "example.org/zone": "text"})],
        ),
        ("tolerations", tolerations()),
        ("securityContext.supplementalGroupsPolicy", texts(&["Merge", "Strict"])),
        ("securityContext", vec![Json::Null, json!({})]),
        ("securityContext.fsGroup", vec![Json::Null, json!(0), json!(5), json!(1000)]),
        ("securityContext.supplementalGroups", vec![json!([]), json!([0]), json!([5, 9]), json!([1000, 70000])]),
        ("securityContext.sysctls", sysctls.map(|name| json!([{"name": name, "value": "1"}])).to_vec()),
    ]);
    all
}

/// None, or one of these.
fn texts(texts: &[&str]) -> Vec<Json> {
    [Json::Null].into_iter().chain(texts.iter().map(|text| json!(text))).collect()
}

fn tolerations() -> Vec<Json> {
    let mut all = vec![
        Json::Null,
        json!([]),
        json!([{"operator": "Exists"}]),
        json!([{"operator": "Exists", "effect": "NoExecute"}]),
        json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]),
    ];
    for key in ["gpu", "text", "other"] {
        all.extend([
            json!([{"key": key, "operator": "Exists"}]),
            json!([{"key": key, "value": "text"}]),
            json!([{"key": key, "operator": "Equal", "effect": "NoSchedule"}]),
            json!([{"key": key, "operator": "Lt", "value": "5", "effect": "NoSchedule"}]),
        ]);
    }
    all
}

fn of_container() -> Vec<(&'static str, Vec<Json>)> {
    let capabilities =
        || vec![json!([]), json!(["NET_BIND_SERVICE"]), json!(["NET_RAW", "CHOWN"]), json!(["ALL"]), json!(["MKNOD"])];
    let images = [
        "nginx",
        "docker.io/someone/x:1",
        "registry.example/x",
        "registry.example/team/x@sha256:0",
        "registry.example.evil/x",
        "localhost:5000/x",
        "own.example/text/x",
    ];
    let mut all = shared();
    all.extend([
        ("securityContext", vec![Json::Null, json!({})]),
        ("securityContext.procMount", vec![Json::Null, json!("Default"), json!("Unmasked")]),
        ("securityContext.capabilities.add", capabilities()),
        ("securityContext.capabilities.drop", capabilities()),
        ("ports", [0, 1, 80, 8080, 9000].map(|port| json!([{"containerPort": 80, "hostPort": port}])).to_vec()),
        ("livenessProbe", vec![json!({"httpGet": {"port": 80}}), json!({"httpGet": {"port": 80, "host": "a"}})]),
        ("lifecycle", vec![json!({"preStop": {"tcpSocket": {"port": 80, "host": "a"}}})]),
        ("image", images.map(|image| json!(image)).to_vec()),
    ]);
    all
}

fn annotations() -> Vec<(&'static str, Vec<Json>)> {
    [
        ("container.apparmor.security.beta.kubernetes.io/main", ["runtime/default", "unconfined", "localhost/a.json"]),
        ("container.seccomp.security.alpha.kubernetes.io/main", ["runtime/default", "unconfined", "localhost/z.json"]),
        ("seccomp.security.alpha.kubernetes.io/pod", ["docker/default", "unconfined", "localhost/a.json"]),
    ]
    .map(|(key, values)| (key, values.map(|value| json!(value)).to_vec()))
    .into()
}

/// Whether a change of what `path` leads to can matter to a check that restricts the field.
fn concerns(path: &str, place: Place, field: &Field) -> bool {
    let beside = |field: &str| {
        let mut keys = path.split('.').zip(field.split(['.', '[']));
        keys.all(|(ours, theirs)| ours == theirs)
    };
    match (place, field) {
        (Place::Pod, Field::Pod(field)) | (Place::Container(_), Field::Container(field)) => beside(field),
        (Place::Annotation, Field::Annotation(key)) => path.starts_with(key),
        _ => false,
    }
}

/// The values that a check's fixtures have in its fields, where no list above says which to try.
fn of_fixtures(check: &Check) -> Vec<(Place, &'static str, Vec<Json>)> {
    let is_listed = |path: &str, listed: Vec<(&'static str, Vec<Json>)>| {
        listed.iter().any(|(of, _)| path == *of || (*of != "securityContext" && path.starts_with(&format!("{of}."))))
    };
    let fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures).unwrap();
    let pods: Vec<_> = fixtures.iter().map(Fixture::pod).collect();
    let values = |lists: &[&str], path: &str| {
        let pointer = format!("/{}", path.replace('.', "/"));
        let mut values = vec![Json::Null];
        for pod in &pods {
            let inside = lists.iter().filter_map(|list| pod["spec"][*list].as_array()).flatten();
            let owners = if lists.is_empty() { vec![&pod["spec"]] } else { inside.collect() };
            for value in owners.into_iter().filter_map(|owner| owner.pointer(&pointer)) {
                let both = [json!(true), json!(false)];
                let like = if value.is_boolean() { &both[..] } else { std::slice::from_ref(value) };
                values.extend(like.iter().filter(|&value| !values.contains(value)).cloned().collect::<Vec<_>>());
            }
        }
        values
    };
    let mut all = Vec::new();
    for field in check.fields {
        match *field {
            Field::Pod(path) if !path.contains("[*]") && !is_listed(path, of_pod()) => {
                all.push((Place::Pod, path, values(&[], path)));
            }
            Field::Container(path) if !path.contains("[*]") && !is_listed(path, of_container()) => {
                let lists = ["containers", "initContainers", "ephemeralContainers"];
                all.extend(lists.map(|list| (Place::Container(list), path, values(&lists, path))));
            }
            _ => {}
        }
    }
    all
}

/// Changes of what the checks look at, and of what frees a pod from some of them.
fn fields(checks: &[&Check]) -> Vec<(Place, &'static str, Vec<Json>)> {
    let of = |place, fields: Vec<(&'static str, Vec<Json>)>| {
        fields.into_iter().map(move |(path, values)| (place, path, values))
    };
    let mut all: Vec<_> = of(Place::Pod, of_pod()).chain(of(Place::Annotation, annotations())).collect();
    for list in ["containers", "containers", "initContainers", "ephemeralContainers"] {
        all.extend(of(Place::Container(list), of_container()));
    }
    all.extend(checks.iter().flat_map(|check| of_fixtures(check)));
    all.retain(|(place, path, _)| {
        ["hostUsers", "os"].contains(path)
            || checks.iter().flat_map(|check| check.fields).any(|field| concerns(path, *place, field))
    });
    all
}

fn volume() -> impl Strategy<Value = Change> {
    let paths = [
        "/",
        "/data",
        "/database",
        "/data/project/x",
        "/data/project/text/",
        "/data/team",
        "/public",
        "/etc/passwd",
        "/data/../etc",
    ];
    let mut sources: Vec<_> = paths.map(|path| json!({"hostPath": {"path": path}})).into();
    sources.extend([
        json!({"emptyDir": {}}),
        json!({"configMap": {"name": "x"}}),
        json!({"nfs": {"server": "x", "path": "/"}}),
        json!({"csi": {"driver": "csi.example.org"}}),
        json!({"csi": {"driver": "unknown.example.org"}}),
        json!({"flexVolume": {"driver": "example.org/flex"}}),
        json!({"flexVolume": {"driver": "example.org/unknown"}}),
        json!({"image": {"reference": "registry.example/model"}}),
        json!({"image": {}}),
    ]);
    let tokens = [
        json!({"path": "token"}),
        json!({"path": "token", "audience": "vault", "expirationSeconds": 600}),
        json!({"path": "token", "audience": "text", "expirationSeconds": 86400}),
        json!({"path": "token", "audience": "other"}),
    ];
    sources.extend(tokens.map(|token| json!({"projected": {"sources": [{"serviceAccountToken": token}]}})));
    sources.push(json!({"hostPath": {"path": "/public", "type": "DirectoryOrCreate"}}));
    let mounts = [
        json!({}),
        json!({"readOnly": false}),
        json!({"readOnly": true}),
        json!({"readOnly": true, "recursiveReadOnly": "Enabled"}),
        json!({"readOnly": true, "recursiveReadOnly": "IfPossible"}),
        json!({"mountPropagation": "None"}),
        json!({"mountPropagation": "HostToContainer"}),
        json!({"mountPropagation": "Bidirectional"}),
    ];
    (sample::select(sources), sample::select(mounts.to_vec()))
        .prop_map(|(source, mount)| Change::Volume { source, mount })
}

/// A change that can matter to one of the checks.
pub(crate) fn change(checks: &[&Check]) -> BoxedStrategy<Change> {
    let field = (sample::select(fields(checks)), any::<Index>(), any::<Index>()).prop_map(
        |((place, path, values), value, at)| Change::Field { place, path, value: value.get(&values).clone(), at },
    );
    let of_volume = |field: &Field| match field {
        Field::Volume(_) => true,
        Field::Container(path) => path.starts_with("volumeMounts"),
        Field::Pod(_) | Field::Annotation(_) => false,
    };
    let looks_at_volumes = |check: &&&Check| check.fields.iter().any(of_volume);
    match checks.iter().filter(looks_at_volumes).count() {
        0 => field.boxed(),
        some if some == checks.len() => prop_oneof![1 => field, 4 => volume()].boxed(),
        _ => prop_oneof![2 => field, 1 => volume()].boxed(),
    }
}

prop_compose! {
    pub(crate) fn shape()(more in prop::array::uniform3(prop::bool::weighted(0.25))) -> Shape {
        let [init, second, ephemeral] = more;
        Shape { init, second, ephemeral }
    }
}
