//! What a request costs as more profiles select its namespace.

use std::{fmt::Write as _, time::Instant};

use palisade_tests::{Cluster, tool_pod};
use serde::Serialize;

use super::{Compared, TENANCY, compared, create_namespaces, megabytes, name, seconds, uid};
use crate::Result;

/// What a number of profiles costs, all of which select the same namespaces.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Point {
    pub profiles: u32,
    /// From the write of the last profile until its status says that it is enforced on each API server.
    pub seconds: f64,
    /// By how much the API server's heap in use grew since the last point, in MB, with what it keeps of the writes.
    pub heap: f64,
    #[serde(flatten)]
    pub request: Compared,
}

/// Measures all numbers on one cluster, in their order, with Toolforge's profile under a name each.
pub(crate) async fn measure(counts: &[u32]) -> Result<Vec<Point>> {
    println!("==> profiles: starting a control plane");
    let mut cluster = Cluster::start(None).await?;
    let points = on(&mut cluster, counts).await;
    cluster.stop().await?;
    points
}

async fn on(cluster: &mut Cluster, counts: &[u32]) -> Result<Vec<Point>> {
    create_namespaces(cluster, 1).await?;
    cluster.start_controller().await?;
    let pod = tool_pod("job", uid(0));
    let mut heap = cluster.heap().await?;
    let mut points: Vec<Point> = vec![];
    for &profiles in counts {
        println!("==> {profiles} profiles");
        let mut took = 0.0;
        for number in points.last().map_or(0, |point| point.profiles)..profiles {
            let mut profile = Cluster::toolforge_profile(TENANCY)?;
            profile["metadata"]["name"] = format!("{TENANCY}-{number}").into();
            let start = Instant::now();
            cluster.enforce(&profile).await?;
            took = seconds(start);
        }
        let request = compared(cluster, |_| (name(0), pod.clone()), &pod).await?;
        let now = cluster.heap().await?;
        points.push(Point { profiles, seconds: took, heap: megabytes(heap, now), request });
        heap = now;
    }
    Ok(points)
}

/// The points as Markdown.
pub(crate) fn table(points: &[Point]) -> String {
    let mut out = String::from(
        "| profiles | seconds until the last is enforced | heap of the API server, since the line before | CPU of a request | ratio |\n\
         |---|---|---|---|---|\n",
    );
    for Point { profiles, seconds, heap, request } in points {
        let _ = writeln!(out, "| {profiles} | {seconds:.1} | {heap:+.1} MB | {request} |");
    }
    out
}
