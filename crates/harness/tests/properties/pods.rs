//! Random pods: ones that comply with some settings, changed where the checks look.

use palisade_api::{Settings, catalogue};
use palisade_checks::{Values, pod};
use proptest::{
    prelude::*,
    sample::{self, Index},
};
use serde_json::{Value as Json, json};

/// A change of a pod: below its spec, or below one of its containers.
#[derive(Clone, Debug)]
struct Edit {
    place: Place,
    path: &'static str,
    value: Json,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Pod,
    Container(&'static str),
    /// An annotation, whose key is the path.
    Annotation,
}

/// A pod before it has a reason to be as it is.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    init: bool,
    second: bool,
    ephemeral: bool,
    complies: bool,
    edits: Vec<(Edit, Index)>,
    volumes: Vec<(Json, Option<bool>)>,
}

impl Draft {
    /// The pod, made to comply with the settings first, unless it is to be wild.
    pub(crate) fn pod(&self, settings: &Settings, values: &Values) -> Json {
        let mut pod = pod::minimal("random");
        let extra = |name: &str| json!([{"name": name, "image": "registry.example/x:1"}]);
        if self.init {
            pod["spec"]["initContainers"] = extra("init");
        }
        if self.ephemeral {
            pod["spec"]["ephemeralContainers"] = extra("debug");
        }
        if self.second {
            let more = extra("second");
            pod["spec"]["containers"].as_array_mut().into_iter().for_each(|list| list.push(more[0].clone()));
        }
        if self.complies {
            catalogue::ALL.iter().for_each(|check| (check.comply)(settings, values, &mut pod));
        }
        for (index, (source, read_only)) in self.volumes.iter().enumerate() {
            let name = format!("v{index}");
            let mut volume = source.clone();
            volume["name"] = json!(name);
            let mut mount = json!({"name": name, "mountPath": format!("/{name}")});
            if let Some(read_only) = read_only {
                mount["readOnly"] = json!(read_only);
            }
            append(&mut pod["spec"]["volumes"], volume);
            append(&mut pod["spec"]["containers"][0]["volumeMounts"], mount);
        }
        for (edit, at) in &self.edits {
            edit.apply(&mut pod, *at);
        }
        pod
    }
}

fn append(list: &mut Json, item: Json) {
    match list.as_array_mut() {
        Some(items) => items.push(item),
        None => *list = json!([item]),
    }
}

impl Edit {
    fn apply(&self, pod: &mut Json, at: Index) {
        let (target, keys): (&mut Json, Vec<_>) = match self.place {
            Place::Pod => (&mut pod["spec"], self.path.split('.').collect()),
            Place::Annotation => (&mut pod["metadata"]["annotations"], vec![self.path]),
            Place::Container(list) => match pod["spec"].get_mut(list).and_then(Json::as_array_mut) {
                Some(containers) => (at.get_mut(containers), self.path.split('.').collect()),
                None => return,
            },
        };
        let Some((last, parents)) = keys.split_last() else { return };
        let parent = parents.iter().fold(target, |at, key| &mut at[*key]);
        if self.value.is_null() {
            parent.as_object_mut().into_iter().for_each(|fields| drop(fields.remove(*last)));
        } else {
            parent[*last] = self.value.clone();
        }
        // Nothing has a field that is null.
        if parents.len() == 1 && parent.is_null() {
            *parent = json!({});
        }
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
    let ids = || vec![Json::Null, json!(0), json!(1), json!(5), json!(9), json!(10), json!(1000), json!(65536)];
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
    let flag = || vec![Json::Null, json!(true), json!(false)];
    let sysctls = ["kernel.shm_rmid_forced", "kernel.msgmax", "kernel/msgmax", "net.ipv4.tcp_syncookies", "fs.x"];
    let mut all = shared();
    all.extend([
        ("hostNetwork", flag()),
        ("hostPID", flag()),
        ("hostIPC", flag()),
        ("hostUsers", flag()),
        ("os", vec![json!({"name": "windows"}), json!({"name": "linux"})]),
        ("runtimeClassName", vec![Json::Null, json!("gvisor"), json!("kata"), json!("runc")]),
        ("securityContext", vec![Json::Null, json!({})]),
        ("securityContext.fsGroup", vec![Json::Null, json!(0), json!(5), json!(1000)]),
        ("securityContext.supplementalGroups", vec![json!([]), json!([0]), json!([5, 9]), json!([1000, 70000])]),
        ("securityContext.sysctls", sysctls.map(|name| json!([{"name": name, "value": "1"}])).to_vec()),
    ]);
    all
}

fn of_container() -> Vec<(&'static str, Vec<Json>)> {
    let flag = || vec![Json::Null, json!(true), json!(false)];
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
        ("securityContext.privileged", flag()),
        ("securityContext.allowPrivilegeEscalation", flag()),
        ("securityContext.readOnlyRootFilesystem", flag()),
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

fn edit() -> impl Strategy<Value = Edit> {
    let annotations = vec![
        ("container.apparmor.security.beta.kubernetes.io/main", ["runtime/default", "unconfined", "localhost/a.json"]),
        ("container.seccomp.security.alpha.kubernetes.io/main", ["runtime/default", "unconfined", "localhost/z.json"]),
        ("seccomp.security.alpha.kubernetes.io/pod", ["docker/default", "unconfined", "localhost/a.json"]),
    ];
    let annotations = annotations.into_iter().map(|(key, values)| (key, values.map(|value| json!(value)).to_vec()));
    let place = prop_oneof![Just("containers"), Just("initContainers"), Just("ephemeralContainers")];
    let choice = |fields: Vec<(&'static str, Vec<Json>)>| {
        sample::select(fields).prop_flat_map(|(path, values)| (Just(path), sample::select(values)))
    };
    prop_oneof![
        6 => choice(of_pod()).prop_map(|(path, value)| Edit { place: Place::Pod, path, value }),
        8 => (place, choice(of_container()))
            .prop_map(|(list, (path, value))| Edit { place: Place::Container(list), path, value }),
        1 => choice(annotations.collect())
            .prop_map(|(path, value)| Edit { place: Place::Annotation, path, value }),
    ]
}

fn volume() -> impl Strategy<Value = (Json, Option<bool>)> {
    let paths = [
        "/",
        "/data",
        "/database",
        "/data/project/x",
        "/data/project/text/",
        "/data/team",
        "/public",
        "/etc",
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
    (sample::select(sources), any::<Option<bool>>())
}

prop_compose! {
    pub(crate) fn draft()(
        (init, second, ephemeral) in any::<(bool, bool, bool)>(),
        complies in prop::bool::weighted(0.8),
        edits in prop::collection::vec((edit(), any::<Index>()), 0..5),
        volumes in prop::collection::vec(volume(), 0..2),
    ) -> Draft {
        Draft { init, second, ephemeral, complies, edits, volumes }
    }
}
