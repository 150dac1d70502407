//! `palisade suggest`: changes of profiles, and the workloads that they admit.

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::{Run, directory, run_in};

const PROFILE: &str = "
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: shop}
spec:
  namespaceSelector: {matchLabels: {tenancy: shop}}
  enforcement: {pods: Audit, namespaceStages: ByLabel}
  parameters: [{name: uid, type: Integer, sources: [{namespaceAnnotation: uid}]}]
  users:
    runAsUser: {rule: MustRunAs, ranges: [{min: $uid, max: $uid}]}
  volumes:
    allowed: [configMap, emptyDir, hostPath, projected, secret]
    hostPaths: [{pathPrefix: /srv/shared}]
  images: {allowedRegistries: [registry.example]}
";

/// A Deployment of a namespace with the uid, as the profile asks for it; with more in its pod and its container.
fn deployment(namespace: &str, name: &str, pod: &Json, container: &Json) -> Json {
    let mut spec = json!({
        "securityContext": {"runAsUser": 5000, "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": "app", "image": "registry.example/app:1",
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        }],
    });
    json_patch::merge(&mut spec, pod);
    json_patch::merge(&mut spec["containers"][0], container);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    })
}

fn mounting(path: &str, read_only: bool) -> (Json, Json) {
    let volume = json!({"volumes": [{"name": "v", "hostPath": {"path": path}}]});
    (volume, json!({"volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": read_only}]}))
}

fn namespace(name: &str, uid: Option<u32>) -> Json {
    let annotations = uid.map_or(json!({}), |uid| json!({"uid": uid.to_string()}));
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {"tenancy": "shop"}, "annotations": annotations},
    })
}

/// Three namespaces, and one that lacks its uid.
fn objects() -> Vec<Json> {
    let none = json!({});
    let mut all: Vec<_> = ["a", "b", "c"].map(|name| namespace(name, Some(5000))).into();
    all.push(namespace("d", None));
    let (volume, mount) = mounting("/etc/site/config.yaml", true);
    all.extend(["a", "b", "c"].map(|at| deployment(at, "web", &volume, &mount)));
    let unset = json!({"securityContext": null});
    all.extend(["a", "b"].map(|at| deployment(at, "old", &unset, &unset)));
    all.push(deployment("a", "cache", &none, &json!({"image": "docker.io/bitnami/redis:7"})));
    let (volume, mount) = mounting("/srv/other", false);
    all.push(deployment("b", "writer", &volume, &mount));
    all.push(deployment("c", "root", &json!({"securityContext": {"runAsUser": 0}}), &none));
    all.push(deployment(
        "c",
        "open",
        &none,
        &json!({"securityContext": {"privileged": true, "allowPrivilegeEscalation": true}}),
    ));
    all.push(deployment("d", "lost", &none, &none));
    all.push(deployment("a", "good", &none, &none));
    all
}

fn files(objects: &[Json]) -> TempDir {
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    directory(&[("profile.yaml", PROFILE), ("objects.json", objects.as_str())])
}

fn suggest(at: &TempDir, more: &[&str]) -> Run {
    let arguments = ["suggest", "--profile", "profile.yaml", "objects.json", "--time", "2026-11-25T08:00:00Z"];
    let run = run_in(at.path(), &[&arguments[..], more].concat(), "");
    assert_eq!(run.code, Some(0), "{}", run.err);
    run
}

fn json_of(at: &TempDir, more: &[&str]) -> Json {
    serde_json::from_str(&suggest(at, &[&["-o", "json"], more].concat()).out).unwrap()
}

fn texts(suggestion: &Json) -> Vec<&str> {
    suggestion["changes"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect()
}

fn places(list: &Json) -> Vec<String> {
    let place = |one: &Json| format!("{} {}", one["namespace"].as_str().unwrap(), one["workload"].as_str().unwrap());
    list.as_array().unwrap().iter().map(place).collect()
}

#[test]
fn changes_are_ranked_by_what_they_admit_and_cautions_come_last() {
    let all = json_of(&files(&objects()), &[]);
    let found: Vec<_> = all["suggestions"].as_array().unwrap().iter().map(texts).collect();
    let path = "spec.volumes.hostPaths += {pathPrefix: /etc/site/config.yaml, readOnly: true}";
    assert_eq!(
        found,
        [
            vec![path],
            vec!["spec.mutation.defaults: Secure"],
            vec!["spec.images.allowedRegistries += docker.io/bitnami"],
            vec!["spec.volumes.hostPaths += {pathPrefix: /srv/other}"],
        ]
    );
    let first = &all["suggestions"][0];
    assert_eq!((&first["workloads"], &first["namespaces"]), (&json!(3), &json!(3)));
    assert_eq!(places(&first["admits"]), ["a Deployment/web", "b Deployment/web", "c Deployment/web"]);
    assert_eq!(places(&all["suggestions"][1]["admits"]), ["a Deployment/old", "b Deployment/old"]);
    assert!(all["suggestions"][3]["changes"][0]["caution"].as_str().is_some_and(|text| text.contains("readOnly")));
    assert_eq!(all["violating"], json!({"workloads": 10, "namespaces": 4}));
    assert_eq!(all["admitted"], json!({"workloads": 7, "namespaces": 3}));
    assert_eq!(places(&all["left"]), ["c Deployment/open", "c Deployment/root", "d Deployment/lost"]);
    let why = all["left"].as_array().unwrap().iter().map(|one| one["why"].to_string()).collect::<Vec<_>>();
    assert!(why[0].contains("full control of the node") && why[1].contains("root"), "{why:?}");
    assert!(why[2].contains("has no value for a parameter"), "{why:?}");
}

#[test]
fn people_read_what_is_newly_allowed_and_who_is_left() {
    let at = files(&objects());
    let text = suggest(&at, &[]).out;
    for part in [
        "7 of 10 workloads that violate a profile comply after 4 changes.",
        "1. profile shop: spec.volumes.hostPaths += {pathPrefix: /etc/site/config.yaml, readOnly: true}\n   \
         admits 3 workloads in 3 namespaces",
        "Newly allowed: Any pod may mount /etc/site/config.yaml of its node and everything below it, read-only.",
        "Newly allowed: Any pod may run any image from docker.io/bitnami.",
        "Caution: Only namespace a needs it. An exception for this namespace would allow less",
        "Caution: Not every container mounts it with readOnly: true.",
        "3 workloads in 2 namespaces need a change by the owner: no profile change is proposed.",
        "Not proposed: a privileged container has full control of the node.",
    ] {
        assert!(text.contains(part), "{part}\n---\n{text}");
    }
    let one = suggest(&at, &["--top", "1"]).out;
    assert!(
        one.contains("Further changes admit 4 more workloads: list more with --top") && !one.contains("\n2. "),
        "{one}"
    );
}

#[test]
fn the_changed_profile_admits_what_was_said() {
    let at = files(&objects());
    let yaml = suggest(&at, &["-o", "yaml"]).out;
    assert!(yaml.starts_with("# spec.volumes.hostPaths += "), "{yaml}");
    // What only one namespace needs is for an exception.
    assert!(!yaml.contains("/srv/other") && !yaml.contains("bitnami"), "{yaml}");
    std::fs::write(at.path().join("next.yaml"), &yaml).unwrap();
    let arguments = ["suggest", "--profile", "next.yaml", "objects.json", "-o", "json"];
    let run = run_in(at.path(), &arguments, "");
    let after: Json = serde_json::from_str(&run.out).unwrap();
    let left: Vec<_> = after["suggestions"].as_array().unwrap().iter().map(texts).collect();
    let expected =
        ["spec.images.allowedRegistries += docker.io/bitnami", "spec.volumes.hostPaths += {pathPrefix: /srv/other}"];
    assert_eq!((left.concat(), after["left"].as_array().unwrap().len()), (expected.to_vec(), 3));
    // The merge patch is the same change.
    let patch = &json_of(&at, &[])["patches"]["shop"];
    assert_eq!(patch["spec"]["mutation"], json!({"defaults": "Secure"}));
    assert_eq!(patch["spec"]["volumes"]["hostPaths"].as_array().unwrap().len(), 2);
    assert_eq!(patch["spec"].as_object().unwrap().len(), 2, "{patch}");
}

#[test]
fn a_workload_that_needs_two_changes_counts_for_both() {
    let (volume, mount) = mounting("/etc/site/config.yaml", true);
    let mut container = json!({"image": "quay.io/acme/app:1"});
    json_patch::merge(&mut container, &mount);
    let objects = [namespace("a", Some(5000)), deployment("a", "web", &volume, &container)];
    let all = json_of(&files(&objects), &[]);
    let found: Vec<_> = all["suggestions"].as_array().unwrap().iter().map(texts).collect();
    let both = [
        "spec.images.allowedRegistries += quay.io/acme",
        "spec.volumes.hostPaths += {pathPrefix: /etc/site/config.yaml, readOnly: true}",
    ];
    let mut found = found.concat();
    found.sort_unstable();
    assert_eq!((all["suggestions"].as_array().unwrap().len(), found), (1, both.to_vec()));
}

#[test]
fn nothing_is_said_where_nothing_is_to_suggest() {
    let at = files(&[namespace("a", Some(5000)), deployment("a", "good", &json!({}), &json!({}))]);
    assert_eq!(suggest(&at, &[]).out, "No suggestions: none of 1 object violates a profile.\n");
    assert!(suggest(&at, &["-o", "yaml"]).out.starts_with("# No change without a caution is proposed"));
    // What is not judged does not change the exit code, as in a report.
    let at = files(&[deployment("x", "good", &json!({}), &json!({}))]);
    assert!(suggest(&at, &[]).out.contains("its labels are unknown"));
}

#[test]
fn no_change_opens_the_node_or_another_namespace() {
    let mut objects = vec![namespace("a", Some(5000))];
    for (index, path) in ["/", "/etc", "/var/run/docker.sock", "/var/lib/kubelet/pods", "/var/log"].iter().enumerate() {
        let (volume, mount) = mounting(path, true);
        objects.push(deployment("a", &format!("w{index}"), &volume, &mount));
    }
    objects.push(deployment("a", "other", &json!({"securityContext": {"runAsUser": 5001}}), &json!({})));
    let added = json!({"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}});
    objects.push(deployment("a", "admin", &json!({}), &added));
    objects.push(deployment("a", "network", &json!({"hostNetwork": true}), &json!({})));
    let all = json_of(&files(&objects), &[]);
    assert_eq!(all["suggestions"], json!([]), "{all}");
    assert_eq!(all["left"].as_array().unwrap().len(), 8, "{all}");
}

/// An object that is not tried is no object that complies.
#[test]
fn a_large_object_is_listed_as_not_judged() {
    let padding = json!({"args": ["x".repeat(300 << 10)], "image": "quay.io/acme/app:1"});
    let at = files(&[namespace("a", Some(5000)), deployment("a", "large", &json!({}), &padding)]);
    let text = suggest(&at, &[]).out;
    assert!(text.starts_with("No suggestions. Some objects were not evaluated"), "{text}");
    assert!(text.contains("a Deployment/large: it violates a profile, but no change was tried"), "{text}");
}

/// The API server adds a volume to each pod that no template has.
#[test]
fn the_volume_of_the_token_is_known() {
    let at = files(&[namespace("a", Some(5000)), deployment("a", "web", &json!({}), &json!({}))]);
    std::fs::write(at.path().join("profile.yaml"), PROFILE.replace("projected, ", "")).unwrap();
    let all = json_of(&at, &[]);
    let found: Vec<_> = all["suggestions"].as_array().unwrap().iter().map(texts).collect();
    assert_eq!(found.concat(), ["spec.volumes.allowed += projected"]);
}

const OF_OBJECTS: &str = r#"
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools}
spec:
  namespaceSelector: {matchLabels: {tenancy: shop}}
  baseline: Privileged
  enforcement: {pods: Audit}
  parameters: [{name: tool, type: String, sources: [{namespaceNameTrimPrefix: tool-}]}]
  network: {allowedHosts: [], allowedServiceTypes: [ClusterIP], allowEndpoints: false}
  storage: {allowedStorageClasses: [standard], maxRequest: 10Gi}
  access: {allowedRoleRefs: ["Role/*"]}
"#;

#[test]
fn values_for_other_objects_are_proposed() {
    let object = |api_version: &str, kind: &str, namespace: &str, rest: Json| {
        let mut object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "namespace": namespace}});
        json_patch::merge(&mut object, &rest);
        object
    };
    let ingress = |namespace: &str, host: &str| {
        let path =
            json!({"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}});
        let rest = json!({"spec": {"rules": [{"host": host, "http": {"paths": [path]}}]}});
        object("networking.k8s.io/v1", "Ingress", namespace, rest)
    };
    let claim = |namespace: &str, class: &str, size: &str| {
        let spec = json!({"storageClassName": class, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}});
        object("v1", "PersistentVolumeClaim", namespace, json!({"spec": spec}))
    };
    let binding = |namespace: &str, role: &str| {
        let rest = json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "web", "namespace": namespace}],
        });
        object("rbac.authorization.k8s.io/v1", "RoleBinding", namespace, rest)
    };
    let service = json!({"spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let objects = [
        namespace("tool-a", None),
        namespace("tool-b", None),
        ingress("tool-a", "a.toolforge.org"),
        ingress("tool-b", "b.toolforge.org"),
        claim("tool-a", "fast", "1Gi"),
        claim("tool-b", "fast", "100Gi"),
        binding("tool-a", "view"),
        binding("tool-b", "cluster-admin"),
        object("v1", "Service", "tool-b", service),
    ];
    let at = files(&objects);
    std::fs::write(at.path().join("profile.yaml"), OF_OBJECTS).unwrap();
    let all = json_of(&at, &[]);
    let found: Vec<_> = all["suggestions"].as_array().unwrap().iter().map(texts).collect();
    assert_eq!(
        found,
        [
            vec![r#"spec.network.allowedHosts += "$tool.toolforge.org""#],
            vec!["spec.storage.allowedStorageClasses += fast"],
            vec!["spec.access.allowedRoleRefs += ClusterRole/view"],
            vec!["spec.network.allowedServiceTypes += NodePort"],
        ],
        "{all}"
    );
    assert_eq!(places(&all["suggestions"][0]["admits"]), ["tool-a Ingress/web", "tool-b Ingress/web"]);
    assert!(all["suggestions"][3]["changes"][0]["caution"].as_str().is_some_and(|text| text.contains("any port")));
    assert_eq!(places(&all["left"]), ["tool-b PersistentVolumeClaim/web", "tool-b RoleBinding/web"]);
    let why = all["left"].as_array().unwrap().iter().map(|one| one["why"].to_string()).collect::<Vec<_>>();
    assert!(why[0].contains("the profile limits the size") && why[1].contains("controls the namespace"), "{why:?}");
    // The changed profile admits them.
    let changed = suggest(&at, &["-o", "yaml"]).out;
    assert!(changed.contains("- $tool.toolforge.org"), "{changed}");
    std::fs::write(at.path().join("profile.yaml"), changed).unwrap();
    let after = json_of(&at, &[]);
    assert!(!after["suggestions"].to_string().contains("allowedHosts"), "{after}");
}
