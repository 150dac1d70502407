//! The background scan also writes reports of the APIs that other tools read: `OpenReports`, and the one that it comes from.
//! Their definitions are those that `OpenReports` and Kyverno publish, from the Go modules that `tests/peers` pins.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::DeleteParams};
use palisade_api::names;
use palisade_controller::{Options, PolicyReports, ScanInterval};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, root, tool_pod};
use serde_json::{Value as Json, json};

use crate::scan::{
    Result, UID, Violations, denied, deploy, permit, profile, reported, reports_of, scans, violating, wait_found,
};

crate::groups::scenarios! {
    violations_are_reported_where_other_tools_look: Judged 350;
}

const TEST: &str = "reported";

/// An API of reports.
struct ReportApi {
    /// The directory that pins a Go module, which has its definition, and where.
    pinned: &'static str,
    module: &'static str,
    definition: &'static str,
    /// The resource, and its path.
    resource: &'static str,
    path: &'static str,
}

const OPEN_REPORTS: ReportApi = ReportApi {
    pinned: "tests/peers/openreports",
    module: "github.com/openreports/reports-api",
    definition: "config/install.yaml",
    resource: "reports.openreports.io",
    path: "/apis/openreports.io/v1alpha1/reports",
};
const POLICY_REPORTS: ReportApi = ReportApi {
    pinned: "tests/peers/kyverno",
    module: "github.com/kyverno/kyverno",
    definition: "config/crds/policyreport/wgpolicyk8s.io_policyreports.yaml",
    resource: "policyreports.wgpolicyk8s.io",
    path: "/apis/wgpolicyk8s.io/v1alpha2/policyreports",
};

impl ReportApi {
    /// Its definition, as the project publishes it.
    fn file(&self) -> Result<String> {
        let go = |arguments: &[&str]| -> Result<String> {
            let directory = root().join(self.pinned);
            let output = Command::new("go").args(arguments).arg(self.module).current_dir(directory).output()?;
            let err = String::from_utf8_lossy(&output.stderr);
            if output.status.success() { Ok(String::from_utf8(output.stdout)?) } else { Err(err.into()) }
        };
        go(&["mod", "download"])?;
        Ok(format!("{}/{}", go(&["list", "-m", "-f", "{{.Dir}}"])?.trim(), self.definition))
    }

    fn install(&self, cluster: &Cluster) -> TestResult {
        cluster.kubectl(&["create", "-f", &self.file()?])?;
        cluster.wait_established(&["crd", self.resource])
    }

    fn remove(&self, cluster: &Cluster) -> TestResult {
        cluster.kubectl(&["delete", "-f", &self.file()?, "--timeout=120s"]).map(drop)
    }

    /// The reports of the profile. Other scenarios leave theirs.
    async fn list(&self, cluster: &Cluster) -> std::result::Result<Vec<Json>, String> {
        let list = cluster.answer_to("GET", self.path, &json!(null)).await?;
        let all = list["items"].as_array().cloned().unwrap_or_default();
        Ok(all.into_iter().filter(|one| one["metadata"]["labels"][names::PROFILE_LABEL] == TEST).collect())
    }

    /// The versions of all reports, by namespace.
    async fn versions(&self, cluster: &Cluster) -> std::result::Result<BTreeMap<String, String>, String> {
        let all = self.list(cluster).await?;
        Ok(all.iter().map(|one| (text(one, "/metadata/namespace"), text(one, "/metadata/resourceVersion"))).collect())
    }

    /// Waits until the reports name just these violations.
    async fn wait_for(&self, cluster: &Cluster, expected: &Violations) -> TestResult {
        eventually(&format!("{} names {} violations", self.resource, expected.len()), || async {
            let found = violations(&self.list(cluster).await?);
            if found == *expected { Ok(()) } else { Err(format!("{found:#?} instead of {expected:#?}")) }
        })
        .await?;
        Ok(())
    }
}

fn text(of: &Json, pointer: &str) -> String {
    of.pointer(pointer).and_then(Json::as_str).unwrap_or_default().to_owned()
}

/// What reports say, in the terms of the scan's own.
fn violations(reports: &[Json]) -> Violations {
    let results = reports.iter().flat_map(|report| report["results"].as_array().into_iter().flatten());
    results
        .filter(|result| result["result"] == "fail" && result["policy"] == TEST && result["source"] == "palisade")
        .map(|result| {
            let workload = format!("{}/{}", text(result, "/resources/0/kind"), text(result, "/resources/0/name"));
            let key = (text(result, "/resources/0/namespace"), workload, text(result, "/rule"));
            (key, text(result, "/properties/objects").parse().unwrap_or_default())
        })
        .collect()
}

async fn scan_with(cluster: &mut Cluster, policy_reports: PolicyReports) -> TestResult {
    let scan_interval = ScanInterval(Some(Duration::from_secs(1)));
    let options = Options { scan_interval, scan_policy_reports: policy_reports, ..Cluster::options()? };
    cluster.restart_controller(options).await
}

/// Waits until so many more scans have ended well.
async fn more_scans(cluster: &Cluster, count: i64) -> TestResult {
    let done = scans(&cluster.controller_get("/metrics").await?);
    eventually("more scans", || async {
        let now = scans(&cluster.controller_get("/metrics").await.map_err(|error| error.to_string())?);
        if now >= done + count { Ok(()) } else { Err(format!("{now} after {done}")) }
    })
    .await?;
    Ok(())
}

/// Each result names the very object, and the summary counts all of them. Policy Reporter takes the source of a report from
/// its first result, the object from the result or else from the scope, and tells results apart by what is in `identities`.
async fn results_are_exact(cluster: &Cluster, api: &ReportApi) -> TestResult {
    let mut identities = BTreeSet::new();
    for report in api.list(cluster).await? {
        let results = report["results"].as_array().ok_or("no results")?;
        ensure!(report["summary"]["fail"] == results.len() && report["summary"]["pass"] == 0, "{report}");
        ensure!(text(&report, "/metadata/labels/app.kubernetes.io~1managed-by") == "palisade", "{report}");
        ensure!(text(&report, "/metadata/ownerReferences/0/name") == TEST, "{report}");
        ensure!(report["scope"].is_null() && text(&report, "/results/0/source") == "palisade", "{report}");
        for result in results {
            let [kind, namespace, name] =
                ["kind", "namespace", "name"].map(|key| text(result, &format!("/resources/0/{key}")));
            let version = text(result, "/resources/0/apiVersion");
            let prefix = if version.contains('/') { "/apis/" } else { "/api/" };
            let path = format!("{prefix}{version}/namespaces/{namespace}/{}s/{name}", kind.to_lowercase());
            let object = cluster.answer_to("GET", &path, &json!(null)).await?;
            ensure!(object["metadata"]["uid"] == result["resources"][0]["uid"], "{path}: {result}");
            let identity = ["/resources/0/uid", "/policy", "/rule", "/result", "/category", "/message"];
            ensure!(identities.insert(identity.map(|pointer| text(result, pointer))), "twice: {result}");
            let severity = text(result, "/severity");
            ensure!(severity == if result["rule"] == "hostNamespaces" { "high" } else { "medium" }, "{result}");
        }
    }
    Ok(())
}

async fn objects(cluster: &Cluster, namespaces: &[String]) -> TestResult {
    for namespace in namespaces {
        cluster.create_tool(TEST, namespace, UID).await?;
    }
    deploy(cluster, &namespaces[0], "web", &violating("web"), 2).await?;
    deploy(cluster, &namespaces[0], "good", &tool_pod("good", UID), 1).await?;
    for (namespace, pod) in [(&namespaces[1], violating("bad")), (&namespaces[2], tool_pod("good", UID))] {
        let verdict = cluster.create_pod(namespace, &pod).await;
        ensure!(verdict == Verdict::Admitted, "{namespace}: {verdict:?}");
    }
    eventually("the pods of the ReplicaSet", || async {
        let pods = Api::<Pod>::namespaced(cluster.admin.clone(), &namespaces[0]);
        let count = pods.list(&kube::api::ListParams::default()).await.map_err(|error| error.to_string())?.items.len();
        if count == 3 { Ok(()) } else { Err(format!("{count} pods")) }
    })
    .await?;
    Ok(())
}

pub(crate) async fn violations_are_reported_where_other_tools_look(cluster: &mut Cluster) -> TestResult {
    let namespaces: Vec<_> = (0..3).map(|index| format!("{TEST}-{index}")).collect();
    objects(cluster, &namespaces).await?;
    permit(cluster, "apply")?;
    scan_with(cluster, PolicyReports::Auto).await?;
    // Without any such API, the scan goes on without them.
    cluster.apply_profile(&profile(TEST, "Audit")?).await?;
    wait_found(cluster, TEST, 2).await?;
    cluster.enforce(&profile(TEST, "Deny")?).await?;
    let (denied, _) = denied(cluster, &namespaces, |_| true).await?;
    ensure!(denied.len() > 4, "{denied:?}");

    POLICY_REPORTS.install(cluster)?;
    POLICY_REPORTS.wait_for(cluster, &denied).await?;
    results_are_exact(cluster, &POLICY_REPORTS).await?;

    // The newer API appears: the reports move, and nothing is written as long as nothing changes, nor by the next process.
    OPEN_REPORTS.install(cluster)?;
    OPEN_REPORTS.wait_for(cluster, &denied).await?;
    results_are_exact(cluster, &OPEN_REPORTS).await?;
    POLICY_REPORTS.wait_for(cluster, &Violations::new()).await?;
    ensure!(POLICY_REPORTS.list(cluster).await?.is_empty(), "reports without results are left");
    let versions = OPEN_REPORTS.versions(cluster).await?;
    ensure!(versions.keys().eq(&namespaces[..2]), "{versions:?}");
    more_scans(cluster, 2).await?;
    scan_with(cluster, PolicyReports::Auto).await?;
    wait_found(cluster, TEST, 2).await?;
    more_scans(cluster, 2).await?;
    let again = OPEN_REPORTS.versions(cluster).await?;
    ensure!(again == versions, "a scan wrote what was there: {versions:?}, {again:?}");

    // What is forged is put right; what is mended while the controller is down goes after that.
    let path = format!("/apis/openreports.io/v1alpha1/namespaces/{}/reports/palisade-{TEST}", namespaces[0]);
    let forged = json!({"results": [{"policy": TEST, "result": "pass"}], "summary": {"fail": 0}});
    ensure!(cluster.patch_at(&path, &forged).await == Verdict::Admitted, "it cannot be forged");
    OPEN_REPORTS.wait_for(cluster, &denied).await?;
    cluster.stop_controller().await?;
    let pods = Api::<Pod>::namespaced(cluster.admin.clone(), &namespaces[1]);
    pods.delete("bad", &DeleteParams::default().grace_period(0)).await?;
    scan_with(cluster, PolicyReports::Auto).await?;
    let left: Violations = denied.into_iter().filter(|((namespace, ..), _)| *namespace == namespaces[0]).collect();
    OPEN_REPORTS.wait_for(cluster, &left).await?;
    ensure!(
        OPEN_REPORTS.versions(cluster).await?.keys().eq(&namespaces[..1]),
        "the report of a pod that is gone is left"
    );

    // Turned off, and on again; the API goes, and with it the profile.
    scan_with(cluster, PolicyReports::Off).await?;
    eventually("no reports", || async {
        let found = OPEN_REPORTS.list(cluster).await?;
        if found.is_empty() { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await?;
    ensure!(reported(&reports_of(cluster, TEST).await?) == left, "its own reports went, too");
    scan_with(cluster, PolicyReports::Auto).await?;
    OPEN_REPORTS.wait_for(cluster, &left).await?;
    OPEN_REPORTS.remove(cluster)?;
    POLICY_REPORTS.wait_for(cluster, &left).await?;
    cluster.delete_profile(TEST).await?;
    eventually("nothing is left of the profile", || async {
        let found = POLICY_REPORTS.list(cluster).await?;
        if found.is_empty() { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await?;
    POLICY_REPORTS.remove(cluster)?;
    permit(cluster, "delete")?;
    cluster.restart_controller(Cluster::options()?).await
}
