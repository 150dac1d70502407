//! Objects that profiles generate in namespaces.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ResourceQuota;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use palisade_controller::Options;
use palisade_kube_json::json::set;
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, root, within};
use serde_json::{Value as Json, json};

crate::groups::scenarios! {
    generated_objects_are_kept_as_the_profile_requires: Maintained 125;
}

const TEST: &str = "generate";
const UID: i64 = 50_001;
/// Of a loaded machine. The controller itself needs some hundredths of a second.
const SOON: Duration = Duration::from_secs(10);
const QUOTAS: &str = "resourcequotas";
const POLICIES: &str = "networkpolicies";
/// Policies of the chart, for tenants and for the controller.
const CONFINEMENT: [&str; 2] = ["confine-generated-objects", "confine-palisade-controller-objects"];

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// The permissions that the chart gives for these kinds, and its policies about generated objects.
pub(crate) fn permit(cluster: &Cluster, kinds: &[(&str, &str)]) -> TestResult {
    let verbs = json!(["get", "list", "watch", "create", "patch", "delete"]);
    let rules: Vec<_> = kinds
        .iter()
        .map(|(api_version, resource)| json!({"apiGroups": [group(api_version)], "resources": [resource], "verbs": verbs}))
        .collect();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "palisade-controller-generate"},
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "palisade-controller-generate"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "palisade-controller-generate"},
        "subjects": [{"kind": "ServiceAccount", "name": "palisade-controller", "namespace": "palisade-system"}],
    });
    for object in [role, binding].into_iter().chain(confinement(kinds)?) {
        let mut file = tempfile::NamedTempFile::new()?;
        std::io::Write::write_all(&mut file, object.to_string().as_bytes())?;
        cluster.kubectl(&["apply", "-f", &file.path().display().to_string()])?;
    }
    Ok(())
}

/// Removes what [`permit`] has installed.
pub(crate) fn revoke(cluster: &Cluster) -> TestResult {
    cluster.kubectl(&["delete", "clusterrole,clusterrolebinding", "palisade-controller-generate"])?;
    for name in CONFINEMENT {
        let kinds = "validatingadmissionpolicies,validatingadmissionpolicybindings";
        cluster.kubectl(&["delete", kinds, name])?;
    }
    Ok(())
}

/// The policies of the chart, with the rules that it makes of these kinds.
fn confinement(kinds: &[(&str, &str)]) -> TestResult<Vec<Json>> {
    let text = std::fs::read_to_string(root().join("charts/palisade/files/generate.yaml"))?;
    let mut objects: Vec<Json> = serde_saphyr::from_multiple(&text)?;
    let rule = |(api_version, resource): &(&str, &str)| {
        json!({
            "apiGroups": [group(api_version)], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": [resource, format!("{resource}/*")],
        })
    };
    for object in objects.iter_mut().filter(|object| object["kind"] == "ValidatingAdmissionPolicy") {
        set(object, &["spec", "matchConstraints", "resourceRules"], kinds.iter().map(rule).collect::<Vec<_>>());
    }
    Ok(objects)
}

fn options() -> TestResult<Options> {
    let kinds = ["v1/ResourceQuota/resourcequotas", "networking.k8s.io/v1/NetworkPolicy/networkpolicies"];
    let generate = kinds.into_iter().map(str::parse).collect::<Result<_, _>>()?;
    Ok(Options { generate, ..Cluster::options()? })
}

fn quota() -> Json {
    json!({"name": "quota", "template": {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tool"},
        // The API server writes the quantities differently.
        "spec": {"hard": {"requests.cpu": "0.5", "limits.memory": "1024Mi", "count/configmaps": "$uid"}},
    }})
}

fn isolation() -> Json {
    json!({"name": "isolation", "deletionPolicy": "Orphan", "template": {
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "isolation"},
        "spec": {"podSelector": {}, "ingress": [], "policyTypes": ["Ingress"]},
    }})
}

fn profile(generate: &[Json]) -> Json {
    let mut profile = Cluster::small_profile(TEST);
    profile["spec"]["generate"] = generate.into();
    profile
}

fn path(namespace: &str, resource: &str, name: &str) -> String {
    let group = if resource == QUOTAS { "api/v1" } else { "apis/networking.k8s.io/v1" };
    format!("/{group}/namespaces/{namespace}/{resource}/{name}")
}

async fn get(cluster: &Cluster, path: &str) -> Option<Json> {
    cluster.answer_to("GET", path, &json!({})).await.ok()
}

/// Waits until an object is as expected, or gone (`None`). Returns it and how long that took.
async fn wait(
    cluster: &Cluster,
    path: &str,
    what: &str,
    holds: impl Fn(Option<&Json>) -> bool,
) -> TestResult<(Option<Json>, Duration)> {
    let what = format!("{path}: {what}");
    let found = within(SOON, &what, || async {
        let found = get(cluster, path).await;
        if holds(found.as_ref()) { Ok(found) } else { Err(format!("{found:?}")) }
    });
    Ok(found.await?)
}

async fn wait_generated(cluster: &Cluster, reason: &str, text: &str) -> TestResult {
    eventually(&format!("Generated because of {reason}: {text}"), || async {
        let found = cluster.profiles().get(TEST).await.map_err(|error| error.to_string())?;
        let status = found.status.unwrap_or_default();
        let condition = status.conditions.into_iter().find(|one| one.type_ == "Generated");
        match condition {
            Some(one) if one.reason == reason && one.message.contains(text) => Ok(()),
            other => Err(format!("{other:?}, {:?}", status.generated)),
        }
    })
    .await?;
    Ok(())
}

fn version(object: Option<&Json>) -> Json {
    object.map(|object| object["metadata"]["resourceVersion"].clone()).unwrap_or_default()
}

pub(crate) async fn generated_objects_are_kept_as_the_profile_requires(cluster: &mut Cluster) -> TestResult {
    for namespace in ["generate-a", "generate-b"] {
        cluster.create_tool(TEST, namespace, UID).await?;
    }
    // Without permission, the profile is rejected with the value to set.
    cluster.apply_profile(&profile(&[quota()])).await?;
    let rejected = cluster.wait_condition(TEST, "Accepted", "False").await?;
    let text = format!("{:?}", rejected.status);
    ensure!(text.contains("{apiVersion: v1, kind: ResourceQuota, resource: PLURAL} to generate.kinds"), "{text}");
    permit(cluster, &[("v1", QUOTAS), ("networking.k8s.io/v1", POLICIES)])?;
    cluster.restart_controller(options()?).await?;

    // Created, and as written by the API server.
    cluster.enforce(&profile(&[quota(), isolation()])).await?;
    wait_generated(cluster, "ObjectsReady", "4 objects").await?;
    let (quota_a, policy_a) = (path("generate-a", QUOTAS, "tool"), path("generate-a", POLICIES, "isolation"));
    let created = get(cluster, &quota_a).await.ok_or("no quota")?;
    let hard = json!({"requests.cpu": "500m", "limits.memory": "1Gi", "count/configmaps": "50001"});
    ensure!(created["spec"]["hard"] == hard, "{created}");
    let new = Instant::now();
    cluster.create_tool(TEST, "generate-c", 50_002).await?;
    let (found, _) = wait(cluster, &path("generate-c", QUOTAS, "tool"), "created", |found| found.is_some()).await?;
    println!("objects of a new namespace after {:?}", new.elapsed());
    ensure!(found.ok_or("no quota")?["spec"]["hard"]["count/configmaps"] == "50002", "the value of the namespace");

    // A restart writes nothing.
    wait_generated(cluster, "ObjectsReady", "6 objects").await?;
    let before = [version(get(cluster, &quota_a).await.as_ref()), version(get(cluster, &policy_a).await.as_ref())];
    cluster.restart_controller(options()?).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = [version(get(cluster, &quota_a).await.as_ref()), version(get(cluster, &policy_a).await.as_ref())];
    ensure!(before == after, "a restart has written: {before:?} {after:?}");

    tenants_cannot_change_generated_objects(cluster, &quota_a).await?;
    edits_are_repaired(cluster, &quota_a, &policy_a, &hard).await?;
    conflicts_are_reported(cluster, &quota_a).await?;
    objects_are_removed(cluster, &quota_a).await?;
    revoke(cluster)?;
    for namespace in ["generate-a", "generate-b", "generate-c", "generate-d"] {
        cluster.delete_namespace(namespace).await?;
    }
    cluster.restart_controller(Cluster::options()?).await
}

/// With all permissions in its namespace, in each way to write, and in advance.
async fn tenants_cannot_change_generated_objects(cluster: &Cluster, quota: &str) -> TestResult {
    let tenant = crate::parameters::tenant(cluster, "generate-a").await?;
    let all = "/api/v1/namespaces/generate-a/resourcequotas";
    let more = json!({"spec": {"hard": {"requests.cpu": "64"}}});
    let label = json!({"metadata": {"labels": {"toolsecurity.dev/template": null}}});
    let marked = json!({"metadata": {"labels": {"toolsecurity.dev/template": "quota"}}});
    let mut planted =
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "mine"}, "spec": {"hard": {}}});
    let own = cluster.ask_as(&tenant, "POST", all, &planted).await;
    ensure!(own == Verdict::Admitted, "an own quota: {own:?}");
    set(&mut planted, &["metadata"], json!({"name": "planted", "labels": {"toolsecurity.dev/template": "quota"}}));
    let (status, mine) = (format!("{quota}/status"), format!("{all}/mine"));
    let mut tried = vec![
        ("a value", cluster.ask_as(&tenant, "PATCH", quota, &more).await),
        ("the label", cluster.ask_as(&tenant, "PATCH", quota, &label).await),
        ("the label by the status", cluster.ask_as(&tenant, "PATCH", &status, &label).await),
        ("the label of another object", cluster.ask_as(&tenant, "PATCH", &mine, &marked).await),
        ("deletion", cluster.ask_as(&tenant, "DELETE", quota, &Json::Null).await),
        ("creation", cluster.ask_as(&tenant, "POST", all, &planted).await),
    ];
    // Even with the field manager of the controller, whose entry of the fields it reads.
    let api: Api<ResourceQuota> = Api::namespaced(tenant.clone(), "generate-a");
    let applied = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tool"}, "spec": {"hard": {"requests.cpu": "64"}},
    });
    let by_its_manager = PatchParams::apply("palisade-controller/generate").force();
    let applied = api.patch("tool", &by_its_manager, &Patch::Apply(&applied)).await;
    tried.push(("an apply", Verdict::of(applied.map(|_| json!({})))));
    let deleted = cluster.ask_as(&tenant, "DELETE", &mine, &Json::Null).await;
    ensure!(deleted == Verdict::Admitted, "an own quota is deleted: {deleted:?}");
    tried.push(("deletion of all", cluster.ask_as(&tenant, "DELETE", all, &Json::Null).await));
    let by = format!("ValidatingAdmissionPolicy '{}'", CONFINEMENT[0]);
    for (attempt, verdict) in tried {
        ensure!(verdict.denial().is_some_and(|text| text.contains(&by)), "{attempt} is not denied: {verdict:?}");
    }
    // Clients of the whole cluster can, for example those that empty namespaces; and the controller nothing else.
    let dry = format!("{quota}?dryRun=All");
    for account in ["namespace-controller", "generic-garbage-collector"] {
        let client = cluster.client_of_tenant(&format!("system:serviceaccount:kube-system:{account}")).await?;
        let verdict = cluster.ask_as(&client, "DELETE", &dry, &Json::Null).await;
        ensure!(verdict == Verdict::Admitted, "{account}: {verdict:?}");
    }
    let controller = cluster.client_of_tenant(&crate::privilege::user("palisade-controller")).await?;
    let foreign =
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "other"}, "spec": {"hard": {}}});
    let by = format!("ValidatingAdmissionPolicy '{}'", CONFINEMENT[1]);
    for (namespace, object) in [("generate-a", &foreign), ("kube-system", &planted)] {
        let path = format!("/api/v1/namespaces/{namespace}/resourcequotas?dryRun=All");
        let verdict = cluster.ask_as(&controller, "POST", &path, object).await;
        ensure!(verdict.denial().is_some_and(|text| text.contains(&by)), "{namespace}: {verdict:?}");
    }
    Ok(())
}

/// Edits by hand, lost labels and deletions.
async fn edits_are_repaired(cluster: &Cluster, quota: &str, policy: &str, hard: &Json) -> TestResult {
    // A value, a part of a selector that is replaced as a whole, an element of an empty list, and a label.
    let edits = [
        (quota, json!({"spec": {"hard": {"requests.cpu": "64"}}})),
        (policy, json!({"spec": {"podSelector": {"matchLabels": {"no": "pod"}}}})),
        (policy, json!({"spec": {"ingress": [{}]}})),
        (quota, json!({"metadata": {"labels": {"toolsecurity.dev/template": null}}})),
        (quota, json!({"metadata": {"annotations": {"toolsecurity.dev/template-digest": "x"}}})),
    ];
    for (path, patch) in edits {
        let before = get(cluster, path).await.ok_or("no object")?;
        let verdict = cluster.patch_at(path, &patch).await;
        ensure!(verdict == Verdict::Admitted, "{verdict:?}");
        let same = |found: &Json| {
            ["labels", "annotations"].iter().all(|part| found["metadata"][*part] == before["metadata"][*part])
                && found["spec"] == before["spec"]
        };
        let (_, took) = wait(cluster, path, "repaired", |found| found.is_some_and(same)).await?;
        println!("{patch} repaired after {took:?}");
    }
    ensure!(get(cluster, quota).await.ok_or("no quota")?["spec"]["hard"] == *hard, "other values");
    for path in [quota, policy] {
        cluster.answer_to("DELETE", path, &json!({})).await?;
        let (_, took) = wait(cluster, path, "created again", |found| {
            found.is_some_and(|found| found["metadata"]["deletionTimestamp"].is_null())
        })
        .await?;
        println!("{path} created again after {took:?}");
    }
    wait_generated(cluster, "ObjectsReady", "6 objects").await
}

/// An object of another owner, and a field that another manager has applied.
async fn conflicts_are_reported(cluster: &Cluster, quota_a: &str) -> TestResult {
    let foreign = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tool"}, "spec": {"hard": {"pods": "1"}},
    });
    // It is there before the namespace is selected.
    cluster.create_namespace("generate-d", &json!({}), &json!({"toolforge.org/uid": "50003"})).await?;
    cluster.answer_to("POST", "/api/v1/namespaces/generate-d/resourcequotas", &foreign).await?;
    cluster.patch_namespace("generate-d", &json!({"metadata": {"labels": {"tenancy": TEST}}})).await?;
    wait_generated(cluster, "ObjectsFailed", "generate-d: ResourceQuota tool: it exists and belongs to").await?;
    let found = get(cluster, &path("generate-d", QUOTAS, "tool")).await.ok_or("no quota")?;
    ensure!(found["spec"]["hard"] == json!({"pods": "1"}), "{found}");
    // Another field manager.
    let applied = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tool"}, "spec": {"hard": {"requests.cpu": "7"}},
    });
    let forced = format!("{quota_a}?fieldManager=other&force=true");
    cluster.answer("PATCH", &forced, "application/apply-patch+yaml", &applied).await?;
    wait_generated(cluster, "ObjectsFailed", "generate-a: ResourceQuota tool: other applied some of its fields")
        .await?;
    ensure!(get(cluster, quota_a).await.ok_or("no quota")?["spec"]["hard"]["requests.cpu"] == "7", "taken back");
    // With adopt, both are taken over.
    let mut adopting = quota();
    adopting["adopt"] = json!(true);
    cluster.apply_profile(&profile(&[adopting, isolation()])).await?;
    wait_generated(cluster, "ObjectsReady", "8 objects").await?;
    let found = get(cluster, &path("generate-d", QUOTAS, "tool")).await.ok_or("no quota")?;
    let hard = json!({"pods": "1", "requests.cpu": "500m", "limits.memory": "1Gi", "count/configmaps": "50003"});
    ensure!(found["spec"]["hard"] == hard, "{found}");
    Ok(())
}

/// A removed template, a namespace that is no longer selected, and a deleted profile.
async fn objects_are_removed(cluster: &Cluster, quota_a: &str) -> TestResult {
    let gone = |found: Option<&Json>| found.is_none();
    cluster.patch_namespace("generate-b", &json!({"metadata": {"labels": {"tenancy": null}}})).await?;
    wait(cluster, &path("generate-b", QUOTAS, "tool"), "pruned", gone).await?;
    let orphan = |found: Option<&Json>| {
        found.is_some_and(|found| found["metadata"]["labels"]["toolsecurity.dev/template"].is_null())
    };
    let (found, _) = wait(cluster, &path("generate-b", POLICIES, "isolation"), "orphaned", orphan).await?;
    ensure!(found.ok_or("no policy")?["spec"]["policyTypes"] == json!(["Ingress"]), "an orphan keeps its spec");
    // Selected again, it is taken over.
    cluster.patch_namespace("generate-b", &json!({"metadata": {"labels": {"tenancy": TEST}}})).await?;
    wait_generated(cluster, "ObjectsReady", "8 objects").await?;

    cluster.apply_profile(&profile(&[isolation()])).await?;
    wait(cluster, quota_a, "pruned with its template", gone).await?;
    wait_generated(cluster, "ObjectsReady", "4 objects").await?;

    let mut isolation = isolation();
    isolation["deletionPolicy"] = json!("Delete");
    cluster.apply_profile(&profile(&[isolation, quota()])).await?;
    wait_generated(cluster, "ObjectsReady", "8 objects").await?;
    cluster.delete_profile(TEST).await?;
    for namespace in ["generate-a", "generate-b", "generate-c", "generate-d"] {
        for (resource, name) in [(QUOTAS, "tool"), (POLICIES, "isolation")] {
            let path = path(namespace, resource, name);
            ensure!(get(cluster, &path).await.is_none(), "{path} is left");
        }
    }
    Ok(())
}
