//! Many profiles, half of them broken, and many namespaces: the healthy ones are repaired and maintained as if they
//! were alone.

use std::{
    fmt::Debug,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{Stream, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration};
use kube::{
    Api, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use palisade_api::names::{self, Shape};
use palisade_tests::{Cluster, TestResult, ensure, within};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use tokio::{net::TcpListener, task::JoinSet, time::timeout};

crate::groups::scenarios! {
    failing_half_of_fifty_profiles_does_not_affect_the_rest: Large 10 if "PALISADE_LARGE";
}

const TEST: &str = "pressure";
const UID: i64 = 50_001;
/// How many profiles there are; half of them in trouble.
const PROFILES: usize = 50;
/// Far above what it takes on a busy machine, and less than the half minute for which each write that hangs would be
/// waited for.
const BOUND: Duration = Duration::from_secs(25);
/// What holds a profile that is being deleted.
const HELD: &str = "tests.example/held";

/// How many namespaces: `PALISADE_PRESSURE_NAMESPACES`.
fn namespaces() -> usize {
    of_environment("PALISADE_PRESSURE_NAMESPACES", 300)
}

/// How often each is measured: `PALISADE_PRESSURE_ROUNDS`. Below a hundred, the 99th percentile is the longest.
fn rounds() -> usize {
    of_environment("PALISADE_PRESSURE_ROUNDS", 20)
}

fn of_environment(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Profiles in trouble, by kind.
const TROUBLES: [&str; 6] = ["nobody-mutates", "refused", "unresolvable", "hanging", "deleted", "attacked"];

pub(crate) async fn failing_half_of_fifty_profiles_does_not_affect_the_rest(cluster: &mut Cluster) -> TestResult {
    let cluster = &*cluster;
    let silent = Silent::start().await?;
    cluster.create_namespace("pressure-hangs", &json!({TEST: "hanging", "hangs": "yes"}), &json!({})).await?;
    hang(cluster, &silent).await?;
    stream::iter(0..namespaces())
        .map(Ok)
        .try_for_each_concurrent(16, |index| async move { tool(cluster, &format!("pressure-{index}")).await })
        .await?;
    for trouble in TROUBLES.iter().filter(|trouble| **trouble != "hanging") {
        cluster.create_namespace(&format!("pressure-of-{trouble}"), &json!({TEST: trouble}), &json!({})).await?;
    }
    for index in 0..PROFILES / 2 {
        // Only the first has parameters in all namespaces.
        cluster.apply_profile(&healthy(index)).await?;
    }
    let first = name("healthy", 0);
    // One after the other: on a machine that is busy that takes its time.
    let begin = Instant::now();
    within(Duration::from_mins(10), "parameters in all namespaces", || async {
        let found = cluster.params_versions(&first).await.map_err(|error| error.to_string())?.len();
        if found >= namespaces() { Ok(()) } else { Err(format!("{found} of {}", namespaces())) }
    })
    .await?;
    cluster.wait_condition(&first, "Programmed", "True").await?;
    println!("{} namespaces had parameters after {:.1} s", namespaces(), begin.elapsed().as_secs_f64());
    let start = Instant::now();
    for index in 0..PROFILES - PROFILES / 2 {
        cluster.apply_profile(&troubled(TROUBLES[index % TROUBLES.len()], index)).await?;
    }
    let mut attackers = attack(cluster);
    for index in (0..PROFILES / 2).filter(|index| TROUBLES[index % TROUBLES.len()] == "deleted") {
        let profile = name("deleted", index);
        cluster.wait_condition(&profile, "Accepted", "True").await?;
        cluster.profiles().delete(&profile, &DeleteParams::default()).await?;
    }
    within(Duration::from_mins(1), "a write that hangs", || async {
        if silent.held() > 0 { Ok(()) } else { Err("none".to_owned()) }
    })
    .await?;

    let (mut repairs, mut new) = (Times::default(), Times::default());
    for round in 0..rounds() {
        let (profile, delete) = (name("healthy", round % (PROFILES / 2)), round % 2 == 0);
        let what = if delete { "binding deleted" } else { "policy edited" };
        repairs.add(repair(cluster, &profile, delete).await?, format!("{profile}, {what}, round {round}"));
        let namespace = format!("pressure-new-{round}");
        let begin = Instant::now();
        tool(cluster, &namespace).await?;
        within(BOUND, "parameters", || async { cluster.params(&namespace, &first).await.map(drop) }).await?;
        new.add(begin.elapsed(), namespace);
    }
    println!(
        "{} namespaces, {PROFILES} profiles, half of them in trouble for {:.0} s: repaired {repairs}; parameters of a new namespace {new}",
        namespaces(),
        start.elapsed().as_secs_f64()
    );
    // The trouble was there all the time.
    ensure!(silent.held() > 0, "no write hangs any more");
    ensure!(cluster.params("pressure-hangs", &name("hanging", 3)).await.is_err(), "the write did not hang");
    attackers.abort_all();
    while attackers.join_next().await.is_some() {}

    // Whose namespace fails is programmed all the same, and says which one.
    let (profile, hangs) = (name("hanging", 3), "pressure-hangs");
    let found = cluster.wait_condition(&profile, "Programmed", "True").await?;
    let status = found.status.unwrap_or_default();
    within(Duration::from_mins(2), "the namespace named", || async {
        let found = cluster.profiles().get(&profile).await.map_err(|error| error.to_string())?;
        let named = found.status.unwrap_or_default().failed_namespaces;
        if named.iter().any(|one| one.name == hangs) { Ok(()) } else { Err(format!("{named:?}")) }
    })
    .await?;
    ensure!(status.namespaces.selected == 1, "{:?}", status.namespaces);
    clean_up(cluster).await
}

/// Deletes the binding or edits the policy of a profile, and returns how long it was not as the controller had written it.
async fn repair(
    cluster: &Cluster,
    profile: &str,
    delete: bool,
) -> Result<Duration, Box<dyn std::error::Error + Send + Sync>> {
    let generated = names::policy(profile, Shape::Pods);
    let (policies, bindings) = (cluster.policies(), cluster.bindings());
    within(Duration::from_mins(1), "policy and binding", || async {
        let both = (policies.get(&generated).await, bindings.get(&generated).await);
        both.0.map_err(|error| error.to_string())?;
        both.1.map(drop).map_err(|error| error.to_string())
    })
    .await?;
    if delete {
        let lapse = Lapse::of(&bindings, &generated, |_, _| true).await?;
        lapse.length(async { bindings.delete(&generated, &DeleteParams::default()).await.map(drop) }).await
    } else {
        let lapse = Lapse::of(&policies, &generated, |now, before| now.spec == before.spec).await?;
        let patch = json!({"spec": {"matchConditions": [{"name": "never", "expression": "false"}]}});
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        lapse.length(async { policies.patch(&generated, &params, &patch).await.map(drop) }).await
    }
}

/// The time from the event by which an object is deleted or edited to the event by which it is restored, both of one
/// watch. Asking again and again would take the processor from those who are measured.
struct Lapse<K> {
    events: Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<K>>> + Send>>,
    intact: Box<dyn Fn(&K) -> bool + Send>,
}

impl<K: Resource + Clone + DeserializeOwned + Debug + Send + 'static> Lapse<K> {
    /// Watches an object, which is as the controller has written it.
    async fn of(
        api: &Api<K>,
        name: &str,
        same: fn(&K, &K) -> bool,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let fields = format!("metadata.name={name}");
        let list = api.list(&ListParams::default().fields(&fields)).await?;
        let version = list.metadata.resource_version.unwrap_or_default();
        let before = list.items.into_iter().next().ok_or("it is not there")?;
        let events = api.watch(&WatchParams::default().fields(&fields), &version).await?.boxed();
        Ok(Self { events, intact: Box::new(move |now| same(now, &before)) })
    }

    /// How long the object was not intact after the attack. Events are read while the attack is answered: a repair may be
    /// quicker than that answer.
    async fn length(
        mut self,
        attack: impl Future<Output = kube::Result<()>>,
    ) -> Result<Duration, Box<dyn std::error::Error + Send + Sync>> {
        let mut begin = None;
        let end = async {
            while let Some(event) = self.events.next().await {
                let intact = match event? {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => (self.intact)(&object),
                    WatchEvent::Deleted(_) => false,
                    WatchEvent::Bookmark(_) => continue,
                    WatchEvent::Error(error) => return Err(kube::Error::Api(error).into()),
                };
                match begin {
                    None if !intact => begin = Some(Instant::now()),
                    Some(begin) if intact => return Ok(begin.elapsed()),
                    _ => {}
                }
            }
            Err("the watch ended".into())
        };
        let (lapse, attacked) = tokio::join!(timeout(BOUND, end), attack);
        attacked?;
        lapse.map_err(|_| format!("not restored within {BOUND:?}"))?
    }
}

async fn tool(cluster: &Cluster, namespace: &str) -> TestResult {
    cluster.create_namespace(namespace, &json!({TEST: "tool"}), &json!({"toolforge.org/uid": UID.to_string()})).await
}

fn name(kind: &str, index: usize) -> String {
    format!("{TEST}-{kind}-{index}")
}

fn profile(name: &str, tenancy: &str, spec: Json) -> Json {
    let mut spec = spec;
    spec["namespaceSelector"] = json!({"matchLabels": {TEST: tenancy}});
    json!({"apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": name}, "spec": spec})
}

fn with_uid(annotation: &str) -> Json {
    json!({
        "parameters": [{"name": "uid", "type": "Integer", "sources": [{"namespaceAnnotation": annotation}]}],
        "users": {"runAsUser": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]}},
    })
}

fn healthy(index: usize) -> Json {
    let spec = if index == 0 { with_uid("toolforge.org/uid") } else { json!({"privileges": {"privileged": false}}) };
    profile(&name("healthy", index), "tool", spec)
}

fn troubled(trouble: &str, index: usize) -> Json {
    let name = name(trouble, index);
    match trouble {
        // There is no webhook here.
        "nobody-mutates" => {
            let spec = json!({
                "privileges": {"privileged": false, "allowPrivilegeEscalation": false},
                "mutation": {"defaults": "Secure", "engine": "Webhook"},
            });
            profile(&name, trouble, spec)
        }
        "refused" => profile(
            &name,
            trouble,
            json!({"customChecks": [{"id": "x", "message": "x", "expression": "object.nothing"}]}),
        ),
        "unresolvable" => profile(&name, trouble, with_uid("nobody.example/has-it")),
        "hanging" => profile(&name, trouble, with_uid("toolforge.org/uid")),
        "deleted" => {
            let mut profile = profile(&name, trouble, json!({"privileges": {"privileged": false}}));
            profile["metadata"]["finalizers"] = json!([HELD]);
            profile
        }
        _ => profile(&name, trouble, json!({"privileges": {"privileged": false}})),
    }
}

/// Somebody deletes bindings again and again.
fn attack(cluster: &Cluster) -> JoinSet<()> {
    let mut attackers = JoinSet::new();
    for index in (0..PROFILES / 2).filter(|index| TROUBLES[index % TROUBLES.len()] == "attacked") {
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(cluster.admin.clone());
        attackers.spawn(async move {
            let binding = names::policy(&name("attacked", index), Shape::Pods);
            loop {
                // It may not be there at the moment.
                drop(bindings.delete(&binding, &DeleteParams::default()).await);
                // The interval between two deletions.
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
    }
    attackers
}

/// Takes connections and says nothing.
struct Silent {
    url: String,
    held: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Silent {
    async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://{}/", listener.local_addr()?);
        let held = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&held);
        let task = tokio::spawn(async move {
            let mut connections = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                connections.push(connection);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Self { url, held, task })
    }

    /// How many connections it has taken.
    fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// From now on parameters in namespaces with the label `hangs` wait for somebody else's webhook.
async fn hang(cluster: &Cluster, silent: &Silent) -> TestResult {
    let webhook: ValidatingWebhookConfiguration = serde_json::from_value(json!({
        "metadata": {"name": TEST},
        "webhooks": [{
            "name": "silent.tests.example", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": silent.url}, "timeoutSeconds": 30, "failurePolicy": "Fail",
            "namespaceSelector": {"matchLabels": {"hangs": "yes"}},
            "rules": [{
                "apiGroups": ["toolsecurity.dev"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
                "resources": ["toolsecurityparams"],
            }],
        }],
    }))?;
    Api::all(cluster.admin.clone()).create(&PostParams::default(), &webhook).await?;
    Ok(())
}

async fn clean_up(cluster: &Cluster) -> TestResult {
    let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(cluster.admin.clone());
    webhooks.delete(TEST, &DeleteParams::default()).await?;
    let profiles = cluster.profiles();
    let all =
        profiles.list(&ListParams::default()).await?.items.into_iter().filter_map(|profile| profile.metadata.name);
    let ours: Vec<_> = all.filter(|profile| profile.starts_with(TEST)).collect();
    for profile in &ours {
        profiles.delete(profile, &DeleteParams::default()).await?;
        let released = json!({"metadata": {"finalizers": [names::FINALIZER]}});
        if profile.contains("deleted") {
            // Ours may be gone, and cannot be added again.
            let none = json!({"metadata": {"finalizers": null}});
            let patch = |patch: Json| async move {
                profiles_of(cluster).patch(profile, &PatchParams::default(), &Patch::Merge(patch)).await
            };
            if patch(released).await.is_err() {
                patch(none).await?;
            }
        }
    }
    within(Duration::from_mins(5), "the profiles are gone", || async {
        let left = profiles.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        let left = left.into_iter().filter_map(|profile| profile.metadata.name).filter(|name| name.starts_with(TEST));
        let left: Vec<_> = left.collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await?;
    Ok(())
}

fn profiles_of(cluster: &Cluster) -> Api<palisade_api::ToolSecurityProfile> {
    cluster.profiles()
}

/// How long something took, and what it was.
#[derive(Default)]
struct Times(Vec<(Duration, String)>);

impl Times {
    fn add(&mut self, took: Duration, what: String) {
        self.0.push((took, what));
        self.0.sort();
    }

    fn quantile(&self, percent: usize) -> f64 {
        let index = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(index).map_or(0.0, |(took, _)| took.as_secs_f64())
    }

    /// The three that took longest.
    fn longest(&self) -> String {
        let longest = self.0.iter().rev().take(3);
        longest.map(|(took, what)| format!("{:.3} s ({what})", took.as_secs_f64())).collect::<Vec<_>>().join(", ")
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p50 {:.3} s, p99 {:.3} s, longest {}", self.quantile(50), self.quantile(99), self.longest())
    }
}
