//! The controller as a process of its own, so that it can be killed.

use std::{
    error::Error,
    process::{Child, Command, ExitCode, Stdio},
};

use kube::{Client, Config};
use palisade_api::names;
use palisade_controller::{Access, Controller, Options};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::Cluster;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Runs the controller until the process is killed.
pub async fn run_controller() -> ExitCode {
    let run = async {
        let config = Config::infer().await?;
        let access = Access { client: Client::try_from(config.clone())?, config: Some(config) };
        let instance = std::env::var("POD_NAME").ok();
        let options = Options { leader_elect: instance.is_some(), instance, ..Cluster::options()? };
        let shutdown = CancellationToken::new();
        let mut terminated = signal(SignalKind::terminate())?;
        let running = Controller::start_with(access, options, shutdown.clone()).await?;
        tokio::spawn(async move {
            let _ = terminated.recv().await;
            shutdown.cancel();
        });
        running.join.await??;
        Result::Ok(())
    };
    match run.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the controller: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A controller process. Dropping it kills it.
pub struct ControllerProcess {
    child: Child,
    _kubeconfig: tempfile::TempPath,
}

impl ControllerProcess {
    /// Starts one, with the rights that the manifests give it.
    pub fn start(cluster: &Cluster) -> Result<Self> {
        Self::start_as(cluster, None)
    }

    /// Starts one of several replicas. Its token is another one than that of the others.
    pub fn elected(cluster: &Cluster, name: &str) -> Result<Self> {
        Self::start_as(cluster, Some(name))
    }

    fn start_as(cluster: &Cluster, name: Option<&str>) -> Result<Self> {
        let mut file = tempfile::NamedTempFile::new()?;
        std::io::Write::write_all(&mut file, cluster.controller_kubeconfig()?.as_bytes())?;
        let kubeconfig = file.into_temp_path();
        let child = Command::new(std::env::current_exe()?)
            .arg(names::CONTROLLER)
            .env("KUBECONFIG", &kubeconfig)
            .envs(name.map(|name| ("POD_NAME", name)))
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Self { child, _kubeconfig: kubeconfig })
    }

    /// Sends it a signal: `STOP`, `CONT`, `TERM` or `KILL`.
    pub fn signal(&self, signal: &str) -> Result<()> {
        let sent = Command::new("kill").args([format!("-{signal}"), self.child.id().to_string()]).status()?;
        if sent.success() { Ok(()) } else { Err(format!("could not send SIG{signal}").into()) }
    }

    /// Whether it has not ended by itself.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }
}

impl Drop for ControllerProcess {
    fn drop(&mut self) {
        // SIGKILL. It fails only if the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
