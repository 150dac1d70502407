//! The additions to a tool's pods, and the objects in its namespace.

use palisade_controller::Options;
use palisade_tests::{Cluster, TestResult, ensure, eventually, root};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use crate::generate::{permit, revoke};

const KINDS: [(&str, &str, &str); 3] = [
    ("v1", "ResourceQuota", "resourcequotas"),
    ("v1", "LimitRange", "limitranges"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
];
const BIND: &str = "palisade-controller-bind";
/// The role that the binding gives.
const ROLE: &str = "tools-user";

/// The parts of a pod's spec that additions can change, apart from those of service accounts.
pub(super) fn parts(spec: &Json) -> Json {
    let foreign = |one: &Json| {
        let name = one["name"].as_str().unwrap_or_default();
        name.starts_with("kube-api-access-") || one["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
    };
    let some = |object: &Json, fields: &[&str]| -> Map<String, Json> {
        let found = fields.iter().filter_map(|field| {
            let mut value = object.get(*field).cloned()?;
            if let Some(list) = value.as_array_mut() {
                list.retain(|one| !foreign(one));
            }
            let is_empty = value.as_array().is_some_and(Vec::is_empty);
            (!is_empty).then(|| ((*field).to_owned(), value))
        });
        found.collect()
    };
    let mut parts = some(spec, &["volumes", "nodeSelector", "affinity"]);
    for list in ["containers", "initContainers"] {
        let containers = spec[list].as_array().into_iter().flatten();
        let containers: Vec<_> =
            containers.map(|one| some(one, &["name", "volumeMounts", "env", "workingDir"])).collect();
        if !containers.is_empty() {
            parts.insert(list.to_owned(), json!(containers));
        }
    }
    parts.into()
}

/// An object in the namespace of a tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Generated {
    name: String,
    path: String,
    /// Fields of the object.
    object: Map<String, Json>,
}

/// The profile generates the objects that a tool has, each with a row of the example's table.
pub(super) async fn objects(cluster: &mut Cluster, profile: Json) -> TestResult<Vec<String>> {
    let text = std::fs::read_to_string(root().join("tests/apiserver/cases/toolforge-generated.yaml"))?;
    let expected: Vec<Generated> = serde_saphyr::from_str(&text)?;
    permit(cluster, &KINDS.map(|(version, _, resource)| (version, resource)))?;
    // As the chart does for `generate.clusterRoles`.
    let name = format!("--resource-name={ROLE}");
    let account = format!("--serviceaccount=palisade-system:{}", palisade_api::names::CONTROLLER);
    cluster.kubectl(&["create", "clusterrole", ROLE, "--verb=get", "--resource=pods"])?;
    cluster.kubectl(&["create", "clusterrole", BIND, "--verb=bind", "--resource=clusterroles", &name])?;
    cluster.kubectl(&["create", "clusterrolebinding", BIND, &format!("--clusterrole={BIND}"), &account])?;
    let kinds = KINDS.map(|(version, kind, resource)| format!("{version}/{kind}/{resource}").parse());
    let generate = kinds.into_iter().collect::<Result<_, _>>()?;
    cluster.restart_controller(Options { generate, ..Cluster::options()? }).await?;
    cluster.apply_profile(&profile).await?;
    let mut rows = Vec::new();
    for one in &expected {
        eventually(&one.path, || async {
            let found = cluster.answer_to("GET", &one.path, &json!({})).await?;
            let differs = one.object.iter().find(|(field, value)| found.get(field) != Some(value));
            differs.map_or(Ok(()), |(field, value)| Err(format!("{field}: {value}, found {}", found[field])))
        })
        .await?;
        rows.push(format!("| a namespace of a new tool: {} | created | created | created |  |", one.name));
    }
    let templates = profile["spec"]["generate"].as_array().map_or(0, Vec::len);
    ensure!(templates == expected.len(), "{templates} templates");
    cluster.delete_profile(profile["metadata"]["name"].as_str().unwrap_or_default()).await?;
    cluster.kubectl(&["delete", "clusterrole", ROLE])?;
    cluster.kubectl(&["delete", "clusterrole,clusterrolebinding", BIND])?;
    revoke(cluster)?;
    cluster.restart_controller(Cluster::options()?).await?;
    Ok(rows)
}
