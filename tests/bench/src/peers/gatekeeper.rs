//! Gatekeeper, outside of the cluster that it judges requests of.

use std::{fs, path::Path, process::Command};

use palisade_controlplane::free_port;
use palisade_kube_json::pod;
use palisade_tests::Cluster;
use serde_json::{Value as Json, json};

use super::cel_of_profile;
use crate::{Result, arms::UID, engine::Engine, measure};

const NAMESPACE: &str = "gatekeeper-system";
/// Its pod, which no node runs.
const POD: &str = "gatekeeper-0";
const TEMPLATE: &str = "templates.gatekeeper.sh/v1";
const CONSTRAINT: &str = "constraints.gatekeeper.sh/v1beta1";

/// Starts it from a directory with the program `gatekeeper`, with its webhook, which is called
/// for the pods of one namespace.
pub(crate) fn webhook(cluster: &Cluster, directory: &Path, selected: &str) -> Result<Engine> {
    let (engine, port) = start(cluster, directory, &["--operation=webhook"])?;
    let kubeconfig: Json = serde_saphyr::from_str(cluster.control_plane.kubeconfig())?;
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "gatekeeper-validating-webhook-configuration"},
        "webhooks": [{
            "name": "validation.gatekeeper.sh",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "url": format!("https://127.0.0.1:{port}/v1/admit"),
                "caBundle": kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"],
            },
            "failurePolicy": "Fail",
            "matchPolicy": "Exact",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": selected}},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["pods", "pods/ephemeralcontainers"],
            }],
            "sideEffects": "None",
            "timeoutSeconds": 10,
        }],
    });
    measure::apply(cluster, &webhook)?;
    Ok(engine)
}

/// Starts it to generate policies for the API server, without a webhook.
pub(crate) fn generator(cluster: &Cluster, directory: &Path, _: &str) -> Result<Engine> {
    // As in its chart it audits, too, or it refuses to start; it does so never. The scope would be that of a webhook.
    let own = [
        "--operation=audit",
        "--audit-interval=0",
        "--sync-vap-enforcement-scope=false",
        "--default-wait-for-vapb-generation=1",
    ];
    Ok(start(cluster, directory, &own)?.0)
}

fn start(cluster: &Cluster, directory: &Path, own: &[&str]) -> Result<(Engine, u16)> {
    cluster.kubectl(&["create", "namespace", NAMESPACE])?;
    // What it reports belongs to its pod: of one that is not there, it would be collected as garbage all the time.
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD, "namespace": NAMESPACE},
        "spec": {"serviceAccountName": POD, "containers": [{"name": "manager", "image": "gatekeeper"}]},
    });
    cluster.kubectl(&["create", "serviceaccount", POD, "--namespace", NAMESPACE])?;
    measure::apply(cluster, &pod)?;
    let kubeconfig = cluster.control_plane.kubeconfig_path();
    // The API server's own certificate is one for loopback.
    let certificates = kubeconfig.with_file_name("gatekeeper-certificates");
    fs::create_dir(&certificates)?;
    for (from, to) in [("serving.crt", "tls.crt"), ("serving.key", "tls.key")] {
        fs::copy(kubeconfig.with_file_name(from), certificates.join(to))?;
    }
    let [port, health, metrics] = [free_port()?, free_port()?, free_port()?];
    let mut command = Command::new(directory.join("gatekeeper"));
    command
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .args(["--host=127.0.0.1".to_owned(), format!("--port={port}")])
        .arg(format!("--health-addr=127.0.0.1:{health}"))
        .arg(format!("--prometheus-port={metrics}"))
        .args([format!("--cert-dir={}", certificates.display()), "--disable-cert-rotation".to_owned()])
        // The definitions of the constraints' kinds are generated, too.
        .args(["--operation=generate", "--operation=status"])
        .arg("--exempt-namespace=gatekeeper-system")
        .args(own)
        .env("POD_NAMESPACE", NAMESPACE)
        .env("POD_NAME", POD);
    Ok((Engine::start(&mut command, &kubeconfig.with_file_name("gatekeeper.log"))?, port))
}

/// Toolforge's checks as templates of Rego and a constraint of each.
pub(crate) fn rego(namespace: &str) -> Result<Vec<Json>> {
    let templates: Vec<Json> = serde_saphyr::from_multiple(include_str!("gatekeeper-rego.yaml"))?;
    let paths = ["/var/lib/sss/pipes", "/data/project", "/data/scratch"];
    let read_only = [
        "/public/dumps",
        "/mnt/nfs",
        "/etc/wmcs-project",
        "/etc/ldap.yaml",
        "/etc/novaobserver.yaml",
        "/etc/ldap.conf",
    ];
    let all_paths = [&paths[..], &read_only].concat();
    let kinds = ["configMap", "downwardAPI", "emptyDir", "hostPath", "persistentVolumeClaim", "projected", "secret"];
    let sysctls = [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    ];
    let registries =
        ["docker-registry.svc.toolforge.org", "docker-registry.tools.wmflabs.org", "tools-harbor.wmcloud.org"];
    let parameters = |kind: &str| match kind {
        "ToolPrivileges" => json!({"sysctls": sysctls}),
        "ToolUsers" => json!({"uid": UID}),
        "ToolVolumes" => json!({"kinds": kinds, "paths": all_paths, "readOnlyPaths": read_only}),
        "ToolImages" => json!({"registries": registries}),
        _ => json!({}),
    };
    let kinds_of_constraints: Vec<_> =
        templates.iter().filter_map(|template| template.pointer("/spec/crd/spec/names/kind")?.as_str()).collect();
    let constraints: Vec<_> = kinds_of_constraints
        .into_iter()
        .map(|kind| constraint(kind, &json!({"namespaces": [namespace]}), &parameters(kind)))
        .collect();
    Ok([templates, constraints].concat())
}

/// The CEL that Palisade compiles Toolforge's profile to, with the uid a constant, which the webhook evaluates.
pub(crate) fn cel(namespace: &str) -> Result<Vec<Json>> {
    in_cel(namespace, false)
}

/// The same, which the API server evaluates.
pub(crate) fn generated(namespace: &str) -> Result<Vec<Json>> {
    in_cel(namespace, true)
}

fn in_cel(namespace: &str, generate: bool) -> Result<Vec<Json>> {
    let spec = cel_of_profile(namespace)?;
    let source = json!({
        "variables": spec["variables"], "validations": spec["validations"], "generateVAP": generate, "failurePolicy": "Fail",
    });
    let template = json!({
        "apiVersion": TEMPLATE, "kind": "ConstraintTemplate", "metadata": {"name": "toolprofile"},
        "spec": {
            "crd": {"spec": {"names": {"kind": "ToolProfile"}}},
            "targets": [{
                "target": "admission.k8s.gatekeeper.sh",
                "code": [{"engine": "K8sNativeValidation", "source": source}],
            }],
        },
    });
    // By labels, the binding selects namespaces: the policy's conditions are not judged in others.
    let selects = if generate {
        json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}})
    } else {
        json!({"namespaces": [namespace]})
    };
    Ok(vec![template, constraint("ToolProfile", &selects, &json!({}))])
}

fn constraint(kind: &str, selects: &Json, parameters: &Json) -> Json {
    let mut matches = json!({"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]});
    pod::merge(&mut matches, selects);
    let mut spec = json!({"match": matches});
    // A kind without parameters has no field for them.
    if *parameters != json!({}) {
        spec["parameters"] = parameters.clone();
    }
    json!({"apiVersion": CONSTRAINT, "kind": kind, "metadata": {"name": "tools"}, "spec": spec})
}
