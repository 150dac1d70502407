//! What a request costs as its pod has more containers.

use std::fmt::Write as _;

use palisade_tests::{Cluster, tool_pod};
use serde::Serialize;
use serde_json::Value as Json;

use super::{Compared, TENANCY, compared, create_namespaces, name, uid};
use crate::Result;

/// What a pod with a number of containers costs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Point {
    pub containers: u32,
    #[serde(flatten)]
    pub request: Compared,
}

/// Measures all numbers on one cluster, with Toolforge's profile.
pub(crate) async fn measure(counts: &[u32]) -> Result<Vec<Point>> {
    println!("==> containers: starting a control plane");
    let mut cluster = Cluster::start(None).await?;
    let points = on(&mut cluster, counts).await;
    cluster.stop().await?;
    points
}

async fn on(cluster: &mut Cluster, counts: &[u32]) -> Result<Vec<Point>> {
    create_namespaces(cluster, 1).await?;
    cluster.start_controller().await?;
    cluster.enforce(&Cluster::toolforge_profile(TENANCY)?).await?;
    let mut points = vec![];
    for &containers in counts {
        println!("==> {containers} containers");
        let pod = pod(containers)?;
        let judged = |_| (name(0), pod.clone());
        points.push(Point { containers, request: compared(cluster, judged, &pod).await? });
    }
    Ok(points)
}

/// A tool's pod with as many containers of the same kind.
fn pod(containers: u32) -> Result<Json> {
    let mut pod = tool_pod("job", uid(0));
    let all = pod["spec"]["containers"].as_array_mut().ok_or("a pod has containers")?;
    let first = all[0].clone();
    *all = (0..containers)
        .map(|number| {
            let mut container = first.clone();
            container["name"] = format!("job-{number}").into();
            container
        })
        .collect();
    Ok(pod)
}

/// The points as Markdown.
pub(crate) fn table(points: &[Point]) -> String {
    let mut out = String::from("| containers | CPU of a request | ratio |\n|---|---|---|\n");
    for Point { containers, request } in points {
        let _ = writeln!(out, "| {containers} | {request} |");
    }
    out
}
