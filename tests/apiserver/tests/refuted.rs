//! An edit whose probes fail is taken back.

use std::time::Duration;

use palisade_api::names;
use palisade_tests::{Cluster, TestResult, ensure, eventually, hostile_pod, tool_pod};
use serde_json::{Value as Json, json};

use crate::lifecycle::Watch;

crate::groups::scenarios! {
    an_edit_that_probes_refute_is_taken_back: Reconciled 110 needs NATIVE_MUTATION;
}

const UID: i64 = 50_001;
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// Something of somebody else that adds an alias of a host to each pod, as injectors of sidecars do.
fn injector(namespaces: &[&str]) -> [(String, Json); 2] {
    let name = json!({"name": "aliases-of-others"});
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]);
    let selector = json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces},
    ]});
    let alias = r#"Object{spec: Object.spec{hostAliases: [Object.spec.hostAliases{ip: "10.0.0.1"}]}}"#;
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": name,
        "spec": {
            "reinvocationPolicy": "Never", "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules, "namespaceSelector": selector},
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": alias}}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": name,
        "spec": {"policyName": "aliases-of-others"},
    });
    [
        (format!("{GROUP}/mutatingadmissionpolicies"), policy),
        (format!("{GROUP}/mutatingadmissionpolicybindings"), binding),
    ]
}

/// The generation that the policy for pods was made of.
async fn in_force(cluster: &Cluster, test: &str) -> std::result::Result<String, String> {
    let policy = cluster.policies().get(&names::policy(test, names::Shape::Pods)).await.map_err(|e| e.to_string())?;
    let annotations = policy.metadata.annotations.unwrap_or_default();
    Ok(annotations.get(names::GENERATION_ANNOTATION).cloned().unwrap_or_default())
}

/// Waits until the profile says that this generation was refuted, and the one before it is in force.
async fn put_back(cluster: &Cluster, test: &str, generation: &str) -> TestResult {
    let found = cluster.wait_condition(test, "Accepted", "False").await?;
    let conditions = found.status.map(|status| status.conditions).unwrap_or_default();
    let accepted = conditions.iter().find(|condition| condition.type_ == "Accepted");
    ensure!(
        accepted.is_some_and(|condition| condition.reason == "CompliantPodDenied"
            && condition.message.contains("[hostAliases]")
            && condition.message.contains(&format!("therefore the spec of generation {generation} was restored"))),
        "{accepted:?}"
    );
    eventually("the one before is in force", || async {
        let now = in_force(cluster, test).await?;
        if now == generation { Ok(()) } else { Err(now) }
    })
    .await?;
    cluster.wait_condition(test, "Stalled", "True").await.map(drop)
}

pub(crate) async fn an_edit_that_probes_refute_is_taken_back(cluster: &mut Cluster) -> TestResult {
    let (test, namespace) = ("refuted", "refuted-tool");
    cluster.create_tool(test, namespace, UID).await?;
    let good = Cluster::small_profile(test);
    cluster.enforce(&good).await?;
    for (path, object) in injector(&[namespace, names::PROBE_NAMESPACE]) {
        cluster.answer_to("POST", &path, &object).await?;
    }
    eventually("pods get an alias", || async {
        let pod = palisade_tests::dry_run_answer(&cluster.admin, namespace, &tool_pod("job", UID)).await;
        let pod = pod.map_err(|error| error.to_string())?;
        if pod["spec"]["hostAliases"][0]["ip"] == "10.0.0.1" { Ok(()) } else { Err(pod.to_string()) }
    })
    .await?;
    let hostile = Watch::start(cluster, namespace, hostile_pod("hostile"), false);

    // What complies with it does so no longer once others have changed it.
    let mut bad = good.clone();
    bad["spec"]["host"]["aliases"] = json!(false);
    cluster.apply_profile(&bad).await?;
    put_back(cluster, test, "1").await?;
    cluster.wait_admitted(namespace, &tool_pod("job", UID)).await?;

    // It is not tried again by itself, nor after a restart.
    let versions = cluster.policy_versions(test).await?;
    cluster.stop_controller().await?;
    cluster.start_controller().await?;
    put_back(cluster, test, "1").await?;
    // The edit must not be applied again during this time.
    tokio::time::sleep(Duration::from_secs(3)).await;
    put_back(cluster, test, "1").await?;
    ensure!(cluster.policy_versions(test).await? == versions, "the policies were written");
    hostile.finish("a violating pod while an edit is taken back").await?;

    // Another edit is.
    bad["spec"]["host"]["aliases"] = json!(true);
    cluster.enforce(&bad).await?;
    ensure!(in_force(cluster, test).await? == "3", "another generation is in force");
    for (path, object) in injector(&[]) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        cluster.answer_to("DELETE", &format!("{path}/{name}"), &json!(null)).await?;
    }
    cluster.delete_profile(test).await
}
