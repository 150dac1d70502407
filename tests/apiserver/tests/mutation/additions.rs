//! Additions where other policies change the pod, too.

use palisade_kube_json::pod;
use palisade_mutation::MutationRequest;
use palisade_tests::{Cluster, TestResult, ensure, eventually};
use serde_json::{Value as Json, json};

use super::{CONTROL, Engine, JSON, case::Case, clean, pods_of, seen, written};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// A policy of another author, called after those of Palisade, that adds a container to each pod of the namespaces.
fn sidecar(selector: &Json) -> [Json; 2] {
    let expression = "[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'late', image: 'late'}}]";
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "zz-sidecar"},
        "spec": {
            "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": selector,
                "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            },
            "matchConditions": [{"name": "once", "expression": "!object.spec.containers.exists(c, c.name == 'late')"}],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "zz-sidecar"}, "spec": {"policyName": "zz-sidecar"},
    });
    [policy, binding]
}

/// A container that a later policy adds gets the additions, because the API server calls the policy again. A second profile
/// with the same additions adds nothing.
pub(super) async fn reach_late_containers_once(cluster: &Cluster) -> TestResult {
    let written = written()?;
    let spec = &written["profiles"]["injected"];
    let engine = Engine::Policy("v1");
    let first = Case::new("injected", spec)?;
    let twin = Case::new("injected-twin", spec)?;
    cluster.create_namespace(CONTROL, &json!({}), &json!({})).await?;
    for case in [&first, &twin] {
        case.install(cluster, engine).await?;
    }
    for case in [&first, &twin] {
        case.in_force(cluster).await?;
    }
    let asked = pod::minimal("added");
    let control = cluster.answer("POST", &pods_of(CONTROL), JSON, &asked).await?;
    // The twin also selects the namespace of the first one, with the same parameters.
    let both =
        json!({"matchExpressions": [{"key": "mutated", "operator": "In", "values": ["injected", "injected-twin"]}]});
    let twin_policy = format!("{GROUP}/mutatingadmissionpolicies/palisade-injected-twin-mutation");
    let patch = json!({"spec": {"matchConstraints": {"namespaceSelector": {"matchLabels": null, "matchExpressions": both["matchExpressions"]}}}});
    cluster.answer("PATCH", &twin_policy, "application/merge-patch+json", &patch).await?;
    let params = "/apis/toolsecurity.dev/v1alpha1/namespaces";
    let own = cluster
        .answer_to(
            "GET",
            &format!("{params}/{}/toolsecurityparams/{}", first.mutated, palisade_api::names::params("injected")),
            &json!({}),
        )
        .await?;
    let copied = json!({
        "apiVersion": own["apiVersion"], "kind": own["kind"], "spec": own["spec"],
        "metadata": {"name": palisade_api::names::params("injected-twin"), "namespace": first.mutated},
    });
    cluster.answer("POST", &format!("{params}/{}/toolsecurityparams", first.mutated), JSON, &copied).await?;
    for object in sidecar(&both) {
        let plural = if object["kind"] == "MutatingAdmissionPolicy" { "policies" } else { "policybindings" };
        cluster.answer("POST", &format!("{GROUP}/mutatingadmission{plural}"), JSON, &object).await?;
    }
    let mut with_late = control.clone();
    with_late["metadata"] = json!({"name": "added"});
    let found = eventually("the additions of two profiles and a later policy", || async {
        let answer =
            cluster.answer("POST", &pods_of(&first.mutated), JSON, &asked).await.map_err(|error| error.to_string())?;
        let late = answer["spec"]["containers"].get(1).cloned().ok_or("no late container")?;
        if late["env"].is_null() { Err(format!("no additions: {late}")) } else { Ok(answer) }
    })
    .await?;
    // As if the pod had had the container from the start, added to once.
    let mut late = found["spec"]["containers"][1].clone();
    let fields = late.as_object_mut().ok_or("no container")?;
    fields.retain(|field, _| !["env", "volumeMounts", "securityContext"].contains(&field.as_str()));
    if let Some(containers) = with_late["spec"]["containers"].as_array_mut() {
        containers.push(late);
    }
    let expected = first.patched(&MutationRequest::create(&first.mutated, &with_late))?;
    let (found, wanted) = (seen(&found).to_string(), seen(&expected).to_string());
    let cleaned =
        cluster.kubectl(&["delete", "mutatingadmissionpolicies,mutatingadmissionpolicybindings", "zz-sidecar"]);
    clean(cluster, engine).await?;
    cleaned?;
    ensure!(found == wanted, "added:\n  {found}\n  wanted:\n  {wanted}");
    Ok(())
}
