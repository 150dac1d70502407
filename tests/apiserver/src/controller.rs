//! The controller as a process of its own, so that it can be killed.

use std::{
    error::Error,
    process::{Child, Command, ExitCode, Stdio},
};

use kube::{Client, Config};
use palisade_api::names;
use palisade_controller::{Access, Controller};

use crate::Cluster;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Runs the controller until the process is killed.
pub async fn run_controller() -> ExitCode {
    let run = async {
        let config = Config::infer().await?;
        let access = Access { client: Client::try_from(config.clone())?, config: Some(config) };
        Controller::start(access, Cluster::options()?).await?.join.await??;
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
        let mut file = tempfile::NamedTempFile::new()?;
        std::io::Write::write_all(&mut file, cluster.controller_kubeconfig()?.as_bytes())?;
        let kubeconfig = file.into_temp_path();
        let child = Command::new(std::env::current_exe()?)
            .arg(names::CONTROLLER)
            .env("KUBECONFIG", &kubeconfig)
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Self { child, _kubeconfig: kubeconfig })
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
