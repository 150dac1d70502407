//! What the demo does, step by step.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt, stream};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, api::ListParams};
use palisade_api::names;
use palisade_controlplane::Component;
use palisade_tests::{Cluster, Verdict, hostile_pod, root, tool_pod};
use serde_json::json;

use crate::{
    Arguments, Result, bench_eval, bench_webhook,
    controller::Controller,
    report::{Figures, Memory},
};

const PROFILE: &str = "toolforge";
const FIRST_UID: i64 = 50_001;

/// What the demo leaves running. It ends when this is dropped, too.
pub(crate) struct Running {
    cluster: Cluster,
    controller: Controller,
}

impl Running {
    pub(crate) async fn stop(self) -> Result<()> {
        step("stopping everything");
        self.controller.stop().await?;
        self.cluster.stop().await
    }
}

pub(crate) async fn play(arguments: &Arguments) -> Result<Running> {
    step("starting etcd, kube-apiserver and kube-controller-manager");
    let start = Instant::now();
    let cluster = Cluster::start(arguments.emulated_version.as_deref()).await?;
    let started = start.elapsed();
    step("starting the controller, with the rights of manifests/rbac.yaml");
    let mut controller = Controller::start(&cluster)?;
    create_namespaces(&cluster, arguments.namespaces).await?;
    let before = (apiserver_memory(&cluster).await?, controller.memory()?);

    let profile = root().join("examples/toolforge/profile.yaml");
    step("kubectl apply -f examples/toolforge/profile.yaml");
    let start = Instant::now();
    cluster.kubectl(&["apply", "-f", &profile.display().to_string()])?;
    wait_enforced(&cluster, &mut controller, arguments.namespaces).await?;
    let seconds = start.elapsed().as_secs_f64();
    print!("\n{}", cluster.kubectl(&["get", "tsp"])?);

    show_pods(&cluster, arguments.namespaces).await?;
    let after = (apiserver_memory(&cluster).await?, controller.memory()?);
    let selector = ListParams::default().labels(&format!("{}={PROFILE}", names::PROFILE_LABEL));
    let figures = Figures {
        namespaces: arguments.namespaces,
        policies: cluster.policies().list(&selector).await?.items.len(),
        bindings: cluster.bindings().list(&selector).await?.items.len(),
        params: cluster.params_versions(PROFILE).await?.len(),
        seconds,
        apiserver: (before.0, after.0),
        controller: (before.1, after.1),
    };
    println!("\n{}\n", figures.table());
    if let Some(palisade) = &arguments.bench_eval {
        step("measuring palisade eval");
        bench_eval::run(&cluster, palisade, started, &namespace(0), FIRST_UID).await?;
    }
    if let Some(other) = &arguments.bench_webhook {
        step("measuring the webhook");
        let kyverno = arguments.bench_kyverno.as_deref();
        bench_webhook::run(&cluster, other, kyverno, arguments.namespaces, FIRST_UID).await?;
    }
    if !arguments.once {
        invite(&cluster, &controller);
    }
    Ok(Running { cluster, controller })
}

/// The API server's memory, after it has collected its garbage: what it uses and not what it left lying about.
async fn apiserver_memory(cluster: &Cluster) -> Result<Memory> {
    Ok(Memory { heap: cluster.heap().await?, resident: cluster.control_plane.memory(Component::ApiServer)? })
}

fn step(text: &str) {
    println!("==> {text}");
}

fn bar(length: u64, what: &str) -> Result<ProgressBar> {
    let target =
        if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("    {msg:20} [{bar:40}] {pos}/{len} {elapsed}")?.progress_chars("=> ");
    Ok(ProgressBar::with_draw_target(Some(length), target).with_style(style).with_message(what.to_owned()))
}

pub(crate) fn namespace(index: u32) -> String {
    format!("tool-{index:04}")
}

async fn create_namespaces(cluster: &Cluster, count: u32) -> Result<()> {
    step(&format!("creating {count} namespaces with a uid each, and one that the profile does not select"));
    cluster.create_namespace("unselected", &json!({}), &json!({})).await?;
    let bar = bar(count.into(), "namespaces")?;
    let created = &bar;
    stream::iter(0..count)
        .map(Ok)
        .try_for_each_concurrent(32, |index| async move {
            cluster.create_tool("tool", &namespace(index), FIRST_UID + i64::from(index)).await?;
            created.inc(1);
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        })
        .await?;
    bar.finish_and_clear();
    // The controller manager makes a service account in each. Its work is not part of the measurement.
    let accounts = Api::<ServiceAccount>::all(cluster.admin.clone());
    let default = ListParams::default().fields("metadata.name=default");
    let deadline = Instant::now() + Duration::from_mins(2);
    while accounts.list_metadata(&default).await?.items.len() < count as usize {
        if Instant::now() > deadline {
            return Err("the controller manager makes no service accounts".into());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    Ok(())
}

async fn wait_enforced(cluster: &Cluster, controller: &mut Controller, count: u32) -> Result<()> {
    let bar = bar(count.into(), "namespaces enforced")?;
    let deadline = Instant::now() + Duration::from_mins(3);
    loop {
        let status = cluster.profiles().get(PROFILE).await?.status.unwrap_or_default();
        bar.set_position(u64::try_from(status.namespaces.ready)?);
        let enforced = status.conditions.iter().any(|c| c.type_ == "Enforced" && c.status == "True");
        if enforced && status.namespaces.ready == i64::from(count) {
            bar.finish_and_clear();
            return Ok(());
        }
        // Says why, if the controller is no more.
        controller.memory()?;
        if Instant::now() > deadline {
            return Err(format!("not enforced after three minutes: {:?}", status.conditions).into());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A pod as tools run it, a hostile one, and the hostile one where nobody protects the namespace.
async fn show_pods(cluster: &Cluster, count: u32) -> Result<()> {
    let last = count - 1;
    let (tool, uid) = (namespace(last), FIRST_UID + i64::from(last));
    step(&format!("a pod of the tool itself, in {tool}"));
    match cluster.dry_run(&tool, &tool_pod("job", uid)).await {
        Verdict::Admitted => println!("    admitted"),
        other => return Err(format!("should be admitted: {other:?}").into()),
    }
    step(&format!("a hostile pod, in {tool}"));
    match cluster.dry_run(&tool, &hostile_pod("hostile")).await {
        Verdict::Denied(text) => {
            for line in text.replace(" denied request: ", " denied request:\n").replace("; ", "\n").lines() {
                println!("    {line}");
            }
        }
        other => return Err(format!("should be denied: {other:?}").into()),
    }
    step("the same hostile pod, in a namespace that the profile does not select");
    match cluster.dry_run("unselected", &hostile_pod("hostile")).await {
        Verdict::Admitted => println!("    admitted"),
        other => return Err(format!("should be admitted: {other:?}").into()),
    }
    Ok(())
}

/// What to do with a cluster that goes on running.
fn invite(cluster: &Cluster, controller: &Controller) {
    let kubeconfig = cluster.control_plane.kubeconfig_path().display();
    println!("Everything goes on running until Ctrl-C. In another terminal:\n");
    println!("  export KUBECONFIG={kubeconfig}");
    println!("  kubectl get tsp,tsparams --all-namespaces");
    println!("  kubectl describe tsp {PROFILE}");
    println!("  kubectl run hostile --image evil.example/x --namespace {}", namespace(0));
    println!("  tail -f {}\n", controller.log.display());
}
