//! Sends the requests of all arms in turn, and reads what they cost.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use palisade_tests::{Cluster, cpu_of, dry_run_answer, eventually, memory_of};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::{
    Result,
    arms::{Arm, Expected, Request, UID},
};

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub rounds: u32,
    pub requests: u32,
}

/// What one arm came to.
pub(crate) struct Figures {
    pub name: String,
    pub about: String,
    /// The arm whose CPU this one's is a multiple of.
    pub multiple_of: Option<&'static str>,
    /// The CPU time of the API server for one request, of each round.
    pub cpu: Vec<Duration>,
    /// The same of the process that judges beside it, if there is one.
    pub engine: Option<Vec<Duration>>,
    /// The resident bytes of the API server in the end, and of that process.
    pub memory: (u64, Option<u64>),
    /// How long each request took, shortest first.
    pub latencies: Vec<Duration>,
    /// What it is compared with, measured next to it in the same round.
    pub beside: Option<Beside>,
    /// What was applied for it; none if nothing was.
    pub applied: Option<Applied>,
}

/// What was applied, so that requests are judged in this way.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Applied {
    /// The objects as they are applied, not what a controller makes of them.
    pub objects: usize,
    /// Their bytes as JSON.
    pub bytes: usize,
    /// From the first of them until all verdicts are right. A process beside the API server runs by then.
    pub seconds: f64,
}

/// The turns of an arm that another one is compared with, each right before or after a turn of that one.
#[derive(Default)]
pub(crate) struct Beside {
    /// The CPU time of the API server for one request, of each round.
    pub cpu: Vec<Duration>,
    /// How long each request took, shortest first.
    pub latencies: Vec<Duration>,
}

/// How many requests are under way at a time.
const AT_ONCE: usize = 2;

/// For how long the API server's CPU is watched to see whether it is at rest, and how long that may take.
const REST_WINDOW: Duration = Duration::from_secs(3);
const SETTLE_LIMIT: Duration = Duration::from_mins(2);

pub(crate) async fn run(cluster: &Cluster, arms: &[Arm], plan: Plan) -> Result<Vec<Figures>> {
    let mut applied = vec![];
    for arm in arms {
        applied.push(prepare(cluster, arm).await?);
    }
    settle(cluster).await?;
    let mut all: Vec<_> = arms
        .iter()
        .zip(applied)
        .map(|(arm, applied)| Figures {
            name: arm.name.clone(),
            about: arm.about.clone(),
            multiple_of: arm.multiple_of,
            cpu: vec![],
            engine: arm.engine.map(|_| vec![]),
            memory: (0, None),
            latencies: vec![],
            beside: arm.against.map(|_| Beside::default()),
            applied,
        })
        .collect();
    // Once without counting: connections, caches.
    for arm in arms {
        round(cluster, arm, plan.requests / 4 + 1).await?;
    }
    for number in 0..plan.rounds {
        println!("==> round {} of {}", number + 1, plan.rounds);
        for (index, arm) in arms.iter().enumerate() {
            let Some(base) = arms.iter().position(|base| arm.against == Some(&base.name)) else { continue };
            // Neighbours in time share what else the machine does; neither is always the first.
            let turns = if number % 2 == 0 { [base, index] } else { [index, base] };
            for turn in turns {
                let spent = round(cluster, &arms[turn], plan.requests).await?;
                if turn == base
                    && let Some(beside) = &mut all[index].beside
                {
                    beside.cpu.push(spent.cpu);
                    beside.latencies.extend(&spent.latencies);
                }
                let figures = &mut all[turn];
                figures.cpu.push(spent.cpu);
                figures.engine.iter_mut().for_each(|engine| engine.push(spent.engine));
                figures.latencies.extend(spent.latencies);
            }
        }
    }
    for (arm, figures) in arms.iter().zip(&mut all) {
        figures.latencies.sort();
        figures.beside.iter_mut().for_each(|beside| beside.latencies.sort());
        figures.memory = (cluster.apiserver_memory()?, arm.engine.map(memory_of).transpose()?);
    }
    Ok(all)
}

/// What a round came to: the CPU time of one request, and how long each took.
struct Spent {
    cpu: Duration,
    engine: Duration,
    latencies: Vec<Duration>,
}

/// Makes the arm's namespace and all that is in force there, and waits until it is.
async fn prepare(cluster: &Cluster, arm: &Arm) -> Result<Option<Applied>> {
    println!("==> {}: {}", arm.name, arm.about);
    cluster.create_namespace(&arm.name, &arm.labels, &json!({"toolforge.org/uid": UID.to_string()})).await?;
    // The controller manager makes it a moment later.
    let path = format!("/api/v1/namespaces/{}/serviceaccounts/default", arm.name);
    eventually("the default service account", || cluster.answer_to("GET", &path, &Json::Null)).await?;
    for (path, object) in &arm.before {
        let (version, kind) = path.rsplit_once('/').ok_or("a path")?;
        cluster.answer_to("POST", &format!("/{version}/namespaces/{}/{kind}", arm.name), object).await?;
    }
    let start = Instant::now();
    for object in &arm.objects {
        // What checks a peer's policies may not listen yet, and definitions of kinds come later.
        eventually("an object to be accepted", || async {
            apply(cluster, object)
                .map_err(|error| format!("{} {}: {error}", object["kind"], object["metadata"]["name"]))
        })
        .await?;
        if let (Some("ToolSecurityProfile"), Some(name)) =
            (object["kind"].as_str(), object["metadata"]["name"].as_str())
        {
            cluster.wait_condition(name, "Enforced", "True").await?;
        }
    }
    let wanted = format!("{} to be in force", arm.name);
    eventually(&wanted, || async {
        let denies = |text: &str| text.contains("denied") || text.contains("violation");
        let mut wrong = Vec::new();
        for (what, pod, expected) in &arm.verdicts {
            match (dry_run_answer(&cluster.admin, &arm.name, pod).await, expected) {
                (Ok(_), Expected::Admitted) => {}
                (Err(error), Expected::Denied) if denies(&error.to_string()) => {}
                (Err(error), _) => wrong.push(format!("{what}: {error}")),
                (Ok(_), _) => wrong.push(format!("{what} is admitted")),
            }
        }
        if !wrong.is_empty() {
            return Err(wrong.join("; "));
        }
        match (send(cluster, arm).await, arm.denied) {
            (Ok(()), false) => Ok(()),
            (Err(text), true) if denies(&text) => Ok(()),
            (answer, _) => Err(format!("{answer:?}")),
        }
    })
    .await?;
    if arm.objects.is_empty() {
        return Ok(None);
    }
    let seconds = start.elapsed().as_secs_f64();
    // Policies are in force one after another.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let objects = arm.objects.iter().map(|object| object["items"].as_array().map_or(1, Vec::len)).sum();
    let bytes = arm.objects.iter().map(|object| object.to_string().len()).sum();
    Ok(Some(Applied { objects, bytes, seconds: (seconds * 10.0).round() / 10.0 }))
}

/// Waits until the API server has little to do: after each definition of a kind it makes its `OpenAPI` documents anew.
async fn settle(cluster: &Cluster) -> Result<()> {
    for _ in 0..SETTLE_LIMIT.as_secs() / REST_WINDOW.as_secs() {
        let before = cluster.apiserver_cpu()?;
        tokio::time::sleep(REST_WINDOW).await;
        if cluster.apiserver_cpu()?.saturating_sub(before) < REST_WINDOW / 20 {
            return Ok(());
        }
    }
    println!("==> the API server does not come to rest: its figures have in them what it does besides");
    Ok(())
}

pub(crate) fn apply(cluster: &Cluster, object: &Json) -> Result<()> {
    let file = std::env::temp_dir().join(format!("palisade-bench-{}.json", std::process::id()));
    std::fs::write(&file, object.to_string())?;
    let applied = cluster.kubectl(&["apply", "--server-side", "-f", &file.display().to_string()]);
    std::fs::remove_file(&file)?;
    applied.map(drop)
}

async fn send(cluster: &Cluster, arm: &Arm) -> std::result::Result<(), String> {
    let Request { method, path, body } = &arm.request;
    let (version, rest) = split(path);
    let path = format!("/{version}/namespaces/{}/{rest}?dryRun=All", arm.name);
    let kind = if *method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    match cluster.answer(method, &path, kind, body).await {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Group and version, and what follows them.
fn split(path: &str) -> (&str, &str) {
    let at = if path.starts_with("apis/") { 3 } else { 2 };
    let end = path.match_indices('/').nth(at - 1).map_or(path.len(), |(index, _)| index);
    (&path[..end], &path[end + 1..])
}

async fn round(cluster: &Cluster, arm: &Arm, requests: u32) -> Result<Spent> {
    // No request shall pay for the garbage of others.
    cluster.collect_garbage()?;
    let engine = || arm.engine.map_or(Ok(Duration::ZERO), cpu_of);
    let before = (cluster.apiserver_cpu()?, engine()?);
    let answers: Vec<_> = stream::iter(0..requests)
        .map(|_| async {
            let start = Instant::now();
            let answer = send(cluster, arm).await;
            (start.elapsed(), answer)
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let after = (cluster.apiserver_cpu()?, engine()?);
    if let Some((_, wrong)) = answers.iter().find(|(_, answer)| answer.is_err() != arm.denied) {
        return Err(format!("{}: {wrong:?}", arm.name).into());
    }
    Ok(Spent {
        cpu: after.0.saturating_sub(before.0) / requests,
        engine: after.1.saturating_sub(before.1) / requests,
        latencies: answers.into_iter().map(|(time, _)| time).collect(),
    })
}
