//! Checks of objects other than pods and workloads.

use palisade_api::names::{self, Shape};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually};
use serde_json::{Value as Json, json};

crate::groups::scenarios! {
    objects_of_other_kinds_are_evaluated: Oldest 62, Judged 62;
}

const WIDGETS: &str = "widgets.objects.example.org";

fn profile(test: &str) -> Json {
    let mut profile = Cluster::small_profile(test);
    profile["spec"]["customChecks"] = json!([
        {
            "id": "serviceTypes", "target": "Object", "message": "the type must be ClusterIP",
            "kinds": [{"versions": ["v1"], "resource": "services"}],
            "expression": "object.spec.type == 'ClusterIP'",
        },
        {
            "id": "uidOfWidgets", "target": "Object",
            "kinds": [{"group": "objects.example.org", "versions": ["v1"], "resource": "widgets"}],
            "expression": "object.spec.uid == params.spec.integers['uid'] && (oldObject == null || object.spec.size >= oldObject.spec.size)",
            "messageExpression": "'uid must be ' + string(params.spec.integers['uid']) + (oldObject == null ? '' : ', and size at least ' + string(oldObject.spec.size))",
        },
    ]);
    profile
}

/// A kind with two versions.
fn definition() -> Json {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                "type": "object", "properties": {"uid": {"type": "integer"}, "size": {"type": "integer"}},
            }}}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": WIDGETS},
        "spec": {
            "group": "objects.example.org", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

fn widget(version: &str, uid: i64) -> Json {
    json!({
        "apiVersion": format!("objects.example.org/{version}"), "kind": "Widget",
        "metadata": {"name": "w", "finalizers": ["example.org/a", "example.org/b"]}, "spec": {"uid": uid, "size": 5},
    })
}

fn denied(verdict: &Verdict, text: &str) -> TestResult {
    ensure!(matches!(verdict, Verdict::Denied(found) if found.contains(text)), "{text}: {verdict:?}");
    Ok(())
}

pub(crate) async fn objects_of_other_kinds_are_evaluated(cluster: &mut Cluster) -> TestResult {
    let (cluster, test): (&Cluster, _) = (cluster, "objects");
    cluster.create_tool(test, "objects-a", 50_001).await?;
    // An object that is older than the profile.
    let services = "/api/v1/namespaces/objects-a/services";
    let service = |kind: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "finalizers": ["example.org/a"]},
            "spec": {"type": kind, "ports": [{"port": 80}]}})
    };
    ensure!(cluster.create_at(services, &service("NodePort")).await == Verdict::Admitted, "no profile yet");
    let enforced = cluster.enforce(&profile(test)).await?;
    let conditions = enforced.status.map(|status| status.conditions).unwrap_or_default();
    let message = conditions.into_iter().find(|one| one.type_ == "Enforced").map(|one| one.message).unwrap_or_default();
    ensure!(message.contains("other objects that violate the profile"), "the policy for objects is probed: {message}");
    let policy = names::policy(test, Shape::Objects);
    let own = format!("1 violation of ToolSecurityProfile {test}: [serviceTypes] Service: the type must be ClusterIP");
    eventually("the policy for objects", || async {
        match cluster.dry_run_at(&cluster.admin, services, &service("LoadBalancer")).await {
            Verdict::Denied(text) if text.contains(&policy) && text.ends_with(&own) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    let at = format!("{services}/s");
    ensure!(cluster.patch_at(&at, &json!({"metadata": {"labels": {"a": "b"}}})).await == Verdict::Admitted, "a label");
    denied(&cluster.patch_at(&at, &json!({"spec": {"type": "LoadBalancer"}})).await, "[serviceTypes]")?;
    // The kind is defined after the policy that names it. The API server finds it then.
    cluster.create_at("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition()).await;
    cluster.wait_established(&["crd", WIDGETS])?;
    let widgets = |version: &str| format!("/apis/objects.example.org/{version}/namespaces/objects-a/widgets");
    for version in ["v1", "v2"] {
        let found = cluster.dry_run_at(&cluster.admin, &widgets(version), &widget(version, 7)).await;
        denied(&found, "[uidOfWidgets] Widget: uid must be 50001")?;
    }
    ensure!(cluster.create_at(&widgets("v2"), &widget("v2", 50_001)).await == Verdict::Admitted, "a complying widget");
    let at = format!("{}/w", widgets("v2"));
    denied(&cluster.patch_at(&at, &json!({"spec": {"size": 4}})).await, "and size at least 5")?;
    // Without a namespace's parameters, nothing is created, and finalizers are removed.
    cluster.create_namespace("objects-b", &json!({"tenancy": test}), &json!({})).await?;
    let found = cluster
        .dry_run_at(&cluster.admin, "/apis/objects.example.org/v1/namespaces/objects-b/widgets", &widget("v1", 7))
        .await;
    ensure!(matches!(found, Verdict::Denied(_)), "{found:?}");
    // The namespace can be deleted.
    cluster.delete_namespace("objects-a").await?;
    eventually("the parameters are deleted", || async {
        match cluster.params("objects-a", test).await {
            Err(_) => Ok(()),
            Ok(params) => Err(format!("{:?}", params.metadata)),
        }
    })
    .await?;
    // The check that reads no parameter still evaluates updates.
    let at_service = format!("{services}/s");
    denied(&cluster.patch_at(&at_service, &json!({"spec": {"type": "LoadBalancer"}})).await, "[serviceTypes]")?;
    let release = json!({"metadata": {"finalizers": null}});
    for path in [format!("{services}/s"), at] {
        let found = cluster.patch_at(&path, &release).await;
        ensure!(found == Verdict::Admitted, "{path}: {found:?}");
    }
    cluster.delete_profile(test).await
}
