//! What a profile adds to the cost of a pod request: the same pods, in turn, to a namespace that is selected and to
//! one that is not, on one API server in one run.

use std::time::Duration;

use futures::{StreamExt, stream};
use palisade_tests::{Cluster, Verdict, tool_pod};
use serde_json::Value as Json;

use crate::Result;

/// How often the two sides take turns.
const ROUNDS: usize = 5;
/// Requests of one side in a round.
const REQUESTS: usize = 1_000;

/// Measures, and prints a table.
pub(crate) async fn run(cluster: &Cluster, selected: &str, uid: i64) -> Result<()> {
    let pod = tool_pod("job", uid);
    // Once without counting: connections, caches.
    side(cluster, "unselected", &pod).await?;
    side(cluster, selected, &pod).await?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(side(cluster, "unselected", &pod).await?);
        with.push(side(cluster, selected, &pod).await?);
    }
    println!("\n  CPU of the API server for one dry run of a tool's pod, {ROUNDS} rounds of {REQUESTS} in turn\n");
    println!("  not selected by a profile   {}", spread(&mut without));
    println!("  selected and admitted       {}", spread(&mut with));
    Ok(())
}

/// The CPU time that the API server spends on one request.
async fn side(cluster: &Cluster, namespace: &str, pod: &Json) -> Result<Duration> {
    let before = cpu(cluster)?;
    let wrong = stream::iter(0..REQUESTS)
        .map(|_| async {
            match cluster.dry_run(namespace, pod).await {
                Verdict::Admitted => None,
                other => Some(format!("{other:?}")),
            }
        })
        .buffer_unordered(4)
        .filter_map(std::future::ready)
        .collect::<Vec<_>>()
        .await;
    match wrong.first() {
        None => Ok(cpu(cluster)?.saturating_sub(before) / u32::try_from(REQUESTS)?),
        Some(first) => Err(format!("{} of {REQUESTS} not admitted: {first}", wrong.len()).into()),
    }
}

/// The CPU time that the API server has spent: fields utime and stime of `/proc/<pid>/stat`, in ticks of 10 ms.
fn cpu(cluster: &Cluster) -> Result<Duration> {
    let pid = cluster.control_plane.apiserver_pid().ok_or("the API server does not run")?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the name in parentheses, and may have anything in it.
    let (_, fields) = stat.rsplit_once(')').ok_or("no name in stat")?;
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 10))
}

/// The least, the middle and the most.
fn spread(times: &mut [Duration]) -> String {
    times.sort();
    let shown =
        |time: Option<&Duration>| time.map_or_else(String::new, |time| format!("{:.2} ms", time.as_secs_f64() * 1e3));
    format!("{} ({} to {})", shown(times.get(times.len() / 2)), shown(times.first()), shown(times.last()))
}
