//! The background scan says of existing objects what the API server says of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use palisade_api::{ScanStatus, ToolSecurityReport};
use palisade_controller::{Options, ScanInterval};
use palisade_kube_json::json::set;
use palisade_tests::{
    Cluster, TestResult, Verdict, cpu_of, ensure, eventually, memory_of, plain_get, root, tool_pod, within,
};
use serde_json::{Value as Json, json};

use crate::history::{palisade, printed};

crate::groups::scenarios! {
    the_scan_reports_what_the_api_server_would_deny: Judged 310;
    // It takes minutes: cargo xtask scan.
    twenty_thousand_pods_are_scanned: Alone 30 if "PALISADE_SCAN_CONTROLLER";
}

pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

pub(crate) const UID: i64 = 50_001;
/// How long thousands of objects may take, on a machine that has other things to do.
const LIMIT: Duration = Duration::from_mins(10);

/// How many objects of a workload violate a check, by namespace, workload and check.
pub(crate) type Violations = BTreeMap<(String, String, String), i64>;

pub(crate) fn permit(cluster: &Cluster, verb: &str) -> TestResult {
    cluster.kubectl(&[verb, "-k", &root().join("manifests/scan").display().to_string()]).map(drop)
}

pub(crate) fn profile(test: &str, stage: &str) -> Result<Json> {
    let mut profile = Cluster::toolforge_profile(test)?;
    set(&mut profile, &["spec", "enforcement"], json!({"pods": stage, "workloads": stage}));
    Ok(profile)
}

/// A pod that violates a few checks.
pub(crate) fn violating(name: &str) -> Json {
    let mut pod = tool_pod(name, UID);
    set(&mut pod, &["spec", "hostNetwork"], true);
    for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
        set(container, &["securityContext", "runAsUser"], UID + 1);
        set(container, &["image"], "evil.example/miner");
    }
    pod
}

fn controlled_by(mut object: Json, owner: &Json) -> Json {
    let owner = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true,
    }]);
    set(&mut object, &["metadata", "ownerReferences"], owner);
    object
}

pub(crate) fn workload(kind: &str, name: &str, pod: &Json, replicas: i64) -> Json {
    let labels = json!({"app": name});
    let mut spec = pod["spec"].clone();
    set(&mut spec, &["restartPolicy"], "Always");
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": {"app": name, "toolforge": "tool"}}, "spec": spec},
        },
    })
}

/// A Deployment and its ReplicaSet.
pub(crate) async fn deploy(cluster: &Cluster, namespace: &str, name: &str, pod: &Json, replicas: i64) -> Result<Json> {
    let path = format!("/apis/apps/v1/namespaces/{namespace}");
    let deployment = workload("Deployment", name, pod, replicas);
    let deployment = cluster.answer_to("POST", &format!("{path}/deployments"), &deployment).await?;
    let set = controlled_by(workload("ReplicaSet", &format!("{name}-1"), pod, replicas), &deployment);
    Ok(cluster.answer_to("POST", &format!("{path}/replicasets"), &set).await?)
}

fn reports(cluster: &Cluster) -> Api<ToolSecurityReport> {
    Api::all(cluster.admin.clone())
}

pub(crate) async fn reports_of(cluster: &Cluster, test: &str) -> Result<BTreeMap<String, ToolSecurityReport>> {
    let list = reports(cluster).list(&ListParams::default()).await?;
    let of_test = list.items.into_iter().filter(|report| report.name_any() == test);
    Ok(of_test.map(|report| (report.namespace().unwrap_or_default(), report)).collect())
}

async fn scan_status(cluster: &Cluster, test: &str) -> std::result::Result<ScanStatus, String> {
    let profile = cluster.profiles().get(test).await.map_err(|error| error.to_string())?;
    profile.status.and_then(|status| status.scan).ok_or_else(|| "no scan in the status".to_owned())
}

/// Waits until a scan has found so many workloads that violate the profile.
pub(crate) async fn wait_found(cluster: &Cluster, test: &str, workloads: i64) -> Result<ScanStatus> {
    let (status, _) = within(LIMIT, &format!("{workloads} violating workloads"), || async {
        match scan_status(cluster, test).await {
            Ok(status) if status.workloads == workloads && status.message.is_empty() => Ok(status),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(status)
}

/// The checks that a denial names.
fn checks(denial: &str) -> BTreeSet<String> {
    let marks = denial.split('[').skip(1).filter_map(|rest| rest.split_once("] ").map(|(id, _)| id));
    marks.filter(|id| id.starts_with(|first: char| first.is_ascii_lowercase())).map(str::to_owned).collect()
}

/// An object as it would be sent anew, under another name.
fn anew(object: &Json) -> Json {
    let mut object = object.clone();
    let name = format!("anew-{}", object["metadata"]["name"].as_str().unwrap_or_default());
    let labels = object["metadata"]["labels"].clone();
    set(&mut object, &["metadata"], json!({"name": name, "labels": labels}));
    set(&mut object, &["status"], json!({}));
    object
}

/// What the API server denies of the pods, the Deployments and the ReplicaSets without an owner: by dry runs of each, or of
/// those that `asked` picks.
pub(crate) async fn denied(
    cluster: &Cluster,
    namespaces: &[String],
    asked: impl Fn(&str) -> bool + Copy + Send,
) -> Result<(Violations, usize)> {
    let all = stream::iter(namespaces.to_vec()).map(|namespace| async move {
        let (mut violations, mut count) = (Violations::new(), 0);
        let list = |group: &'static str, resource: &'static str| {
            let path = format!("{group}/namespaces/{namespace}/{resource}");
            async move { Result::Ok((cluster.answer_to("GET", &path, &json!(null)).await?, path)) }
        };
        let kinds = [("/apis/apps/v1", "deployments"), ("/apis/apps/v1", "replicasets"), ("/api/v1", "pods")];
        let mut sets = BTreeMap::new();
        for (group, resource) in kinds {
            let (found, path) = list(group, resource).await?;
            for object in found["items"].as_array().into_iter().flatten() {
                let owner = object.pointer("/metadata/ownerReferences/0").cloned().unwrap_or_default();
                let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                let text = |of: &Json| {
                    format!("{}/{}", of["kind"].as_str().unwrap_or_default(), of["name"].as_str().unwrap_or_default())
                };
                let workload = match resource {
                    "deployments" => format!("Deployment/{name}"),
                    "replicasets" if owner.is_null() => format!("ReplicaSet/{name}"),
                    "replicasets" => {
                        sets.insert(format!("ReplicaSet/{name}"), text(&owner));
                        continue;
                    }
                    _ if owner.is_null() => format!("Pod/{name}"),
                    _ => sets.get(&text(&owner)).cloned().unwrap_or_else(|| text(&owner)),
                };
                if !asked(&workload) {
                    continue;
                }
                count += 1;
                match cluster.create_at(&format!("{path}?dryRun=All"), &anew(object)).await {
                    Verdict::Admitted => {}
                    Verdict::Denied(text) => {
                        for check in checks(&text) {
                            *violations.entry((namespace.clone(), workload.clone(), check)).or_default() += 1;
                        }
                    }
                    Verdict::Refused(code, text) => return Err(format!("{path}/{name}: {code} {text}").into()),
                }
            }
        }
        Result::Ok((violations, count))
    });
    all.buffer_unordered(16)
        .try_fold((Violations::new(), 0), |(mut all, sum), (found, count)| async move {
            all.extend(found);
            Ok((all, sum + count))
        })
        .await
}

/// What the reports say.
pub(crate) fn reported(reports: &BTreeMap<String, ToolSecurityReport>) -> Violations {
    let lines = reports.iter().flat_map(|(namespace, report)| {
        report
            .spec
            .violations
            .iter()
            .map(move |one| ((namespace.clone(), one.workload.clone(), one.check.clone()), one.objects))
    });
    lines.collect()
}

async fn versions(cluster: &Cluster, test: &str) -> Result<BTreeMap<String, String>> {
    let reports = reports_of(cluster, test).await?;
    Ok(reports
        .into_iter()
        .map(|(namespace, report)| (namespace, report.resource_version().unwrap_or_default()))
        .collect())
}

/// How many scans have ended well, by the metrics.
pub(crate) fn scans(metrics: &str) -> i64 {
    sample(metrics, "palisade_scan_total{result=\"ok\"}").unwrap_or_default()
}

pub(crate) fn sample(metrics: &str, name: &str) -> Option<i64> {
    let line = metrics.lines().find(|line| line.starts_with(name))?;
    line.rsplit(' ').next()?.parse::<f64>().ok().map(|value| {
        #[allow(clippy::cast_possible_truncation, reason = "a count")]
        let value = value as i64;
        value
    })
}

/// A Deployment with three pods, a single ReplicaSet, a single pod; what complies beside; what nobody judges.
async fn objects(cluster: &Cluster, test: &str, namespaces: &[String]) -> TestResult {
    for namespace in namespaces {
        cluster.create_tool(test, namespace, UID).await?;
    }
    deploy(cluster, "scan-1", "web", &violating("web"), 3).await?;
    deploy(cluster, "scan-1", "good", &tool_pod("good", UID), 2).await?;
    let path = "/apis/apps/v1/namespaces/scan-2/replicasets";
    let verdict = cluster.create_at(path, &workload("ReplicaSet", "single", &violating("x"), 1)).await;
    ensure!(verdict == Verdict::Admitted, "{verdict:?}");
    cluster.create_namespace("scan-unselected", &json!({}), &json!({})).await?;
    for (namespace, pod) in
        [("scan-3", violating("bad")), ("scan-4", tool_pod("good", UID)), ("scan-unselected", violating("bad"))]
    {
        let verdict = cluster.create_pod(namespace, &pod).await;
        ensure!(verdict == Verdict::Admitted, "{namespace}: {verdict:?}");
    }
    eventually("the pods of the ReplicaSets", || async {
        let sets: Api<ReplicaSet> = Api::all(cluster.admin.clone());
        let list = sets.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let ready =
            list.items.iter().filter(|set| set.namespace().is_some_and(|name| name.starts_with("scan-"))).all(|set| {
                set.status.as_ref().map(|status| i64::from(status.replicas))
                    == set.spec.as_ref().and_then(|spec| spec.replicas).map(i64::from)
            });
        if ready { Ok(()) } else { Err("not all have their pods".to_owned()) }
    })
    .await?;
    Ok(())
}

pub(crate) async fn the_scan_reports_what_the_api_server_would_deny(cluster: &mut Cluster) -> TestResult {
    let test = "scan";
    let namespaces: Vec<_> = (0..6).map(|index| format!("scan-{index}")).collect();
    objects(cluster, test, &namespaces).await?;
    let options = Options { scan_interval: ScanInterval(Some(Duration::from_secs(1))), ..Cluster::options()? };
    cluster.restart_controller(options).await?;
    cluster.apply_profile(&profile(test, "Audit")?).await?;
    eventually("the status says what is missing", || async {
        match scan_status(cluster, test).await {
            Ok(status) if status.message.contains("kubectl apply -k manifests/scan") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    permit(cluster, "apply")?;
    let status = wait_found(cluster, test, 3).await?;
    ensure!((status.namespaces, status.not_judged) == (3, 0), "{status:?}");

    // What is not judged anew is not written anew.
    let before = versions(cluster, test).await?;
    let metrics = cluster.controller_get("/metrics").await?;
    let (done, violations) = (scans(&metrics), "palisade_violations{profile=\"scan\",check=\"hostNamespaces\"}");
    ensure!(sample(&metrics, violations) == Some(3), "{metrics}");
    eventually("two more scans", || async {
        let metrics = cluster.controller_get("/metrics").await.map_err(|error| error.to_string())?;
        if scans(&metrics) >= done + 2 { Ok(()) } else { Err(format!("{}", scans(&metrics))) }
    })
    .await?;
    ensure!(versions(cluster, test).await? == before, "a scan wrote what was there");
    let lines = cluster.kubectl(&["get", "tsreport", "--all-namespaces", "--no-headers"])?;
    ensure!(lines.lines().filter(|line| line.starts_with("scan-")).count() == 3, "{lines}");

    // The very same as the API server says, of each object.
    cluster.enforce(&profile(test, "Deny")?).await?;
    let (denied, asked) = denied(cluster, &namespaces, |_| true).await?;
    eventually("the reports say what the API server says", || async {
        let reports = reports_of(cluster, test).await.map_err(|error| error.to_string())?;
        let stage = reports.values().all(|report| report.spec.stage.to_string() == "Deny");
        let found = reported(&reports);
        if found == denied && stage { Ok(()) } else { Err(format!("{found:#?} instead of {denied:#?}; {reports:?}")) }
    })
    .await?;
    println!("{asked} objects, {} lines", denied.len());
    ensure!(
        denied[&("scan-1".to_owned(), "Deployment/web".to_owned(), "hostNamespaces".to_owned())] == 4,
        "{denied:?}"
    );

    the_report_to_hand_round(cluster, test, &denied).await?;
    let why = printed(cluster, &["why", "scan-1"]).await?;
    for part in
        ["stage       pods Deny", "uid = 50001 (from annotation toolforge.org/uid)", "Deployment/web [hostNamespaces] "]
    {
        ensure!(why.contains(part), "{part} is not in {why}");
    }
    tenant_asks_why(cluster, "scan-1").await?;
    let status = printed(cluster, &["status", test]).await?;
    ensure!(status.contains("hostNamespaces") && status.contains("3 workloads"), "{status}");

    // Whoever edits a namespace cannot edit what is reported of it.
    cluster.kubectl(&["create", "role", "everything", "--verb=*", "--resource=*.*", "-n", "scan-3"])?;
    cluster.kubectl(&[
        "create",
        "rolebinding",
        "everything",
        "--role=everything",
        "--user=editor-of-reports",
        "-n",
        "scan-3",
    ])?;
    let tenant = cluster.client_of_tenant("editor-of-reports").await?;
    let path = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/scan-3/toolsecurityreports/{test}");
    let verdict = cluster.ask_as(&tenant, "PATCH", &path, &json!({"spec": {"workloads": 0}})).await;
    ensure!(verdict.denial().is_some_and(|text| text.contains("are managed by palisade-controller")), "{verdict:?}");

    // What is mended goes, and what is forged or deleted is put right.
    Api::<Pod>::namespaced(cluster.admin.clone(), "scan-3")
        .delete("bad", &DeleteParams::default().grace_period(0))
        .await?;
    let forged = json!({"spec": {"workloads": 77, "checks": {"forged": 77}}});
    let path = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/scan-2/toolsecurityreports/{test}");
    let verdict = cluster.patch_at(&path, &forged).await;
    ensure!(verdict == Verdict::Admitted, "{verdict:?}");
    cluster.kubectl(&["delete", "tsreport", test, "-n", "scan-1"])?;
    wait_found(cluster, test, 2).await?;
    eventually("two reports as before", || async {
        let reports = reports_of(cluster, test).await.map_err(|error| error.to_string())?;
        let right =
            reports.values().all(|report| report.spec.workloads == 1 && !report.spec.checks.contains_key("forged"));
        let names: Vec<_> = reports.keys().collect();
        if right && names == ["scan-1", "scan-2"] { Ok(()) } else { Err(format!("{reports:?}")) }
    })
    .await?;
    cluster.delete_profile(test).await?;
    eventually("no report is left", || async {
        let reports = reports_of(cluster, test).await.map_err(|error| error.to_string())?;
        if reports.is_empty() { Ok(()) } else { Err(format!("{:?}", reports.keys())) }
    })
    .await?;
    permit(cluster, "delete")?;
    cluster.restart_controller(Cluster::options()?).await
}

/// `palisade report` names the same offenders.
/// With rights in its own namespace alone: to read the namespace, and what the role view contains of Palisade.
async fn tenant_asks_why(cluster: &Cluster, namespace: &str) -> TestResult {
    let (who, within) = ("--user=a-tenant", ["-n", namespace]);
    for arguments in [
        &["create", "role", "own", "--verb=get", "--resource=namespaces"][..],
        &["create", "rolebinding", "own", "--role=own", who],
        &["create", "rolebinding", "palisade-params-view", "--clusterrole=palisade-params-view", who],
    ] {
        cluster.kubectl(&[arguments, &within[..]].concat())?;
    }
    eventually("the tenant may ask", || async {
        let why =
            palisade(cluster, &["why", namespace, "--as", "a-tenant"]).await.map_err(|error| error.to_string())?;
        let parts = ["stage       pods Deny (from the report of ", "uid = 50001", "Deployment/web [hostNamespaces] "];
        let all = why.code == 0 && parts.iter().all(|part| why.out.contains(part));
        if all && why.err.contains("toolsecurityprofiles") { Ok(()) } else { Err(format!("{why:?}")) }
    })
    .await?;
    Ok(())
}

async fn the_report_to_hand_round(cluster: &Cluster, test: &str, denied: &Violations) -> TestResult {
    let report: Json = serde_json::from_str(&printed(cluster, &["report", "--live", "-o", "json"]).await?)?;
    let of_profile = |one: &Json| one["profile"] == test;
    let text = |of: &Json| of.as_str().unwrap_or_default().to_owned();
    let offenders: BTreeSet<_> = report["workloads"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|workload| {
            let violations = workload["violations"].as_array().into_iter().flatten().filter(|one| of_profile(one));
            violations.map(move |one| (text(&workload["namespace"]), text(&workload["workload"]), text(&one["check"])))
        })
        .collect();
    ensure!(offenders.iter().eq(denied.keys()), "{offenders:#?} instead of {denied:#?}");
    let web = report["workloads"].as_array().into_iter().flatten().find(|one| one["workload"] == "Deployment/web");
    ensure!(web.is_some_and(|web| web["objects"] == 4), "{web:?}");
    Ok(())
}

/// The controller's program, which ends with this.
struct Program {
    child: Child,
    address: String,
    _kubeconfig: tempfile::TempPath,
}

impl Program {
    fn start(cluster: &Cluster, path: &str) -> Result<Self> {
        let mut file = tempfile::NamedTempFile::new()?;
        std::io::Write::write_all(&mut file, cluster.controller_kubeconfig()?.as_bytes())?;
        let kubeconfig = file.into_temp_path();
        // Nobody else takes the port meanwhile, or else the program says so.
        let address = palisade_controlplane::free_address()?.to_string();
        let child = Command::new(path)
            .args([&format!("--listen={address}"), "--scan-interval=5s"])
            .env("KUBECONFIG", &kubeconfig)
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Self { child, address, _kubeconfig: kubeconfig })
    }

    async fn metrics(&self) -> std::result::Result<String, String> {
        plain_get(&self.address, "/metrics").await.map_err(|error| error.to_string())
    }

    /// Waits until so many scans have ended well, and says how long the last one took, in seconds.
    async fn scanned(&self, count: i64) -> Result<String> {
        let (metrics, _) = within(LIMIT, &format!("scan {count}"), || async {
            let metrics = self.metrics().await?;
            if scans(&metrics) >= count { Ok(metrics) } else { Err(format!("{} scans", scans(&metrics))) }
        })
        .await?;
        let line = metrics.lines().find(|line| line.starts_with("palisade_scan_last_duration_seconds"));
        Ok(line.and_then(|line| line.rsplit(' ').next()).unwrap_or_default().to_owned())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As large as Toolforge: only for `cargo xtask scan`, which says where the controller's program is.
pub(crate) async fn twenty_thousand_pods_are_scanned(cluster: &mut Cluster) -> TestResult {
    let (test, count) = ("scanned", 3_500_usize);
    let program = std::env::var("PALISADE_SCAN_CONTROLLER")?;
    cluster.stop_controller().await?;
    let start = Instant::now();
    {
        let cluster = &*cluster;
        stream::iter(0..count)
            .map(Ok)
            .try_for_each_concurrent(24, |index| async move {
                let namespace = format!("scanned-{index}");
                cluster.create_tool(test, &namespace, UID).await?;
                let pod = if index % 20 == 7 { violating("pod") } else { tool_pod("pod", UID) };
                // No controller makes pods here: the test does.
                let set = deploy(cluster, &namespace, "web", &pod, 5).await?;
                for pod_index in 0..(5 + usize::from(index % 7 < 5)) {
                    let mut pod = controlled_by(pod.clone(), &set);
                    set_name(&mut pod, &format!("web-1-{pod_index}"));
                    eventually("a pod", || async {
                        match cluster.create_pod(&namespace, &pod).await {
                            Verdict::Admitted => Ok(()),
                            other => Err(format!("{other:?}")),
                        }
                    })
                    .await?;
                }
                TestResult::Ok(())
            })
            .await?;
    }
    println!("{count} namespaces with their objects made in {:.0} s", start.elapsed().as_secs_f64());
    permit(cluster, "apply")?;
    cluster.apply_profile(&profile(test, "Audit")?).await?;
    let controller = Program::start(cluster, &program)?;
    let pid = controller.child.id();
    let violating: Vec<_> = (0..count).filter(|index| index % 20 == 7).collect();
    wait_found(cluster, test, i64::try_from(violating.len())?).await?;
    let metrics = controller.metrics().await?;
    let first = controller.scanned(1).await?;
    println!("first scan: {first} s, {} objects", sample(&metrics, "palisade_scan_objects").unwrap_or_default());
    let writes = |metrics: &str| {
        metrics
            .lines()
            .filter(|line| line.starts_with("palisade_writes_total") && line.contains("ToolSecurityReport"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (done, written) = (scans(&metrics), writes(&controller.metrics().await?));
    let (server, own) = (cluster.apiserver_cpu()?, cpu_of(pid)?);
    let second = controller.scanned(done + 2).await?;
    let server = cluster.apiserver_cpu()?.saturating_sub(server);
    let own = cpu_of(pid)?.saturating_sub(own);
    ensure!(writes(&controller.metrics().await?) == written, "a scan without changes wrote");
    println!(
        "a scan without changes: {second} s; two of them with the pause between: {:.1} s CPU of the API server, {:.1} s of the controller",
        server.as_secs_f64(),
        own.as_secs_f64()
    );
    println!("resident memory of the controller: {} MB", memory_of(pid)? / 1_000_000);

    cluster.enforce(&profile(test, "Deny")?).await?;
    // All that violate, and 2,000 pods and more of others.
    let others = (0..count).filter(|index| index % 10 == 3).map(|index| format!("scanned-{index}"));
    let asked: Vec<_> = violating.iter().map(|index| format!("scanned-{index}")).chain(others).collect();
    let (denied, asked) = denied(cluster, &asked, |_| true).await?;
    let objects: i64 =
        denied.iter().filter(|((_, _, check), _)| check == "hostNamespaces").map(|(_, count)| count).sum();
    let found = reported(&reports_of(cluster, test).await?);
    ensure!(found == denied, "the reports have {} lines, the API server denies {}", found.len(), denied.len());
    println!(
        "{asked} dry runs: the {objects} that violate are denied by just the checks that the reports name, the others admitted"
    );
    drop(controller);
    permit(cluster, "delete")
}

fn set_name(pod: &mut Json, name: &str) {
    set(pod, &["metadata", "name"], name);
}
