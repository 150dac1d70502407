//! The chart's dashboard and alerts, asked of a real Prometheus that scrapes a controller and a webhook at work.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::Duration,
};

use palisade_api::{RolloutPhase, names};
use palisade_controller::{Options, ScanInterval};
use palisade_controlplane::free_address;
use palisade_kube_json::json::set;
use palisade_tests::{
    Cluster, TestResult, Verdict, Webhook, bare_pod, ensure, eventually, hostile_pod, plain_get, root, tool_pod,
};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::{rollout, scan};

crate::groups::scenarios! {
    // It requires a Prometheus: cargo xtask dashboards.
    every_panel_and_alert_works_in_prometheus: Prometheus if "PALISADE_PROMETHEUS";
}

const TEST: &str = "dashboards";
/// A profile of which the webhook mutates pods.
const MUTATED: &str = "dashboards-mutated";
const UID: i64 = 50_001;

/// What Grafana writes instead of its variables. Prometheus asks each second here.
const VARIABLES: [(&str, &str); 4] =
    [("$__rate_interval", "10s"), ("$__range", "1h"), ("$cluster", ".*"), ("$profile", ".*")];

/// Prometheus, which ends with this.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    _directory: TempDir,
}

impl Prometheus {
    /// Starts one that scrapes these, each with the name of its pod, and evaluates the chart's rules.
    async fn start(targets: &[(&str, SocketAddr)]) -> TestResult<Self> {
        let program = std::env::var_os("PALISADE_PROMETHEUS").ok_or("PALISADE_PROMETHEUS names no prometheus")?;
        let (directory, address) = (tempfile::tempdir()?, free_address()?);
        // A ServiceMonitor adds the same labels.
        let scraped: Vec<_> = targets
            .iter()
            .map(|(pod, address)| {
                json!({"targets": [address.to_string()], "labels": {"namespace": names::OPERATOR_NAMESPACE, "pod": pod}})
            })
            .collect();
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [root().join("charts/palisade/files/alerts.yaml")],
            "scrape_configs": [{"job_name": "palisade", "static_configs": scraped}],
        });
        // JSON is YAML.
        let file = directory.path().join("prometheus.yaml");
        fs::write(&file, config.to_string())?;
        let child = Command::new(program)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .stdout(Stdio::null())
            .spawn()?;
        let prometheus = Self { child, address, _directory: directory };
        eventually("Prometheus scrapes all", || async {
            let up = prometheus.query("up == 1").await?;
            if up.len() == targets.len() { Ok(()) } else { Err(format!("{up:?}")) }
        })
        .await?;
        Ok(prometheus)
    }

    /// `data` of what its API answers.
    async fn get(&self, path: &str) -> Result<Json, String> {
        let answer = plain_get(self.address, path).await.map_err(|error| error.to_string())?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let body: Json = serde_json::from_str(body).map_err(|error| format!("{error}: {answer}"))?;
        if body["status"] == "success" { Ok(body["data"].clone()) } else { Err(body["error"].to_string()) }
    }

    /// What a query finds now. What is not a number is not found.
    async fn query(&self, query: &str) -> Result<Vec<Json>, String> {
        let encoded = query.bytes().fold(String::new(), |mut encoded, byte| {
            let _ = write!(encoded, "%{byte:02X}");
            encoded
        });
        let data = self.get(&format!("/api/v1/query?query={encoded}")).await?;
        let found = data["result"].as_array().cloned().unwrap_or_default();
        Ok(found.into_iter().filter(|one| one["value"][1] != "NaN").collect())
    }

    /// The names of the alerts that fire.
    async fn firing(&self) -> Result<BTreeSet<String>, String> {
        let found = self.query("ALERTS{alertstate=\"firing\"}").await?;
        Ok(found.iter().filter_map(|one| one["metric"]["alertname"].as_str()).map(str::to_owned).collect())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The queries of the dashboard, each with the title of its panel.
fn queries() -> TestResult<Vec<(String, String)>> {
    let dashboard: Json =
        serde_json::from_str(&fs::read_to_string(root().join("charts/palisade/files/dashboard.json"))?)?;
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().into_iter().flatten() {
        let title = panel["title"].as_str().unwrap_or_default();
        for target in panel["targets"].as_array().into_iter().flatten() {
            let mut query = target["expr"].as_str().unwrap_or_default().to_owned();
            for (variable, value) in VARIABLES {
                query = query.replace(variable, value);
            }
            ensure!(!query.contains('$'), "{title}: a variable that Grafana does not write here: {query}");
            queries.push((title.to_owned(), query));
        }
    }
    ensure!(queries.len() > 10, "{queries:?}");
    Ok(queries)
}

/// A rollout with a namespace that it promotes and one that it holds, pods that the webhook is asked about, one that is
/// denied, and a binding that somebody deletes.
async fn work(cluster: &Cluster) -> TestResult {
    let [good, bad] = ["good", "bad"].map(|name| format!("{TEST}-{name}"));
    for namespace in [&good, &bad] {
        cluster.create_tool(TEST, namespace, UID).await?;
    }
    eventually("a violating pod, before there is a profile", || async {
        match cluster.create_pod(&bad, &hostile_pod("hostile")).await {
            Verdict::Admitted => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    cluster.apply_profile(&rollout::profile(TEST, &json!({"waves": [{"percent": 100}]}))).await?;
    let held = |status: &palisade_api::RolloutStatus| status.phase == RolloutPhase::Complete && status.held == 1;
    rollout::wait_rollout(cluster, TEST, "complete, and one is held", held).await?;
    eventually("a violation is denied", || async {
        let verdict = cluster.dry_run(&good, &hostile_pod("another")).await;
        verdict.denial().map(|_| ()).ok_or_else(|| format!("{verdict:?}"))
    })
    .await?;
    cluster.wait_admitted(&good, &tool_pod("job", UID)).await?;
    cluster.create_tool(MUTATED, MUTATED, UID).await?;
    let mut profile = Cluster::toolforge_profile(MUTATED)?;
    set(&mut profile, &["spec", "mutation"], json!({"defaults": "Secure", "engine": "Webhook"}));
    cluster.enforce(&profile).await?;
    cluster.wait_admitted(MUTATED, &bare_pod("bare")).await
}

/// Somebody deletes a binding, and the controller restores it.
async fn tamper(cluster: &Cluster) -> TestResult {
    let of_profile = format!("{}={TEST}", names::PROFILE_LABEL);
    let list = ["get", "validatingadmissionpolicybindings", "-o", "name", "-l", &of_profile];
    let before = cluster.kubectl(&list)?;
    let binding = before.lines().next().ok_or("no binding")?;
    cluster.kubectl(&["delete", binding])?;
    eventually("the binding is back", || async {
        let now = cluster.kubectl(&list).map_err(|error| error.to_string())?;
        if now == before { Ok(()) } else { Err(now) }
    })
    .await?;
    Ok(())
}

pub(crate) async fn every_panel_and_alert_works_in_prometheus(cluster: &mut Cluster) -> TestResult {
    rollout::permit(cluster, "apply")?;
    scan::permit(cluster, "apply")?;
    let listen = free_address()?;
    let options = Options {
        listen,
        leader_elect: true,
        scan_interval: ScanInterval(Some(Duration::from_secs(1))),
        ..Cluster::options()?
    };
    cluster.restart_controller(options).await?;
    let webhook = Webhook::start(cluster, None, &[]).await?;
    let targets = [("palisade-controller-0", listen), ("palisade-webhook-0", webhook.health)];
    let prometheus = Prometheus::start(&targets).await?;
    work(cluster).await?;

    every_panel_has_data(&prometheus).await?;
    every_rule_is_evaluated(&prometheus).await?;
    let firing = prometheus.firing().await?;
    ensure!(firing.is_empty(), "nothing is wrong, and these fire: {firing:?}");
    // The first time since the start: a counter that began with 1 would show no increase.
    tamper(cluster).await?;
    eventually("the alert about it fires", || async {
        let firing = prometheus.firing().await?;
        if firing.iter().eq(["PalisadeDriftRepaired"]) { Ok(()) } else { Err(format!("{firing:?}")) }
    })
    .await?;

    drop(prometheus);
    for profile in [TEST, MUTATED] {
        cluster.delete_profile(profile).await?;
    }
    webhook.stop().await?;
    scan::permit(cluster, "delete")?;
    rollout::permit(cluster, "delete")
}

/// No panel is empty in a cluster without trouble: what counts trouble begins with 0.
async fn every_panel_has_data(prometheus: &Prometheus) -> TestResult {
    let queries = queries()?;
    let (mut problems, mut series) = (Vec::new(), 0);
    for (title, query) in &queries {
        let found = eventually(title, || async {
            match prometheus.query(query).await {
                // What is wrong stays wrong.
                Err(error) => Ok(Err(error)),
                Ok(found) if found.is_empty() => Err("no data".to_owned()),
                Ok(found) => Ok(Ok(found.len())),
            }
        })
        .await;
        match found {
            Ok(Ok(found)) => {
                println!("{title}: {found} series");
                series += found;
            }
            Ok(Err(problem)) | Err(problem) => problems.push(format!("{title}: {query}: {problem}")),
        }
    }
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    println!("{} queries, {series} series", queries.len());
    Ok(())
}

/// Every alert was evaluated, and without a mistake.
async fn every_rule_is_evaluated(prometheus: &Prometheus) -> TestResult {
    let written = fs::read_to_string(root().join("charts/palisade/files/alerts.yaml"))?;
    let written = written.matches("- alert: ").count();
    let count = eventually("all rules are evaluated", || async {
        let data = prometheus.get("/api/v1/rules").await?;
        let groups = data["groups"].as_array().into_iter().flatten();
        let rules: Vec<_> = groups.flat_map(|group| group["rules"].as_array().into_iter().flatten()).collect();
        let wrong: Vec<_> = rules.iter().filter(|rule| rule["health"] != "ok").collect();
        if rules.len() == written && wrong.is_empty() {
            Ok(rules.len())
        } else {
            Err(format!("{wrong:?} of {rules:?}"))
        }
    })
    .await?;
    println!("{count} alerts, all evaluated without an error");
    Ok(())
}
