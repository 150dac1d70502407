//! What it takes to judge a tool's pod offline, against a control plane: to start one, and to ask it by dry runs. All in
//! one run, on one machine.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use palisade_tests::{Cluster, Verdict, root, tool_pod};
use serde_json::{Value as Json, json};

use crate::Result;

/// Requests on each side.
const REQUESTS: u32 = 1_000;
/// The least that `palisade eval` may be faster than starting a control plane, and each request than a dry run, of an
/// unoptimized build on a busy machine.
const LEAST_START: f64 = 2.0;
const LEAST_REQUEST: f64 = 0.5;
/// How often `palisade eval` is started.
const STARTS: usize = 5;

/// Measures, and prints a table. `started` is how long it took to start the control plane.
pub(crate) async fn run(
    cluster: &Cluster,
    palisade: &Path,
    started: Duration,
    namespace: &str,
    uid: i64,
) -> Result<()> {
    let pod = tool_pod("job", uid);
    let directory = root().join("target/bench-eval");
    fs::create_dir_all(&directory)?;
    let of_tool = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace, "labels": {"tenancy": "tool"}, "annotations": {"toolforge.org/uid": uid.to_string()}},
    });
    fs::write(directory.join("namespace.json"), of_tool.to_string())?;
    fs::write(directory.join("one.yaml"), pod.to_string())?;
    let many: Vec<_> = (0..=REQUESTS).map(|_| pod.to_string()).collect();
    fs::write(directory.join("many.yaml"), many.join("\n---\n"))?;

    let mut once = Vec::new();
    for _ in 0..STARTS {
        once.push(eval(palisade, &directory, "one.yaml", namespace)?);
    }
    once.sort();
    let once = once[STARTS / 2];
    let offline = eval(palisade, &directory, "many.yaml", namespace)?.saturating_sub(once) / REQUESTS;
    dry_runs(cluster, namespace, &pod, 100).await?;
    let asked = dry_runs(cluster, namespace, &pod, REQUESTS).await? / REQUESTS;

    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let ratio = |slow: Duration, fast: Duration| slow.as_secs_f64() / fast.as_secs_f64().max(1e-9);
    println!("\n  starting a control plane               {:10.1} ms", ms(started));
    println!(
        "  palisade eval of one pod               {:10.1} ms   ({:.0} times as fast)",
        ms(once),
        ratio(started, once)
    );
    println!("  a dry run, one after another           {:10.3} ms", ms(asked));
    println!(
        "  palisade eval, each request of {REQUESTS}    {:10.3} ms   ({:.1} times as fast)",
        ms(offline),
        ratio(asked, offline)
    );
    if ratio(started, once) < LEAST_START || ratio(asked, offline) < LEAST_REQUEST {
        return Err(format!("beyond the bounds: {LEAST_START} and {LEAST_REQUEST} times as fast").into());
    }
    Ok(())
}

/// How long `palisade eval` takes, which must admit everything.
fn eval(palisade: &Path, directory: &Path, requests: &str, namespace: &str) -> Result<Duration> {
    let start = Instant::now();
    let output = Command::new(palisade)
        .args(["eval", "-o", "json", "--namespace", namespace, "--policies"])
        .arg(root().join("examples/toolforge/profile.yaml"))
        .arg("--policies")
        .arg(directory.join("namespace.json"))
        .arg(directory.join(requests))
        .output()?;
    let took = start.elapsed();
    if output.status.success() {
        Ok(took)
    } else {
        Err(format!("palisade eval: {}", String::from_utf8_lossy(&output.stderr)).into())
    }
}

/// How long dry runs of the pod take, one after another; each must be admitted.
async fn dry_runs(cluster: &Cluster, namespace: &str, pod: &Json, count: u32) -> Result<Duration> {
    let start = Instant::now();
    for _ in 0..count {
        match cluster.dry_run(namespace, pod).await {
            Verdict::Admitted => {}
            other => return Err(format!("not admitted: {other:?}").into()),
        }
    }
    Ok(start.elapsed())
}
