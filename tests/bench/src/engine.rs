//! A process that judges requests beside the API server.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::Result;

/// How much of a log says why a process ended.
const LOG_LINES: usize = 5;

/// A process that is killed in the end.
pub(crate) struct Engine {
    child: Child,
    log: PathBuf,
}

impl Engine {
    /// Starts a command, which logs to a file.
    pub fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let file = File::create(log)?;
        let name = command.get_program().display().to_string();
        let child = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn();
        let child = child.map_err(|error| format!("cannot start {name}: {error}"))?;
        Ok(Self { child, log: log.to_owned() })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The end of what it logged.
    pub fn log_tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Both fail only for a process that is already gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
