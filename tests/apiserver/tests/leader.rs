//! Several replicas of the controller: one works, another takes over, and none writes that does not lead.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use k8s_openapi::{api::coordination::v1::Lease, jiff::Timestamp};
use kube::Api;
use palisade_api::names;
use palisade_tests::{Cluster, ControllerProcess, TestResult, ensure, eventually, hostile_pod, within};
use serde_json::{Value as Json, json};

use crate::{lifecycle::Watch, privilege::text};

crate::groups::scenarios! {
    a_replica_takes_over_and_the_former_leader_writes_nothing: Audited 20;
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const UID: i64 = 50_001;
/// How long anything may take, on a machine that has other things to do.
const LIMIT: Duration = Duration::from_mins(5);

/// How the leader ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// SIGTERM: it releases the Lease.
    Well,
    /// SIGKILL.
    Killed,
    /// SIGSTOP, and SIGCONT when another one leads.
    Paused,
}

async fn holder(cluster: &Cluster) -> std::result::Result<String, String> {
    let leases: Api<Lease> = Api::namespaced(cluster.admin.clone(), names::OPERATOR_NAMESPACE);
    let lease = leases.get(names::CONTROLLER).await.map_err(|error| error.to_string())?;
    Ok(lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default())
}

/// Waits until this replica leads, and says how long it took.
async fn wait_leader(cluster: &Cluster, name: &str) -> Result<Duration> {
    let ((), took) = within(LIMIT, &format!("{name} leads"), || async {
        let holder = holder(cluster).await?;
        if holder.starts_with(&format!("{name}_")) { Ok(()) } else { Err(holder) }
    })
    .await?;
    Ok(took)
}

/// Replicas, each with its name, of which the first leads.
struct Replicas {
    count: usize,
    running: Vec<(String, ControllerProcess)>,
}

impl Replicas {
    fn start(&mut self, cluster: &Cluster) -> TestResult {
        let name = format!("replica-{}", self.count);
        self.count += 1;
        self.running.push((name.clone(), ControllerProcess::elected(cluster, &name)?));
        Ok(())
    }

    /// Ends the leader, has the other one take over while there is work to do, and starts a third. Returns how long it
    /// took until the other one led.
    async fn hand_over(&mut self, cluster: &Cluster, test: &str, end: End, turn: usize) -> Result<Duration> {
        let (_, mut leader) = self.running.remove(0);
        let next = self.running[0].0.clone();
        // Some of them have their parameters written before, some after.
        for index in 0..20 {
            cluster.create_tool(test, &format!("{test}-{turn}-{index}"), UID).await?;
        }
        let begun = Instant::now();
        leader.signal(match end {
            End::Well => "TERM",
            End::Killed => "KILL",
            End::Paused => "STOP",
        })?;
        wait_leader(cluster, &next).await?;
        let took = begun.elapsed();
        edit(cluster, test, turn).await?;
        if end == End::Paused {
            leader.signal("CONT")?;
        }
        within(LIMIT, "the former leader ends", || {
            let running = leader.is_running().map_err(|error| error.to_string());
            async move { if running? { Err("it runs".to_owned()) } else { Ok(()) } }
        })
        .await?;
        all_have_parameters(cluster, test, turn).await?;
        self.start(cluster)?;
        Ok(took)
    }
}

fn profile(test: &str, turn: usize) -> Json {
    let mut profile = Cluster::small_profile(test);
    profile["spec"]["host"]["ports"] = json!([{"min": 8000 + turn, "max": 8000 + turn}]);
    profile
}

async fn edit(cluster: &Cluster, test: &str, turn: usize) -> TestResult {
    cluster.enforce(&profile(test, turn)).await.map(drop)
}

async fn all_have_parameters(cluster: &Cluster, test: &str, turn: usize) -> TestResult {
    within(LIMIT, "parameters in the new namespaces", || async {
        for index in 0..20 {
            cluster.params(&format!("{test}-{turn}-{index}"), test).await?;
        }
        Ok(())
    })
    .await?;
    Ok(())
}

pub(crate) async fn a_replica_takes_over_and_the_former_leader_writes_nothing(cluster: &mut Cluster) -> TestResult {
    let test = "elected";
    let seconds: u64 = std::env::var("PALISADE_HA_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    cluster.stop_controller().await?;
    let since = Timestamp::now();
    cluster.create_tool(test, test, UID).await?;
    let mut replicas = Replicas { count: 0, running: Vec::new() };
    replicas.start(cluster)?;
    wait_leader(cluster, "replica-0").await?;
    replicas.start(cluster)?;
    edit(cluster, test, 0).await?;
    let watch = Watch::start(cluster, test, hostile_pod("hostile"), false);

    let begun = Instant::now();
    let mut times = BTreeMap::<End, Vec<Duration>>::new();
    let mut turn = 1;
    while turn <= 3 || begun.elapsed() < Duration::from_secs(seconds) {
        let end = [End::Killed, End::Well, End::Paused][turn % 3];
        // Whether the next one has read everything before it takes over differs from turn to turn.
        tokio::time::sleep(Duration::from_millis(u64::try_from(turn * 733 % 4000)?)).await;
        times.entry(end).or_default().push(replicas.hand_over(cluster, test, end, turn).await?);
        turn += 1;
    }
    watch.finish("a violating pod while leaders change").await?;
    for (end, mut times) in times {
        times.sort();
        let (middle, longest) = (times[times.len() / 2], times[times.len() - 1]);
        println!(
            "{} leaders ended ({end:?}): the next led after {:.1} s (p50), {:.1} s (longest)",
            times.len(),
            middle.as_secs_f64(),
            longest.as_secs_f64()
        );
    }
    drop(replicas);
    eventually("the log has all writes", || async {
        let log = writes(cluster).map_err(|error| error.to_string())?;
        let of = log.iter().filter(|write| !write.election && write.at >= since).count();
        if of >= 20 * 3 { Ok(()) } else { Err(format!("{of} writes")) }
    })
    .await?;
    only_leaders_wrote(cluster, since)?;
    cluster.restart_controller(Cluster::options()?).await?;
    cluster.delete_profile(test).await
}

/// A request of a replica that changed something.
struct Write {
    at: Timestamp,
    done: Timestamp,
    /// Each replica has a token of its own.
    token: String,
    what: String,
    /// Whether it took or renewed the Lease, or released it.
    election: bool,
}

fn writes(cluster: &Cluster) -> Result<Vec<Write>> {
    let log = std::fs::read_to_string(cluster.control_plane.audit_log_path().ok_or("no audit log")?)?;
    let user = format!("system:serviceaccount:{}:{}", names::OPERATOR_NAMESPACE, names::CONTROLLER);
    let mut writes = Vec::new();
    for event in log.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok()) {
        let uri = text(&event, "/requestURI");
        let reads = ["get", "list", "watch"].contains(&text(&event, "/verb").as_str());
        let done = event["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300);
        if text(&event, "/user/username") != user || reads || uri.contains("dryRun=All") || !done {
            continue;
        }
        writes.push(Write {
            at: text(&event, "/requestReceivedTimestamp").parse()?,
            done: text(&event, "/stageTimestamp").parse()?,
            token: text(&event, "/user/extra/authentication.kubernetes.io~1credential-id/0"),
            election: text(&event, "/objectRef/resource") == "leases",
            what: format!("{} {uri}", text(&event, "/verb")),
        });
    }
    Ok(writes)
}

/// By the audit log: each write since then is of the replica that had written the Lease last.
fn only_leaders_wrote(cluster: &Cluster, since: Timestamp) -> TestResult {
    let mut all = writes(cluster)?;
    all.retain(|write| write.at >= since);
    all.sort_by_key(|write| write.done);
    ensure!(all.iter().all(|write| !write.token.is_empty()), "a request without a token's id");
    let (elections, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|write| write.election);
    let leads = |write: &Write| {
        let last = elections.iter().rfind(|election| election.done <= write.at);
        // The API server says when it has answered, not when it has stored: one of the two may lead already.
        let begins =
            |election: &Write| election.token == write.token && election.at <= write.at && election.done >= write.at;
        last.is_some_and(|last| last.token == write.token) || elections.iter().any(begins)
    };
    let wrong: Vec<_> =
        others.iter().filter(|write| !leads(write)).map(|write| format!("{} at {}", write.what, write.at)).collect();
    ensure!(wrong.is_empty(), "{} writes by a replica that did not lead: {wrong:#?}", wrong.len());
    let leaders = 1 + elections.windows(2).filter(|pair| pair[0].token != pair[1].token).count();
    println!("{} writes of {leaders} leaders, one after the other", others.len());
    ensure!(leaders >= 4, "{leaders} leaders");
    Ok(())
}
