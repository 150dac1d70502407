//! How soon an edit is in force, and how much is written for it.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use palisade_tests::{Cluster, Verdict, tool_pod, within};
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::{LIMIT, TENANCY, create_namespaces, name, seconds, uid};
use crate::Result;

/// An edit is over when nothing was written for so long: what a former policy reads stays in the parameters for a while
/// (`LINGER` in the controller).
const QUIET: Duration = Duration::from_secs(45);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// What the controller writes for an edit. Statuses of profiles are not counted.
const WRITTEN: [&str; 3] = ["toolsecurityparams", "validatingadmissionpolicies", "validatingadmissionpolicybindings"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Edit {
    /// A registry more in the profile.
    Constant,
    /// The annotation of one namespace that a parameter is read from.
    Annotation,
    /// The name of a parameter of the profile.
    Parameter,
}

impl Edit {
    const ALL: [Self; 3] = [Self::Constant, Self::Annotation, Self::Parameter];

    fn about(self) -> &'static str {
        match self {
            Self::Constant => "a registry more in the profile",
            Self::Annotation => "the annotation of one namespace",
            Self::Parameter => "a parameter renamed",
        }
    }
}

/// What an edit came to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Point {
    pub namespaces: u32,
    pub edit: Edit,
    /// From the edit until it is in force: until the last namespace admits what it denied before, or, for a parameter,
    /// until the profile's status says that it is enforced.
    pub seconds: f64,
    /// From the edit until the last write that it causes.
    pub seconds_of_writes: f64,
    /// How many parameters were written, and how many policies and bindings.
    pub writes: [u64; 2],
}

/// Makes all edits with a number of namespaces, on a cluster of its own.
pub(crate) async fn measure(namespaces: u32) -> Result<Vec<Point>> {
    println!("==> edits with {namespaces} namespaces: starting a control plane");
    let mut cluster = Cluster::start(None).await?;
    let points = on(&mut cluster, namespaces).await;
    cluster.stop().await?;
    points
}

async fn on(cluster: &mut Cluster, namespaces: u32) -> Result<Vec<Point>> {
    create_namespaces(cluster, namespaces).await?;
    cluster.start_controller().await?;
    let mut profile = Cluster::toolforge_profile(TENANCY)?;
    cluster.apply_profile(&profile).await?;
    enforced(cluster).await?;
    quiet(cluster).await?;
    let mut points = vec![];
    for edit in Edit::ALL {
        println!("==> {}", edit.about());
        let before = written(cluster).await?;
        let start = Instant::now();
        let last = name(namespaces - 1);
        match edit {
            Edit::Constant => {
                profile["spec"]["images"]["allowedRegistries"]
                    .as_array_mut()
                    .ok_or("the profile has registries")?
                    .push("registry.example.org".into());
                cluster.apply_profile(&profile).await?;
                let mut pod = tool_pod("job", uid(namespaces - 1));
                pod["spec"]["containers"][0]["image"] = "registry.example.org/job:1".into();
                admitted(cluster, &last, &pod).await?;
            }
            Edit::Annotation => {
                // No other namespace has it.
                let other = uid(namespaces);
                let patch = json!({"metadata": {"annotations": {"toolforge.org/uid": other.to_string()}}});
                cluster.patch_namespace(&last, &patch).await?;
                admitted(cluster, &last, &tool_pod("job", other)).await?;
            }
            Edit::Parameter => {
                let text = profile.to_string().replace("$uid", "$user");
                profile = serde_json::from_str(&text)?;
                profile["spec"]["parameters"][0]["name"] = "user".into();
                cluster.apply_profile(&profile).await?;
                enforced(cluster).await?;
            }
        }
        let took = seconds(start);
        let (after, seconds_of_writes) = quiet_since(cluster, start).await?;
        let writes = [after[0] - before[0], after[1] - before[1]];
        points.push(Point { namespaces, edit, seconds: took, seconds_of_writes, writes });
    }
    Ok(points)
}

/// Waits until the profile is enforced as it is written. Thousands of namespaces take their time.
async fn enforced(cluster: &Cluster) -> Result<()> {
    within(LIMIT, "the profile to be enforced", || async {
        cluster.wait_condition(TENANCY, "Enforced", "True").await.map_err(|error| error.to_string())
    })
    .await?;
    Ok(())
}

async fn admitted(cluster: &Cluster, namespace: &str, pod: &Json) -> Result<()> {
    within(LIMIT, "the edit to be in force", || async {
        match cluster.dry_run(namespace, pod).await {
            Verdict::Admitted => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(())
}

async fn quiet(cluster: &Cluster) -> Result<()> {
    quiet_since(cluster, Instant::now()).await.map(drop)
}

/// Waits until nothing is written any more; says how much was, and how long after the start the last of it.
async fn quiet_since(cluster: &Cluster, start: Instant) -> Result<([u64; 2], f64)> {
    let mut count = written(cluster).await?;
    let (mut last, mut took) = (Instant::now(), seconds(start));
    while last.elapsed() < QUIET {
        tokio::time::sleep(POLL_INTERVAL).await;
        let now = written(cluster).await?;
        if now != count {
            (count, last, took) = (now, Instant::now(), seconds(start));
        }
    }
    Ok((count, took))
}

/// How often parameters were written since the API server started, and how often policies and bindings, dry runs aside.
async fn written(cluster: &Cluster) -> Result<[u64; 2]> {
    let metrics = cluster.control_plane.get("/metrics").await?;
    let of = |line: &str, label: &str| {
        let (_, rest) = line.split_once(&format!("{label}=\""))?;
        rest.split_once('"').map(|(value, _)| value.to_owned())
    };
    let mut counts = [0; 2];
    for line in metrics.lines().filter(|line| line.starts_with("apiserver_request_total{")) {
        let (Some(resource), Some(verb), Some(code)) = (of(line, "resource"), of(line, "verb"), of(line, "code"))
        else {
            continue;
        };
        let writes = ["APPLY", "PATCH", "POST", "PUT", "DELETE"].contains(&verb.as_str());
        let kept = of(line, "dry_run").is_none_or(|value| value.is_empty())
            && of(line, "subresource").is_none_or(|value| value.is_empty());
        if let Some(index) = WRITTEN.iter().position(|written| *written == resource)
            && writes
            && kept
            && code.starts_with('2')
        {
            let count = line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()).ok_or("a count")?;
            // Counts of requests are whole numbers.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a count")]
            let count = count as u64;
            counts[index.min(1)] += count;
        }
    }
    Ok(counts)
}

/// The points as Markdown.
pub(crate) fn table(points: &[Point]) -> String {
    let mut out = String::from(
        "| namespaces | edit | seconds until in force | until the last write | written parameters | policies and bindings |\n\
         |---|---|---|---|---|---|\n",
    );
    for Point { namespaces, edit, seconds, seconds_of_writes, writes: [parameters, policies] } in points {
        let about = edit.about();
        let _ = writeln!(
            out,
            "| {namespaces} | {about} | {seconds:.1} | {seconds_of_writes:.1} | {parameters} | {policies} |"
        );
    }
    out
}
