//! One child process: it logs to a file, and it never outlives its owner.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use crate::{Component, Error, Shutdown};

const LOG_LINES: usize = 20;
const POLL: Duration = Duration::from_millis(10);
/// What a graceful end may take. The API server drains requests that are in flight.
const GRACE: Duration = Duration::from_secs(15);

/// A running component. Dropping it kills it and waits until it is gone.
#[derive(Debug)]
pub(crate) struct Process {
    component: Component,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `program` in `dir`, where its log goes too.
    pub(crate) fn spawn(component: Component, program: &Path, flags: &[String], dir: &Path) -> Result<Self, Error> {
        let log = log_path(dir, component);
        let output = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(Error::io(format!("cannot open {}", log.display())))?;
        let errors = output.try_clone().map_err(Error::io("cannot share the log file"))?;
        let child = Command::new(program)
            .args(flags)
            .current_dir(dir)
            // The write end of this pipe closes when this program ends in whatever way; our binary then exits.
            .env("PALISADE_EXIT_WITH_PARENT", "1")
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            // Ctrl-C must not reach all components at once: an API server that has lost etcd does not end in time.
            .process_group(0)
            .spawn()
            .map_err(Error::io(format!("cannot start {}", program.display())))?;
        Ok(Self { component, child, log })
    }

    pub(crate) fn component(&self) -> Component {
        self.component
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// An error if it has ended by itself.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        match self.exited() {
            None => Ok(()),
            Some(status) => Err(Error::Exited { component: self.component, status, log: self.log_tail() }),
        }
    }

    fn exited(&mut self) -> Option<ExitStatus> {
        // It fails only for a process that is not a child of ours.
        self.child.try_wait().ok().flatten()
    }

    /// Ends it, and returns when it is gone.
    pub(crate) async fn stop(mut self, how: Shutdown) {
        if how == Shutdown::Graceful {
            self.terminate();
            let deadline = Instant::now() + GRACE;
            while self.exited().is_none() && Instant::now() < deadline {
                sleep(POLL).await;
            }
        }
        // Dropping does the rest; after a graceful end it has nothing left to do.
    }

    /// Kills it, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        // Both fail only for a process that is already gone and waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn terminate(&mut self) {
        // While it has not been waited for, its id cannot belong to another process.
        if self.exited().is_none()
            && let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
        {
            // It fails only when the process has just ended.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Resident memory, in bytes.
    pub(crate) fn memory(&self) -> Result<u64, Error> {
        let path = format!("/proc/{}/status", self.id());
        let status = fs::read_to_string(&path).map_err(Error::io(format!("cannot read {path}")))?;
        resident(&status).ok_or(Error::NotRunning(self.component))
    }

    /// The end of its log; after an error of Go's runtime, the lines from that error on.
    pub(crate) fn log_tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        explained(&String::from_utf8_lossy(&log), LOG_LINES)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Where the log of a component is.
pub(crate) fn log_path(dir: &Path, component: Component) -> PathBuf {
    dir.join(format!("{component}.log"))
}

/// A dead process that nobody has waited for yet has no `VmRSS` line.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The last `count` lines. Go prints many stacks after a fatal error, so then those that begin with it.
fn explained(text: &str, count: usize) -> String {
    let fatal = text.lines().skip_while(|line| !line.starts_with("fatal error: ")).take(count).collect::<Vec<_>>();
    if fatal.is_empty() { tail(text, count) } else { fatal.join("\n") }
}

/// The last `count` lines.
pub(crate) fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::{explained, resident, tail};

    #[test]
    fn tail_returns_the_last_lines() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
        assert_eq!(tail("", 2), "");
    }

    #[test]
    fn fatal_error_of_go_precedes_its_stacks() {
        assert_eq!(explained("a\nfatal error: b\n\ngoroutine 1\nc\n", 2), "fatal error: b\n");
        assert_eq!(explained("a\nb: fatal error: c\nd\n", 1), "d");
    }

    #[test]
    fn resident_memory_is_reported_in_bytes() {
        assert_eq!(resident("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!(resident("Name:\tx\n"), None);
    }
}
