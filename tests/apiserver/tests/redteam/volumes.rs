//! Volumes: each kind that the API knows, and each way to write a path near an allowed one.

use serde_json::{Value as Json, json};

use crate::{
    pods::{By, complying, container},
    table::{Attack, Expect},
    wire::Request,
};

/// Each kind of volume: its source, and whether the example for tools and the Restricted level allow it.
fn kinds() -> Vec<(&'static str, Json, bool, bool)> {
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    vec![
        ("configMap", json!({"name": "x"}), true, true),
        ("downwardAPI", json!({"items": []}), true, true),
        ("emptyDir", json!({}), true, true),
        ("emptyDir", json!({"medium": "Memory"}), true, true),
        ("persistentVolumeClaim", json!({"claimName": "x"}), true, true),
        ("projected", json!({"sources": [{"configMap": {"name": "x"}}]}), true, true),
        ("secret", json!({"secretName": "x"}), true, true),
        ("csi", json!({"driver": "x.example"}), false, true),
        ("ephemeral", json!({"volumeClaimTemplate": claim}), false, true),
        ("hostPath", json!({"path": "/"}), false, false),
        ("awsElasticBlockStore", json!({"volumeID": "x"}), false, false),
        ("azureDisk", json!({"diskName": "x", "diskURI": "https://x.blob.core.windows.net/x"}), false, false),
        ("azureFile", json!({"secretName": "x", "shareName": "x"}), false, false),
        ("cephfs", json!({"monitors": ["x"]}), false, false),
        ("cinder", json!({"volumeID": "x"}), false, false),
        ("fc", json!({"targetWWNs": ["x"], "lun": 0}), false, false),
        ("flexVolume", json!({"driver": "x.example/x"}), false, false),
        ("flocker", json!({"datasetName": "x"}), false, false),
        ("gcePersistentDisk", json!({"pdName": "x"}), false, false),
        ("gitRepo", json!({"repository": "https://x.example/x"}), false, false),
        ("glusterfs", json!({"endpoints": "x", "path": "/"}), false, false),
        (
            "iscsi",
            json!({"targetPortal": "192.0.2.1", "iqn": "iqn.2001-04.com.example:storage", "lun": 0}),
            false,
            false,
        ),
        ("nfs", json!({"server": "nfs.example", "path": "/"}), false, false),
        ("photonPersistentDisk", json!({"pdID": "x"}), false, false),
        ("portworxVolume", json!({"volumeID": "x"}), false, false),
        ("quobyte", json!({"registry": "x:1", "volume": "x"}), false, false),
        ("rbd", json!({"monitors": ["x"], "image": "x"}), false, false),
        (
            "scaleIO",
            json!({"gateway": "x", "system": "x", "volumeName": "x", "secretRef": {"name": "x"}}),
            false,
            false,
        ),
        ("storageos", json!({"volumeName": "x"}), false, false),
        ("vsphereVolume", json!({"volumePath": "x"}), false, false),
    ]
}

fn pod(volumes: Json, mounts: Json) -> Json {
    let mut pod = complying("attack");
    pod["spec"]["volumes"] = volumes;
    pod["spec"]["containers"][0]["volumeMounts"] = mounts;
    pod
}

/// Attacks by kinds of volumes.
pub(crate) fn kinds_of_volumes(by: By, namespace: &str) -> Vec<Attack> {
    let mut attacks = vec![];
    let mut attack = |name: String, volumes: Json, expect: Expect| {
        attacks.push(Attack::new(name, Request::pod(namespace, &pod(volumes, json!([]))), expect));
    };
    for (kind, source, tools, restricted) in kinds() {
        let allowed = if by == By::Toolforge { tools } else { restricted };
        // Where the kind is allowed, it is denied for its path.
        let check = if kind == "hostPath" && by == By::Toolforge { "hostPathVolumes" } else { "restrictedVolumes" };
        let expect = if allowed { Expect::Admitted } else { Expect::check(check) };
        attack(format!("volume {kind} {source}"), json!([{"name": "v", kind: source}]), expect.clone());
        let second = json!([{"name": "u", "emptyDir": {}}, {"name": "v", kind: source}]);
        attack(format!("volume {kind} {source}, the second"), second, expect);
        if kind != "emptyDir" {
            let two = json!([{"name": "v", "emptyDir": {}, kind: source}]);
            attack(format!("volume {kind} and emptyDir in one"), two, Expect::Refused);
        }
        let null = json!([{"name": "v", kind: null}]);
        attack(format!("volume {kind} null, so emptyDir"), null, Expect::Admitted);
    }
    // Pulled by the kubelet, as an image of a container is.
    let image = |reference: &str| json!([{"name": "v", "image": {"reference": reference}}]);
    let expect = if by == By::Toolforge { Expect::check("restrictedVolumes") } else { Expect::Admitted };
    attack("volume image".to_owned(), image("evil.example/x"), expect);
    attack(
        "an unknown kind of volume, so emptyDir".to_owned(),
        json!([{"name": "v", "newKind": {}}]),
        Expect::Admitted,
    );
    attack("HOSTPATH".to_owned(), json!([{"name": "v", "HOSTPATH": {"path": "/"}}]), Expect::Admitted);
    attacks
}

/// Paths that tools may write to, and others that they may read.
const WRITABLE: [&str; 3] = ["/var/lib/sss/pipes", "/data/project", "/data/scratch"];
const READABLE: [&str; 6] =
    ["/public/dumps", "/mnt/nfs", "/etc/wmcs-project", "/etc/ldap.yaml", "/etc/novaobserver.yaml", "/etc/ldap.conf"];

fn by_path(namespace: &str, name: String, source: &Json, mounts: &Json, expect: Expect) -> Attack {
    let pod = pod(json!([{"name": "v", "hostPath": source}]), mounts.clone());
    Attack::new(name, Request::pod(namespace, &pod), expect)
}

fn mounted(read_only: Option<bool>) -> Json {
    let mut mount = json!({"name": "v", "mountPath": "/m"});
    if let Some(read_only) = read_only {
        mount["readOnly"] = read_only.into();
    }
    json!([mount])
}

fn bad() -> Expect {
    Expect::check("hostPathVolumes")
}

/// Paths that are below an allowed one, and paths that are written almost as if they were.
fn near(namespace: &str) -> Vec<Attack> {
    let mut attacks = vec![];
    let mut attack = |name: String, source: Json, mounts: Json, expect: Expect| {
        attacks.push(by_path(namespace, name, &source, &mounts, expect));
    };
    for (prefixes, writable) in [(WRITABLE.as_slice(), true), (READABLE.as_slice(), false)] {
        for prefix in prefixes {
            let below = ["", "/", "/x", "/x/y/", "//", "/./x", "/.../x", "/..x", "/x..", "/%2e%2e"];
            for path in below.map(|below| format!("{prefix}{below}")) {
                attack(
                    format!("hostPath {path:?}, read-only"),
                    json!({"path": path}),
                    mounted(Some(true)),
                    Expect::Admitted,
                );
                for read_only in [None, Some(false)] {
                    let expect = if writable { Expect::Admitted } else { bad() };
                    let name = format!("hostPath {path:?}, readOnly {read_only:?}");
                    attack(name, json!({"path": path}), mounted(read_only), expect);
                }
            }
            let parent =
                prefix.rsplit_once('/').map_or("/", |(parent, _)| if parent.is_empty() { "/" } else { parent });
            let double = prefix.replacen('/', "//", 1);
            let near = [
                format!("{prefix}x"),
                format!("{prefix}-other/y"),
                format!("{prefix} "),
                format!("{prefix}\\..\\.."),
                format!("{prefix}\u{2044}x"),
                format!("{prefix}\n"),
                format!(" {prefix}"),
                format!("/.{prefix}"),
                format!("/proc/self/root{prefix}"),
                prefix.to_uppercase(),
                prefix.trim_start_matches('/').to_owned(),
                double,
                parent.to_owned(),
            ];
            for path in near {
                let name = format!("hostPath {path:?}, near {prefix}");
                attack(name, json!({"path": path}), mounted(Some(true)), bad());
            }
            for rest in ["/..", "/../..", "/x/../../..", "/../../etc/shadow"] {
                // The API server refuses these by itself, too.
                let path = format!("{prefix}{rest}");
                attack(format!("hostPath {path:?}"), json!({"path": path}), mounted(Some(true)), Expect::Stopped);
            }
        }
    }
    attacks
}

/// Attacks by paths of the node, on the example for tools.
pub(crate) fn paths(namespace: &str) -> Vec<Attack> {
    let mut attacks = near(namespace);
    let mut attack = |name: String, source: Json, mounts: Json, expect: Expect| {
        attacks.push(by_path(namespace, name, &source, &mounts, expect));
    };
    for path in [
        "/",
        "/etc",
        "/etc/kubernetes",
        "/var/run/docker.sock",
        "/run/containerd",
        "/proc",
        "/dev",
        "/sys",
        "/root",
        "C:\\data",
    ] {
        for read_only in [None, Some(true)] {
            attack(
                format!("hostPath {path:?}, readOnly {read_only:?}"),
                json!({"path": path}),
                mounted(read_only),
                bad(),
            );
        }
    }
    attack("hostPath without a path".to_owned(), json!({}), mounted(None), Expect::Stopped);
    attack("hostPath null".to_owned(), json!({"path": null}), mounted(None), Expect::Stopped);
    attack("hostPath 1".to_owned(), json!({"path": 1}), mounted(None), Expect::Refused);
    // The kubelet makes what is not there as root, also below a path that is only to be read.
    for kind in ["DirectoryOrCreate", "FileOrCreate"] {
        let source = json!({"path": "/public/dumps/new", "type": kind});
        attack(format!("hostPath that is made, {kind}, below a read-only path"), source, mounted(Some(true)), bad());
    }
    for kind in ["", "Directory", "File"] {
        let source = json!({"path": "/public/dumps/x", "type": kind});
        attack(
            format!("hostPath of type {kind:?} below a read-only path"),
            source,
            mounted(Some(true)),
            Expect::Admitted,
        );
    }
    attack(
        "hostPath of an unknown type".to_owned(),
        json!({"path": "/data/project", "type": "directory"}),
        mounted(None),
        Expect::Refused,
    );
    attack(
        "mounted above itself".to_owned(),
        json!({"path": "/data/project"}),
        json!([{"name": "v", "mountPath": "/m", "subPath": "../.."}]),
        Expect::Refused,
    );
    let both = json!([
        {"name": "v", "mountPath": "/m", "readOnly": true}, {"name": "v", "mountPath": "/n"},
    ]);
    attack("read-only once and writable once".to_owned(), json!({"path": "/mnt/nfs"}), both, bad());
    attacks.extend(elsewhere(namespace));
    attacks
}

/// A read-only path that another container than the first mounts to write.
fn elsewhere(namespace: &str) -> Vec<Attack> {
    let volumes = json!([{"name": "v", "hostPath": {"path": "/public/dumps"}}]);
    let mut writer = container("writer");
    writer["volumeMounts"] = json!([{"name": "v", "mountPath": "/m"}]);
    let mut attacks = vec![];
    for (place, means) in [("containers", json!([container("main"), writer])), ("initContainers", json!([writer]))] {
        let mut pod = pod(volumes.clone(), json!([{"name": "v", "mountPath": "/m", "readOnly": true}]));
        pod["spec"][place] = means;
        let how = Request::pod(namespace, &pod);
        attacks.push(Attack::new(
            format!("a read-only path that one of {place} writes"),
            how,
            Expect::check("hostPathVolumes"),
        ));
    }
    attacks
}
