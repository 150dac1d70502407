//! What many namespaces cost, judged by the few policies of a profile, and by a policy for each namespace.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt, stream};
use palisade_controlplane::Shutdown;
use palisade_tests::{Cluster, Verdict, hostile_pod, tool_pod, within};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::{Result, arms};

/// The label of the namespaces.
const TENANCY: &str = "tool";
const FIRST_UID: i64 = 50_001;
/// How many namespaces are created at a time, and how many policies applied.
const AT_ONCE: usize = 16;
/// How often both are measured, one right after the other: what else the API server does then falls on both alike.
const ROUNDS: u32 = 7;
/// How many requests of each a round has.
const REQUESTS: u32 = 200;
/// How long a way may need until it is in force.
const LIMIT: Duration = Duration::from_mins(20);

/// How the namespaces are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Way {
    /// By a profile that the controller reconciles.
    Profile,
    /// By a policy and a binding for each namespace, with constants for parameters.
    PolicyEach,
}

/// What a number of namespaces cost.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Point {
    pub way: Way,
    pub namespaces: u32,
    /// From the first write until the last namespace denies what violates and admits what complies.
    pub seconds: f64,
    /// By how much the API server's heap in use grew, in MB, with the history of all writes in its watch caches.
    pub heap: f64,
    /// The same, after a restart of the API server before and after: without that history.
    pub settled: f64,
    /// By how much etcd's database grew, in MB.
    pub stored: f64,
    /// CPU milliseconds of the API server for the request of a pod that complies, and the same in a namespace that is not
    /// selected: medians of the rounds.
    pub cpu: [f64; 2],
    /// The median of the ratios of both within a round, the least and the most.
    pub ratio: [f64; 3],
}

/// Measures one number of namespaces, on a cluster of its own.
pub(crate) async fn measure(way: Way, namespaces: u32) -> Result<Point> {
    println!("==> {namespaces} namespaces, {way:?}: starting a control plane");
    let mut cluster = Cluster::start(None).await?;
    let point = on(&mut cluster, way, namespaces).await;
    cluster.stop().await?;
    point
}

async fn on(cluster: &mut Cluster, way: Way, namespaces: u32) -> Result<Point> {
    create_namespaces(cluster, namespaces).await?;
    // Compiled before the clock starts: only what the API server does with them is measured.
    let policies = match way {
        Way::Profile => vec![],
        Way::PolicyEach => {
            (0..namespaces).map(|index| arms::policy_of_namespace(&name(index), uid(index))).collect::<Result<_>>()?
        }
    };
    cluster.control_plane.restart_apiserver(Shutdown::Graceful).await?;
    served(cluster, |number| (name(number % namespaces), uid(number % namespaces))).await?;
    let before = (cluster.heap().await?, cluster.stored().await?);
    let start = Instant::now();
    match way {
        Way::Profile => {
            cluster.start_controller().await?;
            cluster.apply_profile(&Cluster::toolforge_profile(TENANCY)?).await?;
        }
        Way::PolicyEach => apply(cluster, policies).await?,
    }
    let last = namespaces - 1;
    within(LIMIT, "the last namespace to be judged", || async {
        let denied = cluster.dry_run(&name(last), &hostile_pod("job")).await;
        let admitted = cluster.dry_run(&name(last), &tool_pod("job", uid(last))).await;
        match (denied.denial(), &admitted) {
            (Some(_), Verdict::Admitted) => Ok(()),
            _ => Err(format!("{denied:?}, {admitted:?}")),
        }
    })
    .await?;
    let seconds = start.elapsed().as_secs_f64();
    let after = (cluster.heap().await?, cluster.stored().await?);
    let (cpu, ratio) = compared(cluster, namespaces).await?;
    cluster.control_plane.restart_apiserver(Shutdown::Graceful).await?;
    served(cluster, |number| (name(number % namespaces), uid(number % namespaces))).await?;
    let settled = cluster.heap().await?;
    let megabytes = |before: f64, after: f64| ((after - before) / 1e4).round() / 100.0;
    Ok(Point {
        way,
        namespaces,
        seconds: (seconds * 10.0).round() / 10.0,
        heap: megabytes(before.0, after.0),
        settled: megabytes(before.0, settled),
        stored: megabytes(before.1, after.1),
        cpu,
        ratio,
    })
}

fn name(index: u32) -> String {
    format!("tool-{index:05}")
}

fn uid(index: u32) -> i64 {
    FIRST_UID + i64::from(index)
}

async fn create_namespaces(cluster: &Cluster, count: u32) -> Result<()> {
    cluster.create_namespace("unselected", &json!({}), &json!({})).await?;
    let create = |index| async move { cluster.create_tool(TENANCY, &name(index), uid(index)).await };
    stream::iter(0..count).map(create).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
    // Pods wait for the service accounts, which the controller manager creates a moment later.
    for namespace in ["unselected".to_owned(), name(0), name(count / 2), name(count - 1)] {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        within(LIMIT, "the default service account", || cluster.answer_to("GET", &path, &Json::Null)).await?;
    }
    Ok(())
}

/// Creates the policy and the binding of each namespace.
async fn apply(cluster: &Cluster, policies: Vec<Vec<Json>>) -> Result<()> {
    let create = |objects: Vec<Json>| async move {
        for object in objects {
            let kind = match object["kind"].as_str() {
                Some("ValidatingAdmissionPolicy") => "validatingadmissionpolicies",
                _ => "validatingadmissionpolicybindings",
            };
            let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}");
            cluster.answer_to("POST", &path, &object).await?;
        }
        Ok(())
    };
    stream::iter(policies).map(create).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await.map(drop)
}

/// The CPU of a request that is judged and of one that is not, and their ratio.
async fn compared(cluster: &Cluster, namespaces: u32) -> Result<([f64; 2], [f64; 3])> {
    let judged = |number| (name(number % namespaces), uid(number % namespaces));
    let not_judged = |_| ("unselected".to_owned(), FIRST_UID);
    // Once without counting: connections, caches.
    ask(cluster, &judged, REQUESTS).await?;
    ask(cluster, &not_judged, REQUESTS).await?;
    let (mut first, mut second, mut ratios) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let of_judged = cpu(cluster, judged).await?;
        let of_other = cpu(cluster, not_judged).await?;
        first.push(of_judged);
        second.push(of_other);
        ratios.push((of_judged / of_other.max(1e-9) * 100.0).round() / 100.0);
    }
    for figures in [&mut first, &mut second, &mut ratios] {
        figures.sort_by(f64::total_cmp);
    }
    let median = |sorted: &[f64]| sorted[sorted.len() / 2];
    Ok(([median(&first), median(&second)], [median(&ratios), ratios[0], ratios[ratios.len() - 1]]))
}

/// The CPU milliseconds of one request, of a pod in the namespace and with the uid of each number.
async fn cpu(cluster: &Cluster, of: impl Fn(u32) -> (String, i64)) -> Result<f64> {
    cluster.collect_garbage()?;
    let before = cluster.apiserver_cpu()?;
    ask(cluster, &of, REQUESTS).await?;
    let spent = cluster.apiserver_cpu()?.saturating_sub(before);
    Ok((spent.as_secs_f64() * 1e6 / f64::from(REQUESTS)).round() / 1e3)
}

/// Waits until an API server that has just started admits a pod in each of some namespaces, so that its caches are filled.
async fn served(cluster: &Cluster, of: impl Fn(u32) -> (String, i64)) -> Result<()> {
    within(LIMIT, "the API server to judge again", || async {
        ask(cluster, &of, REQUESTS / 4).await.map_err(|error| error.to_string())
    })
    .await?;
    Ok(())
}

/// Sends dry runs of a pod that complies, each in the namespace and with the uid of its number.
async fn ask(cluster: &Cluster, of: &impl Fn(u32) -> (String, i64), requests: u32) -> Result<()> {
    let send = |number| {
        let (namespace, uid) = of(number);
        async move {
            match cluster.dry_run(&namespace, &tool_pod("job", uid)).await {
                Verdict::Admitted => Ok(()),
                other => Err(format!("{namespace}: {other:?}").into()),
            }
        }
    };
    stream::iter(0..requests).map(send).buffer_unordered(2).try_collect::<Vec<()>>().await.map(drop)
}

/// The points as Markdown.
pub(crate) fn table(points: &[Point]) -> String {
    let mut out = String::from(
        "| namespaces | judged by | seconds until enforced | heap of the API server | settled | etcd | CPU of a request | ratio |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for point in points {
        let by = match point.way {
            Way::Profile => "Toolforge's profile",
            Way::PolicyEach => "a policy each",
        };
        let Point { namespaces, seconds, heap, settled, stored, cpu: [judged, _], ratio: [ratio, least, most], .. } =
            point;
        let _ = writeln!(
            out,
            "| {namespaces} | {by} | {seconds:.1} | {heap:+.1} MB | {settled:+.1} MB | {stored:+.1} MB | {judged:.2} ms | {ratio:.2} ({least:.2} to {most:.2}) |"
        );
    }
    out
}
