//! Kyverno's admission controller, outside of the cluster that it judges requests of.

use std::{path::Path, process::Command};

use palisade_controlplane::free_port;
use palisade_tests::Cluster;
use serde_json::{Value as Json, json};

use super::cel_of_profile;
use crate::{Result, arms::UID, engine::Engine};

const NAMESPACE: &str = "kyverno";
/// How many namespaces have a Policy each.
const NAMESPACES: u32 = 100;

/// Starts it from a directory with the program `kyverno`, so that it is asked about the pods of
/// one namespace.
pub(crate) fn start(cluster: &Cluster, directory: &Path, selected: &str) -> Result<Engine> {
    cluster.kubectl(&["create", "namespace", NAMESPACE])?;
    // What its chart sets, and that its webhooks are called for this namespace only.
    let webhooks = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": selected}}});
    let settings = [
        "--from-literal=enableDefaultRegistryMutation=true".to_owned(),
        "--from-literal=generateSuccessEvents=false".to_owned(),
        "--from-literal=excludeGroups=system:nodes".to_owned(),
        format!("--from-literal=webhooks={webhooks}"),
    ];
    let mut create = vec!["create", "configmap", "kyverno", "--namespace", NAMESPACE];
    create.extend(settings.iter().map(String::as_str));
    cluster.kubectl(&create)?;
    cluster.kubectl(&["create", "configmap", "kyverno-metrics", "--namespace", NAMESPACE])?;
    let [webhook, metrics] = [free_port()?, free_port()?];
    let kubeconfig = cluster.control_plane.kubeconfig_path();
    let mut command = Command::new(directory.join("kyverno"));
    command
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .arg(format!("--serverIP=127.0.0.1:{webhook}"))
        .args(["--webhookServerHost=127.0.0.1".to_owned(), format!("--webhookServerPort={webhook}")])
        .args(["--metricsHost=127.0.0.1".to_owned(), format!("--metricsPort={metrics}")])
        .arg("--controllerRuntimeMetricsAddress=0")
        .args(["--caSecretName=kyverno-ca", "--tlsSecretName=kyverno-tls"])
        .arg("--backgroundServiceAccountName=system:serviceaccount:kyverno:kyverno-background-controller")
        .arg("--reportsServiceAccountName=system:serviceaccount:kyverno:kyverno-reports-controller");
    for (name, value) in [
        ("KYVERNO_NAMESPACE", NAMESPACE),
        ("KYVERNO_SERVICEACCOUNT_NAME", "kyverno-admission-controller"),
        ("KYVERNO_DEPLOYMENT", "kyverno-admission-controller"),
        ("KYVERNO_POD_NAME", "kyverno-admission-controller-0"),
        ("INIT_CONFIG", "kyverno"),
        ("METRICS_CONFIG", "kyverno-metrics"),
    ] {
        command.env(name, value);
    }
    Engine::start(&mut command, &kubeconfig.with_file_name("kyverno.log"))
}

/// Toolforge's checks as a `ClusterPolicy` of patterns, for one namespace.
pub(crate) fn cluster_policy(namespace: &str) -> Result<Vec<Json>> {
    Ok(vec![as_cluster_policy(patterns()?, namespace)])
}

/// The same as a Policy in each of many namespaces, the last of which is the measured one.
pub(crate) fn policies(namespace: &str) -> Result<Vec<Json>> {
    let list = |items: Vec<Json>| json!({"apiVersion": "v1", "kind": "List", "items": items});
    let others: Vec<_> = (1..NAMESPACES).map(|number| format!("tool-{number:05}")).collect();
    let namespaces =
        others.iter().map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    let policies: Result<_> = others.iter().map(|name| policy(name)).collect();
    Ok(vec![list(namespaces.collect()), list(policies?), policy(namespace)?])
}

fn policy(namespace: &str) -> Result<Json> {
    let mut policy = patterns()?;
    policy["metadata"]["namespace"] = namespace.into();
    Ok(policy)
}

/// The same as a `ClusterPolicy` for tools with different uids: it reads the uid of the pod's namespace.
pub(crate) fn cluster_policy_with_parameters(namespace: &str) -> Result<Vec<Json>> {
    let mut policy = as_cluster_policy(patterns_of("{{ uid }}")?, namespace);
    policy["spec"]["rules"][0]["context"] = json!([{
        "name": "uid",
        "apiCall": {
            "urlPath": "/api/v1/namespaces/{{ request.namespace }}",
            "jmesPath": "to_number(metadata.annotations.\"toolforge.org/uid\")",
        },
    }]);
    Ok(vec![policy])
}

fn as_cluster_policy(mut policy: Json, namespace: &str) -> Json {
    policy["kind"] = "ClusterPolicy".into();
    for rule in policy["spec"]["rules"].as_array_mut().into_iter().flatten() {
        rule["match"]["any"][0]["resources"]["namespaces"] = json!([namespace]);
    }
    policy
}

fn patterns() -> Result<Json> {
    patterns_of(&UID.to_string())
}

fn patterns_of(uid: &str) -> Result<Json> {
    let whole = if uid.starts_with('{') { format!("'{uid}'") } else { uid.to_owned() };
    let text = include_str!("kyverno-policy.yaml").replace(": $uid", &format!(": {whole}")).replace("$uid", uid);
    Ok(serde_saphyr::from_str(&text)?)
}

/// The CEL that Palisade compiles Toolforge's profile to, with the uid a constant, as a `ValidatingPolicy`.
pub(crate) fn validating_policy(namespace: &str) -> Result<Vec<Json>> {
    let spec = cel_of_profile(namespace)?;
    Ok(vec![json!({
        "apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy", "metadata": {"name": namespace},
        "spec": {
            "validationActions": ["Deny"],
            "failurePolicy": "Fail",
            "matchConstraints": spec["matchConstraints"],
            "variables": spec["variables"],
            "validations": spec["validations"],
            "evaluation": {"background": {"enabled": false}},
            "autogen": {"podControllers": {"controllers": []}},
        },
    })])
}
