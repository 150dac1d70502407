//! Palisade's own webhook, beside the API server's own mutation.

use std::{path::Path, process::Command};

use palisade_controlplane::free_port;
use palisade_tests::{Cluster, WEBHOOK};

use crate::{
    Result, arms,
    engine::Engine,
    measure::{self, Figures, Plan},
};

/// Measures the webhook of a program, on an API server with the controller.
pub(crate) async fn measure(program: &Path, plan: Plan) -> Result<Vec<Figures>> {
    println!("==> webhook: starting etcd, kube-apiserver, kube-controller-manager and the controller");
    let mut cluster = Cluster::start(None).await?;
    let figures = on(&mut cluster, program, plan).await;
    cluster.stop().await?;
    figures
}

async fn on(cluster: &mut Cluster, program: &Path, plan: Plan) -> Result<Vec<Figures>> {
    cluster.start_controller().await?;
    let kubeconfig = cluster.control_plane.kubeconfig_path().with_file_name("webhook.kubeconfig");
    std::fs::write(&kubeconfig, cluster.kubeconfig_of(WEBHOOK)?)?;
    let [port, health] = [free_port()?, free_port()?];
    let mut command = Command::new(program);
    command
        .args([format!("--listen=127.0.0.1:{port}"), format!("--listen-health=127.0.0.1:{health}")])
        .arg(format!("--url=https://127.0.0.1:{port}"))
        .env("KUBECONFIG", &kubeconfig);
    let engine = Engine::start(&mut command, &kubeconfig.with_file_name("webhook.log"))?;
    let arms = arms::of_webhook(engine.pid())?;
    measure::run(cluster, &arms, plan).await.map_err(|error| format!("{error}\n{}", engine.log_tail()).into())
}
