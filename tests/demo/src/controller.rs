//! The controller as its own process, with the rights that the manifests give it.

use std::{fs::File, path::PathBuf, process::Stdio, time::Duration};

use palisade_tests::Cluster;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::Result;

/// A running controller. Dropping it ends it.
pub(crate) struct Controller {
    child: Child,
    /// Where it writes what it does.
    pub(crate) log: PathBuf,
}

impl Controller {
    /// Starts the binary that stands beside this one.
    pub(crate) fn start(cluster: &Cluster) -> Result<Self> {
        let binary = std::env::current_exe()?.with_file_name("palisade-controller");
        if !binary.exists() {
            return Err(format!("{} is missing: start the demo with `make demo`", binary.display()).into());
        }
        let directory = cluster.control_plane.kubeconfig_path().parent().ok_or("a kubeconfig is in a directory")?;
        let kubeconfig = directory.join("controller.kubeconfig");
        std::fs::write(&kubeconfig, cluster.controller_kubeconfig()?)?;
        let log = directory.join("controller.log");
        let child = Command::new(binary)
            .args(["--listen", "127.0.0.1:0", "--log-format", "text"])
            .env("KUBECONFIG", &kubeconfig)
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .stderr(Stdio::from(File::options().append(true).open(&log)?))
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self { child, log })
    }

    /// Asks it to end, as a kubelet does, and waits until it has.
    ///
    /// # Errors
    /// If it does not end soon, or not well.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).ok_or("the controller has ended")?;
        kill_process(pid, Signal::TERM)?;
        let status = tokio::time::timeout(Duration::from_secs(15), self.child.wait()).await;
        match status.map_err(|_| "the controller does not end")?? {
            status if status.success() => Ok(()),
            status => Err(format!("the controller ended with {status}").into()),
        }
    }

    /// Its resident memory, in bytes.
    ///
    /// # Errors
    /// If it has ended; with the end of its log.
    pub(crate) fn memory(&mut self) -> Result<u64> {
        if let Some(status) = self.child.try_wait()? {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<_> = log.lines().rev().take(20).collect();
            let end: Vec<_> = lines.into_iter().rev().collect();
            return Err(format!("the controller ended ({status}):\n{}", end.join("\n")).into());
        }
        let pid = self.child.id().ok_or("the controller has no process id")?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let kib = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())
            .ok_or("no VmRSS")?;
        Ok(kib * 1024)
    }
}
