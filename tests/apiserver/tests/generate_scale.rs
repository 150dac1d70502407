//! Four generated objects in each of thousands of namespaces: seconds, memory, and the writes of an edit and of a restart.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use palisade_tests::{Cluster, ControllerProcess, TestResult, ensure, within};
use serde_json::{Value as Json, json};

crate::groups::scenarios! {
    generated_objects_of_thousands_of_namespaces: Large 90 if "PALISADE_GENERATE_NAMESPACES";
}

const TEST: &str = "scale";
/// Longer than 40,000 writes take.
const LIMIT: Duration = Duration::from_mins(20);
/// A restart, and an aborted edit, write nothing during this time.
const QUIET: Duration = Duration::from_secs(5);
const MB: f64 = 1e6;
const BYTES: u64 = 1_000_000;

/// The generated kinds, with their resources.
const KINDS: [(&str, &str, &str); 4] = [
    ("v1", "ResourceQuota", "resourcequotas"),
    ("v1", "LimitRange", "limitranges"),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    ("v1", "ConfigMap", "configmaps"),
];

fn profile(cpu: &str) -> Json {
    let template = |name: &str, kind: usize, content: (&str, Json)| {
        let (api_version, kind, _) = KINDS[kind];
        json!({"name": name, "template": {
            "apiVersion": api_version, "kind": kind, "metadata": {"name": "tenant"}, content.0: content.1,
        }})
    };
    let limits = json!({"limits": [{"type": "Container", "default": {"memory": "512Mi"}}]});
    let mut profile = Cluster::small_profile(TEST);
    profile["spec"]["generate"] = json!([
        template("quota", 0, ("spec", json!({"hard": {"requests.cpu": cpu, "count/pods": "16"}}))),
        template("limits", 1, ("spec", limits)),
        template("isolation", 2, ("spec", json!({"podSelector": {}, "ingress": [], "policyTypes": ["Ingress"]}))),
        template("about", 3, ("data", json!({"uid": "$uid"}))),
    ]);
    profile
}

/// The versions of all generated objects.
async fn versions(cluster: &Cluster) -> TestResult<BTreeMap<(String, String), Option<String>>> {
    let mut found = BTreeMap::new();
    for (api_version, kind, plural) in KINDS {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        let api: Api<DynamicObject> = Api::all_with(cluster.admin.clone(), &resource);
        let ours = ListParams::default().labels(&format!("toolsecurity.dev/profile={TEST},toolsecurity.dev/template"));
        for object in api.list_metadata(&ours).await?.items {
            let place = (plural.to_owned(), object.metadata.namespace.unwrap_or_default());
            found.insert(place, object.metadata.resource_version);
        }
    }
    Ok(found)
}

/// Waits until the status counts so many objects, and reports nothing else.
async fn ready(cluster: &Cluster, generation: Option<i64>, count: usize) -> TestResult<Duration> {
    let begin = Instant::now();
    within(LIMIT, "all objects", || async {
        let found = cluster.profiles().get(TEST).await.map_err(|error| error.to_string())?;
        let status = found.status.unwrap_or_default();
        let condition = status.conditions.iter().find(|one| one.type_ == "Generated");
        match condition {
            Some(one) if one.status == "True" && generation <= one.observed_generation => {}
            other => return Err(format!("{other:?}")),
        }
        let text = condition.map(|one| one.message.clone()).unwrap_or_default();
        if text.contains(&count.to_string()) { Ok(()) } else { Err(text) }
    })
    .await?;
    Ok(begin.elapsed())
}

pub(crate) async fn generated_objects_of_thousands_of_namespaces(cluster: &mut Cluster) -> TestResult {
    let count: usize = std::env::var("PALISADE_GENERATE_NAMESPACES")?.parse()?;
    let all = count * KINDS.len();
    crate::scale::create_namespaces(cluster, 0..i64::try_from(count)?).await?;
    crate::generate::permit(cluster, &KINDS.map(|(api_version, _, plural)| (api_version, plural)))?;
    cluster.stop_controller().await?;
    let kinds = KINDS.map(|(api_version, kind, plural)| format!("{api_version}/{kind}/{plural}")).join(",");
    let controller = ControllerProcess::generating(cluster, &kinds)?;
    let figures = async |what: &str, controller: &ControllerProcess| -> TestResult {
        let (heap, own) = (cluster.heap().await? / MB, controller.memory()? / BYTES);
        println!("{what}: heap of the API server {heap:.0} MB, memory of the controller {own} MB");
        Ok(())
    };
    figures("before", &controller).await?;
    let cpu = cluster.apiserver_cpu()?;
    cluster.apply_profile(&profile("2")).await?;
    let took = ready(cluster, None, all).await?;
    let cpu = cluster.apiserver_cpu()?.saturating_sub(cpu);
    println!("{all} objects in {count} namespaces after {took:.1?}, with {cpu:.1?} of the API server's CPU");
    figures("created", &controller).await?;
    let created = versions(cluster).await?;
    ensure!(created.len() == all, "{} objects", created.len());

    // A restart writes nothing.
    drop(controller);
    let controller = ControllerProcess::generating(cluster, &kinds)?;
    tokio::time::sleep(QUIET).await;
    ready(cluster, None, all).await?;
    ensure!(versions(cluster).await? == created, "a restart has written");
    figures("after a restart", &controller).await?;

    // An edit of a template writes one object in each namespace.
    let begin = Instant::now();
    cluster.apply_profile(&profile("3")).await?;
    let generation = cluster.profiles().get(TEST).await?.metadata.generation;
    ready(cluster, generation, all).await?;
    println!("an edit of one template reached all namespaces after {:.1?}", begin.elapsed());
    let edited = versions(cluster).await?;
    let written: Vec<_> = edited.iter().filter(|(place, version)| created.get(*place) != Some(*version)).collect();
    ensure!(written.len() == count, "{} objects were written", written.len());
    ensure!(written.iter().all(|((plural, _), _)| plural == KINDS[0].2), "other objects were written");

    let begin = Instant::now();
    cluster.delete_profile(TEST).await?;
    println!("all deleted with the profile after {:.1?}", begin.elapsed());
    ensure!(versions(cluster).await?.is_empty(), "objects are left");
    println!("peak of the controller's memory: {} MB", controller.peak_memory()? / BYTES);
    drop(controller);
    cluster.start_controller().await
}
