//! What many namespaces cost, judged by the few policies of a profile, and by a policy for each namespace.

use std::{fmt::Write as _, time::Instant};

use futures::{StreamExt, TryStreamExt, stream};
use palisade_controlplane::Shutdown;
use palisade_tests::{Cluster, Verdict, hostile_pod, tool_pod, within};
use serde::Serialize;
use serde_json::Value as Json;

use super::{AT_ONCE, Compared, LIMIT, TENANCY, compared, create_namespaces, megabytes, name, seconds, served, uid};
use crate::{Result, arms};

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
    /// The request of a pod that complies.
    #[serde(flatten)]
    pub request: Compared,
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
    let judged = |number: u32| (name(number % namespaces), tool_pod("job", uid(number % namespaces)));
    // Compiled before the clock starts: only what the API server does with them is measured.
    let policies = match way {
        Way::Profile => vec![],
        Way::PolicyEach => {
            (0..namespaces).map(|index| arms::policy_of_namespace(&name(index), uid(index))).collect::<Result<_>>()?
        }
    };
    cluster.control_plane.restart_apiserver(Shutdown::Graceful).await?;
    served(cluster, judged).await?;
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
    let seconds = seconds(start);
    let after = (cluster.heap().await?, cluster.stored().await?);
    let request = compared(cluster, judged, &tool_pod("job", uid(0))).await?;
    cluster.control_plane.restart_apiserver(Shutdown::Graceful).await?;
    served(cluster, judged).await?;
    let settled = cluster.heap().await?;
    Ok(Point {
        way,
        namespaces,
        seconds,
        heap: megabytes(before.0, after.0),
        settled: megabytes(before.0, settled),
        stored: megabytes(before.1, after.1),
        request,
    })
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
        let Point { namespaces, seconds, heap, settled, stored, request, .. } = point;
        let _ = writeln!(
            out,
            "| {namespaces} | {by} | {seconds:.1} | {heap:+.1} MB | {settled:+.1} MB | {stored:+.1} MB | {request} |"
        );
    }
    out
}
