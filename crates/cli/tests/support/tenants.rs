//! A cluster of tenants, as large as one likes, of which it is known what violates the profile.

use std::collections::BTreeMap;

use palisade_kube_json::json::set;
use serde_json::{Value as Json, json};

/// The profile.
pub const PROFILE: &str = "
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tenants}
spec:
  namespaceSelector: {matchLabels: {tenancy: tool}}
  baseline: Baseline
  enforcement: {pods: Audit, workloads: Audit, namespaceStages: ByLabel}
  parameters: [{name: uid, type: Integer, sources: [{namespaceAnnotation: uid}]}]
  users: {runAsUser: {rule: MustRunAs, ranges: [{min: $uid, max: $uid}]}}
  images: {allowedRegistries: [registry.example]}
  mutation: {defaults: Secure}
";

/// What is in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All complies.
    Ready,
    /// A Deployment violates checks whose demands are known.
    Privileged,
    /// A CronJob does.
    Root,
    /// An image is from somewhere else.
    Image,
    /// The namespace lacks a parameter.
    Parameter,
    /// No profile selects it.
    Outside,
}

/// What is in the namespace with this number.
pub fn kind(index: usize) -> Kind {
    match index % 20 {
        3 | 14 => Kind::Privileged,
        7 => Kind::Root,
        11 => Kind::Image,
        17 => Kind::Parameter,
        19 => Kind::Outside,
        _ => Kind::Ready,
    }
}

/// Names that one could meet.
pub fn name(index: usize) -> String {
    let words =
        ["archive", "billing", "catalog", "dashboard", "encoder", "forms", "gallery", "harvest", "images", "journal"];
    format!("tool-{}-{index:04}", words[index % words.len()])
}

fn stage(index: usize) -> Option<&'static str> {
    [Some("Deny"), Some("Warn"), None, Some("Deny"), None][index % 5]
}

fn spec(image: &str, uid: usize, privileged: bool) -> Json {
    let security = if privileged { json!({"privileged": true}) } else { json!({}) };
    json!({
        "hostNetwork": privileged, "securityContext": {"runAsUser": uid},
        "containers": [{"name": "app", "image": image, "securityContext": security}],
    })
}

fn template(name: &str, spec: &Json) -> Json {
    json!({"metadata": {"labels": {"app": name}}, "spec": spec})
}

/// The objects of a namespace: itself, and a Deployment with its ReplicaSet and pods, and a CronJob.
pub fn objects(index: usize, kind: Kind) -> Vec<Json> {
    let (namespace, uid) = (name(index), 50_000 + index);
    let mut labels = BTreeMap::new();
    if kind != Kind::Outside {
        labels.insert("tenancy", "tool");
    }
    labels.extend(stage(index).map(|stage| ("stage.toolsecurity.dev/tenants", stage)));
    let annotations = if kind == Kind::Parameter { json!({}) } else { json!({"uid": uid.to_string()}) };
    let mut objects = vec![json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace, "labels": labels, "annotations": annotations},
    })];
    let image = if kind == Kind::Image { "docker.io/library/redis:7" } else { "registry.example/web:1" };
    let web = spec(image, uid, matches!(kind, Kind::Privileged | Kind::Outside));
    let mut job = spec("registry.example/job:1", if kind == Kind::Root { 0 } else { uid }, false);
    set(&mut job, &["restartPolicy"], "OnFailure");
    let metadata = |name: &str, owner: Option<(&str, &str, &str)>| {
        let owners: Vec<_> = owner
            .map(|(api_version, kind, name)| {
                json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": format!("{index}-{name}"), "controller": true})
            })
            .into_iter()
            .collect();
        json!({
            "name": name, "namespace": namespace, "uid": format!("{index}-{name}"), "resourceVersion": "7",
            "labels": {"app": "web"}, "ownerReferences": owners,
        })
    };
    let selector = json!({"matchLabels": {"app": "web"}});
    objects.push(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("web", None),
        "spec": {"replicas": 2, "selector": selector, "template": template("web", &web)}, "status": {"replicas": 2},
    }));
    objects.push(json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata("web-1", Some(("apps/v1", "Deployment", "web"))),
        "spec": {"replicas": 2, "selector": selector, "template": template("web", &web)},
    }));
    for pod in ["web-1-a", "web-1-b"] {
        objects.push(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": metadata(pod, Some(("apps/v1", "ReplicaSet", "web-1"))),
            "spec": web, "status": {"phase": "Running"},
        }));
    }
    objects.push(json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata("nightly", None),
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": {"spec": job}}}},
    }));
    objects
}

/// A cluster with so many namespaces, as files of a directory: a profile, and objects of some hundred namespaces each.
pub fn cluster(count: usize) -> Vec<(String, String)> {
    let mut files = vec![("profile.yaml".to_owned(), PROFILE.to_owned())];
    let numbers: Vec<_> = (0..count).collect();
    for (index, part) in numbers.chunks(500).enumerate() {
        let items: Vec<_> = part.iter().flat_map(|&index| objects(index, kind(index))).collect();
        files.push((
            format!("objects-{index}.json"),
            json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string(),
        ));
    }
    files
}
