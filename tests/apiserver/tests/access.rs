//! Roles, tokens and connections, by each way to write them.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use palisade_api::conditions::ExceptionReason;
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually};
use serde_json::{Value as Json, json};

use crate::exceptions::{approve, exception, path, wait_state};

crate::groups::scenarios! {
    access_is_evaluated_by_each_method: Oldest 63, Judged 63;
}

const NAMESPACE: &str = "access-a";

fn profile(test: &str) -> Json {
    let mut profile = Cluster::small_profile(test);
    profile["spec"]["access"] = json!({
        "allowRoleWildcards": false, "allowedRoleVerbs": ["get", "list"],
        "allowedTokenServiceAccounts": ["builder"],
        "allowedConnections": [{"resources": ["pods/exec"], "commands": ["ps"]}],
    });
    profile["spec"]["exceptionRequests"] = json!({"checks": ["accessConnect"]});
    profile
}

fn role(verbs: &[&str]) -> Json {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}],
    })
}

async fn sent(cluster: &Cluster, method: &str, path: &str, kind: &str, body: &Json) -> Verdict {
    Verdict::of(cluster.answer(method, path, &format!("application/{kind}"), body).await)
}

fn denied(verdict: &Verdict, check: &str) -> TestResult {
    let id = format!("[{check}]");
    ensure!(matches!(verdict, Verdict::Denied(found) if found.contains(&id)), "{check}: {verdict:?}");
    Ok(())
}

/// A connection to a pod that does not exist, which the API server looks up after admission.
async fn connect(cluster: &Cluster, what: &str) -> Verdict {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/none/{what}");
    sent(cluster, "POST", &path, "json", &json!(null)).await
}

pub(crate) async fn access_is_evaluated_by_each_method(cluster: &mut Cluster) -> TestResult {
    let (cluster, test): (&Cluster, _) = (cluster, "access");
    cluster.create_tool(test, NAMESPACE, 50_101).await?;
    cluster.enforce(&profile(test)).await?;
    eventually("connections are denied", || async {
        match connect(cluster, "attach").await {
            Verdict::Denied(text) if text.contains("[accessConnect]") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    roles(cluster).await?;
    secrets(cluster).await?;
    nodes(cluster).await?;
    exceptions(cluster, test).await?;
    cluster.delete_profile(test).await
}

async fn roles(cluster: &Cluster) -> TestResult {
    let roles = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles");
    denied(&cluster.create_at(&roles, &role(&["get", "escalate"])).await, "accessRoles")?;
    let created = cluster.create_at(&roles, &role(&["get"])).await;
    ensure!(created == Verdict::Admitted, "{created:?}");
    let at = format!("{roles}/r");
    let all = role(&["*"]);
    let add = json!([{"op": "add", "path": "/rules/0/verbs/-", "value": "bind"}]);
    for (method, query, kind, body) in [
        ("PUT", "", "json", &all),
        ("PATCH", "", "merge-patch+json", &json!({"rules": all["rules"]})),
        ("PATCH", "", "strategic-merge-patch+json", &json!({"rules": all["rules"]})),
        ("PATCH", "", "json-patch+json", &add),
        ("PATCH", "?fieldManager=other&force=true", "apply-patch+yaml", &all),
    ] {
        let found = sent(cluster, method, &format!("{at}{query}"), kind, body).await;
        denied(&found, "accessRoles").map_err(|error| format!("{kind}: {error}"))?;
    }
    let mut new = role(&["impersonate"]);
    new["metadata"]["name"] = json!("new");
    let path = format!("{roles}/new?fieldManager=other");
    denied(&sent(cluster, "PATCH", &path, "apply-patch+yaml", &new).await, "accessRoles")?;
    let found = cluster.patch_at(&at, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    ensure!(found == Verdict::Admitted, "{found:?}");
    Ok(())
}

async fn secrets(cluster: &Cluster) -> TestResult {
    let secrets = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
    let secret = |account: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": account}},
        })
    };
    let account = |name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
    let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    for name in ["builder", "admin"] {
        let created = cluster.create_at(&accounts, &account(name)).await;
        ensure!(created == Verdict::Admitted, "{created:?}");
        let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let found = cluster.create_at(&format!("{accounts}/{name}/token"), &token).await;
        if name == "builder" {
            ensure!(found == Verdict::Admitted, "{found:?}");
        } else {
            denied(&found, "accessTokens")?;
        }
    }
    denied(&cluster.create_at(&secrets, &secret("admin")).await, "accessTokens")?;
    let created = cluster.create_at(&secrets, &secret("builder")).await;
    ensure!(created == Verdict::Admitted, "{created:?}");
    // The control plane writes the token of an allowed account.
    eventually("the token", || async {
        let found = cluster.answer("GET", &format!("{secrets}/s"), "", &json!(null)).await;
        let found = found.map_err(|error| error.to_string())?;
        if found["data"]["token"].is_string() { Ok(()) } else { Err(format!("{}", found["metadata"])) }
    })
    .await?;
    let other = json!({"metadata": {"annotations": {"kubernetes.io/service-account.name": "admin"}}, "data": null});
    denied(&cluster.patch_at(&format!("{secrets}/s"), &other).await, "accessTokens")
}

/// No Role in a namespace permits a tenant to impersonate the group of nodes.
async fn nodes(cluster: &Cluster) -> TestResult {
    // In a namespace without the profile.
    let namespace = "access-b";
    cluster.create_namespace(namespace, &json!({}), &json!({})).await?;
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    let mut all = role(&["*"]);
    all["rules"] = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "access-tenant"}],
    });
    for (path, object) in [("roles", &all), ("rolebindings", &binding)] {
        let created = cluster.create_at(&format!("{rbac}/{path}"), object).await;
        ensure!(created == Verdict::Admitted, "{created:?}");
    }
    let may = |attributes: Json| async move {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": "access-tenant", "resourceAttributes": attributes},
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let found =
            cluster.answer("POST", path, "application/json", &review).await.map_err(|error| error.to_string())?;
        Ok::<_, String>(found["status"]["allowed"] == json!(true))
    };
    eventually("the role", || async {
        let has = may(
            json!({"verb": "create", "resource": "serviceaccounts", "subresource": "token", "namespace": namespace}),
        );
        if has.await? { Ok(()) } else { Err("no permission yet".to_owned()) }
    })
    .await?;
    for (resource, name) in [("groups", "system:nodes"), ("users", "system:node:a")] {
        let may = may(json!({"verb": "impersonate", "resource": resource, "name": name})).await?;
        ensure!(!may, "a tenant may impersonate {resource} {name}");
    }
    Ok(())
}

/// A grant of connections ends when the controller removes it from the parameters.
async fn exceptions(cluster: &Cluster, test: &str) -> TestResult {
    let approver = cluster.client_of("access-approver", &["system:authenticated"]).await?;
    let end = Timestamp::now() + SignedDuration::from_secs(20);
    let mut request = exception("connect", test, &json!({"kind": "Namespace"}), end);
    request["spec"]["checks"] = json!(["accessConnect"]);
    let at = path(NAMESPACE, "connect");
    let collection = at.trim_end_matches("/connect");
    let created = cluster.create_at(collection, &request).await;
    ensure!(created == Verdict::Admitted, "{created:?}");
    denied(&connect(cluster, "exec?command=sh").await, "accessConnect")?;
    approve(cluster, &approver, NAMESPACE, "connect").await?;
    wait_state(cluster, NAMESPACE, "connect", ExceptionReason::InForce).await?;
    eventually("connections are admitted", || async {
        match connect(cluster, "exec?command=sh").await {
            Verdict::Refused(404, _) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    let left = Duration::try_from(end.duration_since(Timestamp::now())).unwrap_or_default();
    tokio::time::sleep(left).await;
    let ended = eventually("connections are denied again", || async {
        match connect(cluster, "exec?command=sh").await {
            Verdict::Denied(text) if text.contains("[accessConnect]") => Ok(Timestamp::now()),
            other => Err(format!("{other:?}")),
        }
    });
    let late = ended.await?.duration_since(end);
    println!("an exception for connections ended {late:?} after its end");
    ensure!(late < SignedDuration::from_secs(30), "{late:?}");
    Ok(())
}
