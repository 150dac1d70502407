//! Curves: what a request, a namespace and an edit cost, as namespaces, containers and profiles become more.

pub(crate) mod containers;
pub(crate) mod edits;
pub(crate) mod namespaces;
pub(crate) mod profiles;

use std::{
    fmt,
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt, stream};
use palisade_tests::{Cluster, Verdict, within};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::Result;

/// The label of the namespaces.
const TENANCY: &str = "tool";
/// The namespace that no profile selects.
const UNSELECTED: &str = "unselected";
const FIRST_UID: i64 = 50_001;
/// How many namespaces are created at a time, and how many policies applied.
const AT_ONCE: usize = 16;
/// How often both are measured, one right after the other: what else the API server does then falls on both alike.
const ROUNDS: u32 = 5;
/// How many requests of each a round has: enough for several garbage collections.
const REQUESTS: u32 = 1000;
/// How long a way may need until it is in force.
const LIMIT: Duration = Duration::from_mins(20);

/// What a request costs, beside the same one in a namespace that is not selected.
#[derive(Debug, Serialize)]
pub(crate) struct Compared {
    /// CPU milliseconds of the API server for the request, and for the same that nothing judges: medians of the rounds.
    cpu: [f64; 2],
    /// The median of the ratios of both within a round, the least and the most.
    ratio: [f64; 3],
}

/// Two cells of a table: the CPU, and the ratio.
impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu: [judged, _], ratio: [ratio, least, most] } = self;
        write!(f, "{judged:.2} ms | {ratio:.2} ({least:.2} to {most:.2})")
    }
}

fn name(index: u32) -> String {
    format!("tool-{index:05}")
}

fn uid(index: u32) -> i64 {
    FIRST_UID + i64::from(index)
}

/// The seconds since then, with one decimal.
fn seconds(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 10.0).round() / 10.0
}

/// By how many MB the bytes grew.
fn megabytes(before: f64, after: f64) -> f64 {
    ((after - before) / 1e4).round() / 100.0
}

async fn create_namespaces(cluster: &Cluster, count: u32) -> Result<()> {
    cluster.create_namespace(UNSELECTED, &json!({}), &json!({})).await?;
    let create = |index| async move { cluster.create_tool(TENANCY, &name(index), uid(index)).await };
    stream::iter(0..count).map(create).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
    // Pods wait for the service accounts, which the controller manager creates a moment later.
    for namespace in [UNSELECTED.to_owned(), name(0), name(count / 2), name(count - 1)] {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        within(LIMIT, "the default service account", || cluster.answer_to("GET", &path, &Json::Null)).await?;
    }
    Ok(())
}

/// Compares the request of each number, which is judged, with that of a pod that nothing judges.
async fn compared(cluster: &Cluster, judged: impl Fn(u32) -> (String, Json), not_judged: &Json) -> Result<Compared> {
    let not_judged = |_| (UNSELECTED.to_owned(), not_judged.clone());
    // Once without counting: connections, caches.
    ask(cluster, &judged, REQUESTS / 4).await?;
    ask(cluster, &not_judged, REQUESTS / 4).await?;
    let (mut first, mut second, mut ratios) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let of_judged = cpu(cluster, &judged).await?;
        let of_other = cpu(cluster, &not_judged).await?;
        first.push(of_judged);
        second.push(of_other);
        ratios.push((of_judged / of_other.max(1e-9) * 100.0).round() / 100.0);
    }
    for figures in [&mut first, &mut second, &mut ratios] {
        figures.sort_by(f64::total_cmp);
    }
    let median = |sorted: &[f64]| sorted[sorted.len() / 2];
    Ok(Compared {
        cpu: [median(&first), median(&second)],
        ratio: [median(&ratios), ratios[0], ratios[ratios.len() - 1]],
    })
}

/// The CPU milliseconds of one request, of the namespace and the pod of each number.
async fn cpu(cluster: &Cluster, of: &impl Fn(u32) -> (String, Json)) -> Result<f64> {
    cluster.collect_garbage()?;
    let before = cluster.apiserver_cpu()?;
    ask(cluster, of, REQUESTS).await?;
    let spent = cluster.apiserver_cpu()?.saturating_sub(before);
    Ok((spent.as_secs_f64() * 1e6 / f64::from(REQUESTS)).round() / 1e3)
}

/// Waits until an API server that has just started admits a pod in each of some namespaces, so that its caches are filled.
async fn served(cluster: &Cluster, of: impl Fn(u32) -> (String, Json)) -> Result<()> {
    within(LIMIT, "the API server to judge again", || async {
        ask(cluster, &of, REQUESTS / 20).await.map_err(|error| error.to_string())
    })
    .await?;
    Ok(())
}

/// Sends dry runs of pods that comply, each in the namespace of its number.
async fn ask(cluster: &Cluster, of: &impl Fn(u32) -> (String, Json), requests: u32) -> Result<()> {
    let send = |number| {
        let (namespace, pod) = of(number);
        async move {
            match cluster.dry_run(&namespace, &pod).await {
                Verdict::Admitted => Ok(()),
                other => Err(format!("{namespace}: {other:?}").into()),
            }
        }
    };
    stream::iter(0..requests).map(send).buffer_unordered(2).try_collect::<Vec<()>>().await.map(drop)
}
