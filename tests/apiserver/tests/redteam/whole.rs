//! Pods in which several fields play together, and what a tenant may hope to be exempt by.

use serde_json::{Value as Json, json};

use crate::{
    fields::Case,
    pods::{
        Means::{self, Bad, BadForTools, Fine, Invalid, Never},
        UID, Value, complying, container, with,
    },
};

/// All of them.
pub(crate) fn pods() -> Vec<Case> {
    [contexts(), windows(), hopes(), malformed(), annotations()].into_iter().flatten().collect()
}

fn one(name: &str, check: &'static str, means: Means, changes: &[(&str, Value)]) -> Case {
    (name.to_owned(), check, with(complying("attack"), changes), means)
}

/// What a pod sets for all of its containers, also in a user namespace.
fn contexts() -> Vec<Case> {
    let mut cases = vec![];
    let mut case = |name: &str, check, means, changes: &[_]| cases.push(one(name, check, means, changes));
    let yes = || Some(json!(true));
    let unset_context = ("spec.securityContext", None);
    case("no pod securityContext", "seccompProfile", Bad, std::slice::from_ref(&unset_context));
    case("null pod securityContext", "runAsNonRoot", Bad, &[("spec.securityContext", Some(Json::Null))]);
    case("empty pod securityContext", "runAsNonRoot", Bad, &[("spec.securityContext", Some(json!({})))]);
    // User namespaces relax the standards, from v1.35 on, and no profile with ids of its own.
    let in_namespace = ("spec.hostUsers", Some(json!(false)));
    let root = ("spec.securityContext.runAsUser", Some(json!(0)));
    let may_root = ("spec.securityContext.runAsNonRoot", Some(json!(false)));
    case("root in a user namespace", "runAsUser", BadForTools, &[in_namespace.clone(), root, may_root]);
    let other = ("spec.securityContext.runAsUser", Some(json!(UID + 1)));
    case("another tool in a user namespace", "runAsUser", BadForTools, &[in_namespace.clone(), other]);
    let unmasked = ("spec.containers.0.securityContext.procMount", Some(json!("Unmasked")));
    case("unmasked /proc in a user namespace", "procMount", Bad, &[in_namespace.clone(), unmasked]);
    case("a user namespace", "", Fine, std::slice::from_ref(&in_namespace));
    case("a user namespace and hostPID", "", Never, &[in_namespace, ("spec.hostPID", yes())]);
    cases
}

/// Pods for Windows are exempt from four checks of the standards; those of tools have no user then.
fn windows() -> Vec<Case> {
    let mut cases = vec![];
    let mut case = |name: &str, check, means, changes: &[_]| cases.push(one(name, check, means, changes));
    let yes = || Some(json!(true));
    let windows = || {
        vec![
            ("spec.os", Some(json!({"name": "windows"}))),
            ("spec.securityContext", Some(json!({"runAsNonRoot": true}))),
            ("spec.containers.0.securityContext", Some(json!({}))),
        ]
    };
    case("for Windows", "runAsUser", BadForTools, &windows());
    let mut root = windows();
    root.push(("spec.securityContext.runAsNonRoot", None));
    case("for Windows, perhaps as root", "runAsNonRoot", Bad, &root);
    let mut process = windows();
    process.push(("spec.hostNetwork", yes()));
    process.push(("spec.securityContext.windowsOptions", Some(json!({"hostProcess": true}))));
    case("a HostProcess pod", "windowsHostProcess", Bad, &process);
    let mut process = windows();
    process.push(("spec.hostNetwork", yes()));
    process.push(("spec.containers.0.securityContext.windowsOptions", Some(json!({"hostProcess": true}))));
    case("a HostProcess container", "windowsHostProcess", Bad, &process);
    case("for Windows, with fields of Linux", "", Invalid, &[("spec.os", Some(json!({"name": "windows"})))]);
    case("for Linux", "", Fine, &[("spec.os", Some(json!({"name": "linux"})))]);
    case("for WINDOWS", "", Invalid, &[("spec.os", Some(json!({"name": "WINDOWS"})))]);

    cases
}

/// Nothing that a tenant writes on a pod exempts it.
fn hopes() -> Vec<Case> {
    let mut cases = vec![];
    let mut case = |name: &str, check, means, changes: &[_]| cases.push(one(name, check, means, changes));
    let yes = || Some(json!(true));
    let pid = || ("spec.hostPID", yes());
    for (name, path, value) in [
        (
            "annotated as static",
            "metadata.annotations",
            json!({"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "x"}),
        ),
        (
            "annotated as exempt",
            "metadata.annotations",
            json!({"toolsecurity.dev/exempt": "true", "toolsecurity.dev/profile": "none"}),
        ),
        ("labelled as of another profile", "metadata.labels", json!({"toolsecurity.dev/profile": "other"})),
        ("labelled as a probe", "metadata.labels", json!({"app.kubernetes.io/managed-by": "palisade"})),
        ("with another namespace's labels", "metadata.labels", json!({"kubernetes.io/metadata.name": "kube-system"})),
        ("about to be deleted", "metadata.deletionTimestamp", json!("2020-01-01T00:00:00Z")),
        ("made long ago", "metadata.creationTimestamp", json!("2020-01-01T00:00:00Z")),
        ("with a finalizer", "metadata.finalizers", json!(["example.com/hold"])),
        (
            "owned by a node",
            "metadata.ownerReferences",
            json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]),
        ),
        ("that says it runs", "status", json!({"phase": "Running", "qosClass": "BestEffort"})),
        ("with a known uid", "metadata.uid", json!("00000000-0000-0000-0000-000000000000")),
        ("with a resource version", "metadata.generation", json!(7)),
        ("made by the kubelet", "metadata.managedFields", json!([])),
        ("gated", "spec.schedulingGates", json!([{"name": "example.com/later"}])),
    ] {
        case(&format!("hostPID, {name}"), "hostNamespaces", Bad, &[pid(), (path, Some(value))]);
    }
    let mirror = ("metadata.annotations", Some(json!({"kubernetes.io/config.mirror": "x"})));
    let node = ("spec.nodeName", Some(json!("node")));
    case("hostPID, a mirror of a node", "hostNamespaces", Bad, &[pid(), mirror.clone(), node]);
    case("a mirror without a node", "", Invalid, &[mirror]);
    cases
}

/// What is not a pod.
fn malformed() -> Vec<Case> {
    let mut cases = vec![];
    let mut case = |name: &str, check, means, changes: &[_]| cases.push(one(name, check, means, changes));
    case(
        "ephemeral containers at creation",
        "",
        Invalid,
        &[("spec.ephemeralContainers", Some(json!([container("debugger")])))],
    );
    case("no containers", "", Invalid, &[("spec.containers", Some(json!([])))]);
    case("null containers", "", Invalid, &[("spec.containers", Some(Json::Null))]);
    case("containers as an object", "", Invalid, &[("spec.containers", Some(json!({"0": container("main")})))]);
    case("no spec", "", Invalid, &[("spec", None)]);
    cases
}

/// The annotations that fields replaced. The API server makes the field of AppArmor's, and none of seccomp's.
fn annotations() -> Vec<Case> {
    let mut cases = vec![];
    let mut case = |name: &str, check, means, changes: &[_]| cases.push(one(name, check, means, changes));
    let annotation = "container.apparmor.security.beta.kubernetes.io/";
    for (container, value, means) in [
        ("main", "unconfined", Bad),
        ("main", "runtime/default", Fine),
        ("main", "localhost/mine", Fine),
        ("main", "Unconfined", Never),
        ("main", "UNCONFINED", Never),
        ("main", "", Fine),
        ("nobody", "unconfined", Never),
    ] {
        let annotations = json!({format!("{annotation}{container}"): value});
        let name = format!("annotation of AppArmor {value:?} of {container}");
        case(&name, "appArmorProfile", means, &[("metadata.annotations", Some(annotations))]);
    }
    case(
        "annotation of AppArmor beside the field",
        "",
        Never,
        &[
            ("metadata.annotations", Some(json!({format!("{annotation}main"): "unconfined"}))),
            ("spec.containers.0.securityContext.appArmorProfile", Some(json!({"type": "RuntimeDefault"}))),
        ],
    );
    cases
}
