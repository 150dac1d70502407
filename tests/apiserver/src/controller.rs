//! The controller as a process of its own, so that it can be killed.

use std::{
    error::Error,
    process::{Child, Command, ExitCode, Stdio},
    time::Duration,
};

use palisade_api::names;

use crate::{
    Cluster,
    figures::{memory_of, peak_of},
};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Runs `palisade-controller`, with the arguments of this process after the first.
pub fn run_controller() -> ExitCode {
    palisade_controller::main(std::env::args_os().skip(1))
}

/// A controller process. Dropping it kills it.
pub struct ControllerProcess {
    child: Child,
    _kubeconfig: tempfile::TempPath,
}

impl ControllerProcess {
    /// Starts one, with the rights that the manifests give it.
    pub fn start(cluster: &Cluster) -> Result<Self> {
        Self::start_as(cluster, None, &[])
    }

    /// Starts one that scans what exists, so often.
    pub fn scanning(cluster: &Cluster, interval: Duration) -> Result<Self> {
        Self::start_as(cluster, None, &[format!("--scan-interval={}s", interval.as_secs())])
    }

    /// The memory that it has, in bytes.
    pub fn memory(&self) -> Result<u64> {
        memory_of(self.child.id())
    }

    /// The most memory that it has had, in bytes.
    pub fn peak_memory(&self) -> Result<u64> {
        peak_of(self.child.id())
    }

    /// Starts one that sends traces to a collector.
    pub fn traced(cluster: &Cluster, collector: &str) -> Result<Self> {
        Self::start_as(cluster, None, &[format!("--otlp-endpoint={collector}")])
    }

    /// Starts one that generates objects of these kinds (`--generate`).
    pub fn generating(cluster: &Cluster, kinds: &str) -> Result<Self> {
        Self::start_as(cluster, None, &[format!("--generate={kinds}")])
    }

    /// Starts one of several replicas. Its token is another one than that of the others.
    pub fn elected(cluster: &Cluster, name: &str) -> Result<Self> {
        Self::start_as(cluster, Some(name), &[])
    }

    fn start_as(cluster: &Cluster, name: Option<&str>, arguments: &[String]) -> Result<Self> {
        let mut file = tempfile::NamedTempFile::new()?;
        std::io::Write::write_all(&mut file, cluster.controller_kubeconfig()?.as_bytes())?;
        let kubeconfig = file.into_temp_path();
        let child = Command::new(std::env::current_exe()?)
            .args([names::CONTROLLER, "--listen=127.0.0.1:0"])
            .args(name.map(|_| "--leader-elect"))
            .args(arguments)
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
