//! The chart in a cluster, by helm itself: installed, upgraded, rolled back, uninstalled. What the Deployments and Jobs of
//! the release ask for runs as processes here ([`Nodes`]).

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use palisade_api::names;
use palisade_tests::{Cluster, Nodes, TestResult, Verdict, ensure, eventually, hostile_pod, root, tool_pod, within};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::lifecycle::Watch;

crate::groups::scenarios! {
    // It takes minutes, and requires helm: cargo xtask helm.
    the_chart_is_installed_upgraded_rolled_back_and_uninstalled: Helm if "PALISADE_HELM";
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How long anything may take, on a machine that has other things to do.
const LIMIT: Duration = Duration::from_mins(5);
const TEST: &str = "helm";
/// What is to be gone after an uninstallation, in all namespaces.
const KINDS: [&str; 9] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "clusterroles,clusterrolebindings,roles,rolebindings",
    "deployments,pods,jobs,leases,services,networkpolicies,poddisruptionbudgets,serviceaccounts,secrets",
    "controllerrevisions",
    "namespaces",
];

/// helm, as the admin.
pub(crate) struct Helm<'a> {
    cluster: &'a Cluster,
    program: PathBuf,
    home: TempDir,
}

impl<'a> Helm<'a> {
    pub(crate) fn new(cluster: &'a Cluster) -> Result<Self> {
        let program = std::env::var_os("PALISADE_HELM").ok_or("PALISADE_HELM names no helm")?.into();
        Ok(Self { cluster, program, home: tempfile::tempdir()? })
    }

    /// What it prints, and how long it took.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String> {
        let begun = Instant::now();
        let mut command = Command::new(&self.program);
        for (variable, directory) in
            [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")]
        {
            command.env(variable, self.home.path().join(directory));
        }
        let output = command
            .env("KUBECONFIG", self.cluster.control_plane.kubeconfig_path())
            .args(arguments)
            .args(["--namespace", names::OPERATOR_NAMESPACE])
            .output()?;
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "helm {arguments:?}: {out}{}", String::from_utf8_lossy(&output.stderr));
        println!("helm {} took {:.1} s", arguments.join(" "), begun.elapsed().as_secs_f64());
        Ok(out)
    }

    /// A value of an object, by kubectl.
    fn get(&self, what: &[&str], path: &str) -> Result<String> {
        let format = format!("jsonpath={{{path}}}");
        self.cluster.kubectl(&[&["get", "-n", names::OPERATOR_NAMESPACE, "-o", &format], what].concat())
    }
}

/// The chart as if it were of an earlier version.
fn earlier(to: &Path) -> Result<String> {
    fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let (entry, to) = (entry?, to.to_owned());
            let target = to.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                copy(&entry.path(), &target)?;
            } else {
                fs::copy(entry.path(), target)?;
            }
        }
        Ok(())
    }
    copy(&root().join("charts/palisade"), to)?;
    let chart = to.join("Chart.yaml");
    let text = fs::read_to_string(&chart)?;
    let version = format!("ersion: {}\n", env!("CARGO_PKG_VERSION"));
    ensure!(text.matches(&version).count() == 2, "{text}");
    fs::write(&chart, text.replace(&version, "ersion: 0.0.9\n"))?;
    Ok(to.display().to_string())
}

/// The first profile that the notes tell to apply.
fn first_profile(notes: &str) -> Result<Json> {
    let text = notes.split("kubectl apply -f - <<EOF\n").nth(1).and_then(|rest| rest.split("     EOF").next());
    let text = text.ok_or_else(|| format!("no profile in {notes}"))?;
    let lines: Vec<_> = text.lines().map(|line| line.strip_prefix("     ").unwrap_or(line)).collect();
    Ok(serde_saphyr::from_str(&lines.join("\n"))?)
}

async fn ready(cluster: &Cluster, namespaces: usize) -> Result<Duration> {
    let ((), took) = within(LIMIT, "all namespaces have parameters", || async {
        let profile = cluster.profiles().get(TEST).await.map_err(|error| error.to_string())?;
        let counts = profile.status.map(|status| status.namespaces).unwrap_or_default();
        if usize::try_from(counts.ready) == Ok(namespaces) { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await?;
    Ok(took)
}

/// In each namespace a violating pod is denied, and one that complies is admitted.
async fn all_are_enforced(cluster: &Cluster, namespaces: usize) -> TestResult {
    let ask = |index: usize| async move {
        let name = format!("{TEST}-{index}");
        let (bad, good) = (hostile_pod("hostile"), tool_pod("job", UID));
        let (bad, good) = (cluster.dry_run(&name, &bad).await, cluster.dry_run(&name, &good).await);
        ensure!(bad.denial().is_some() && good == Verdict::Admitted, "{name}: {bad:?}, {good:?}");
        TestResult::Ok(())
    };
    stream::iter((0..namespaces).map(ask)).buffer_unordered(8).try_collect::<Vec<_>>().await.map(drop)
}

const UID: i64 = 50_001;

/// What there is of Palisade, but for what stays.
fn left(cluster: &Cluster) -> Result<Vec<String>> {
    let mut left = Vec::new();
    for kinds in KINDS {
        let found = cluster.kubectl(&["get", kinds, "--all-namespaces", "-o", "name"])?;
        left.extend(
            found.lines().filter(|name| name.contains("palisade") || name.contains("helm.release")).map(str::to_owned),
        );
    }
    left.retain(|name| name != "namespace/palisade-system");
    Ok(left)
}

/// Removes what a scenario begins with. Returns where its manifests are.
pub(crate) async fn without_palisade(cluster: &mut Cluster) -> Result<String> {
    cluster.stop_controller().await?;
    let manifests = root().join("manifests").display().to_string();
    // An API server that does not serve a kind yet deletes its definition only after minutes.
    eventually("the kinds are served", || async {
        let kinds = ["toolsecurityexceptions", "toolsecurityparams", "toolsecurityprofiles", "toolsecurityreports"];
        let found = cluster.kubectl(&["get", &kinds.join(","), "--all-namespaces"]);
        found.map(drop).map_err(|error| error.to_string())
    })
    .await?;
    // A margin: the API server does not report when its other controllers have seen these kinds.
    tokio::time::sleep(Duration::from_secs(5)).await;
    cluster.kubectl(&["delete", "--ignore-not-found", "--timeout=300s", "-k", &manifests])?;
    Ok(manifests)
}

pub(crate) async fn the_chart_is_installed_upgraded_rolled_back_and_uninstalled(cluster: &mut Cluster) -> TestResult {
    let namespaces: usize = std::env::var("PALISADE_HELM_NAMESPACES").ok().map_or(Ok(500), |text| text.parse())?;
    let manifests = without_palisade(cluster).await?;
    let chart = root().join("charts/palisade").display().to_string();
    let (cluster, directory) = (&*cluster, tempfile::tempdir()?);
    let (helm, nodes) = (Helm::new(cluster)?, Nodes::start(cluster)?);
    let waits = ["--wait", "--timeout=10m"];

    let earlier = earlier(&directory.path().join("palisade"))?;
    let small = "webhook.replicas=1";
    let install = ["install", "palisade", &earlier, "--create-namespace", "--set", small];
    let notes = helm.run(&[&install[..], &waits].concat())?;
    // The notes are right about what to do next.
    let first = first_profile(&notes)?;
    cluster.apply_profile(&first).await?;
    cluster.wait_condition("restricted", "Ready", "True").await?;
    cluster.delete_profile("restricted").await?;

    let create = |index: usize| async move { cluster.create_tool(TEST, &format!("{TEST}-{index}"), UID).await };
    stream::iter((0..namespaces).map(create)).buffer_unordered(8).try_collect::<Vec<_>>().await?;
    cluster.enforce(&Cluster::toolforge_profile(TEST)?).await?;
    ready(cluster, namespaces).await?;
    all_are_enforced(cluster, namespaces).await?;
    println!("{namespaces} namespaces are enforced");

    let secret = ["secret", "palisade-webhook-cert"];
    let certificate = helm.get(&secret, ".data")?;
    ensure!(certificate.contains("tls.crt"), "{certificate}");
    let bad = Watch::start(cluster, &format!("{TEST}-0"), hostile_pod("hostile"), false);
    let good = Watch::start(cluster, &format!("{TEST}-1"), tool_pod("job", UID), true);
    let more = "webhook.replicas=1,controller.replicas=3,scan.enabled=true,rollout.enabled=true";
    helm.run(&[&["upgrade", "palisade", &chart, "--set", more], &waits[..]].concat())?;
    let deployment = ["deployment", "palisade-controller"];
    let image = helm.get(&deployment, ".spec.template.spec.containers[0].image")?;
    ensure!(image == format!("palisade-controller:{}", env!("CARGO_PKG_VERSION")), "{image}");
    ensure!(helm.get(&deployment, ".status.readyReplicas")? == "3", "not three replicas");
    ensure!(helm.get(&secret, ".data")? == certificate, "the upgrade changed the certificate");
    helm.run(&["test", "palisade", "--timeout=5m"])?;
    ensure!(nodes.started("verify") > 0, "helm test started nothing");
    helm.run(&[&["rollback", "palisade", "1"], &waits[..]].concat())?;
    ensure!(helm.get(&deployment, ".spec.replicas")? == "2", "not two replicas");
    ensure!(
        helm.get(&["clusterrole", "palisade-controller-scan", "--ignore-not-found"], ".metadata.name")?.is_empty(),
        "the scan's role is there"
    );
    ensure!(helm.get(&secret, ".data")? == certificate, "the rollback changed the certificate");
    all_are_enforced(cluster, namespaces).await?;
    bad.finish("a violating pod during upgrade, test and rollback").await?;
    good.finish("a complying pod during upgrade, test and rollback").await?;

    // What a tenant wrote stays with the definitions.
    let exception = json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityException", "metadata": {"name": "asked"},
        "spec": {
            "profile": TEST, "checks": ["hostNamespaces"], "scope": {"kind": "Namespace"}, "reason": "a test",
            "expires": "2099-01-01T00:00:00Z",
        },
    });
    let exceptions = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{TEST}-0/toolsecurityexceptions");
    let made = cluster.create_at(&exceptions, &exception).await;
    ensure!(made == Verdict::Admitted, "{made:?}");
    // While it goes, nothing that complies is denied.
    let good = Watch::start(cluster, &format!("{TEST}-1"), tool_pod("job", UID), true);
    helm.run(&[&["uninstall", "palisade"], &waits[..]].concat())?;
    good.finish("a complying pod during the uninstallation").await?;
    ensure!(nodes.started("cleanup") > 0, "no Job ran before the uninstallation");
    ensure!(left(cluster)?.is_empty(), "left: {:?}", left(cluster)?);
    let of_kind = |kind: &str| cluster.kubectl(&["get", kind, "--all-namespaces", "-o", "name"]);
    for kind in ["toolsecurityprofiles", "toolsecurityparams", "toolsecurityreports"] {
        ensure!(of_kind(kind)?.is_empty(), "left: {}", of_kind(kind)?);
    }
    ensure!(of_kind("toolsecurityexceptions")?.lines().count() == 1, "the exception is gone");
    let free = cluster.dry_run(&format!("{TEST}-0"), &hostile_pod("free")).await;
    ensure!(free == Verdict::Admitted, "{free:?}");

    // A release takes over what kubectl has installed; and removal does not wedge where no controller runs.
    // The definitions that stayed are helm's.
    let crds = root().join("crds").display().to_string();
    cluster.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", &crds])?;
    cluster.install()?;
    let over = ["install", "palisade", &chart, "--take-ownership", "--force-conflicts", "--set"];
    helm.run(&[&over[..], &["webhook.enabled=false,crds.keep=false"], &waits].concat())?;
    cluster.enforce(&Cluster::toolforge_profile(TEST)?).await?;
    ready(cluster, namespaces).await?;
    nodes.break_deployments();
    let (before, begun) = (nodes.started("cleanup"), Instant::now());
    helm.run(&[&["uninstall", "palisade"], &waits[..]].concat())?;
    println!("uninstalled without a controller after {:.1} s", begun.elapsed().as_secs_f64());
    ensure!(nodes.started("cleanup") > before, "no Job ran before the uninstallation");
    ensure!(cluster.kubectl(&["get", "crd", "-o", "name"])?.is_empty(), "the definitions are there");
    // The webhook's were kubectl's, and no part of the release.
    cluster.kubectl(&["delete", "--ignore-not-found", "--timeout=120s", "-k", &manifests])?;
    ensure!(left(cluster)?.is_empty(), "left: {:?}", left(cluster)?);
    Ok(())
}
