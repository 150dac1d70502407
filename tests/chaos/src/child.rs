//! A program that is started again whenever it has ended, as a kubelet does.

use std::{
    fs::File,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::{Result, timeline::Timeline};

/// How long after its end a program is started again. A kubelet waits longer, from 10 s up.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// How to start a program.
pub(crate) struct Program {
    /// A number is added for each start.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) log: PathBuf,
}

/// A supervised program. Dropping it ends it.
pub(crate) struct Supervised {
    inner: Arc<Mutex<Inner>>,
    pub(crate) log: PathBuf,
    _watching: AbortOnDropHandle<()>,
}

struct Inner {
    program: Program,
    child: Option<Child>,
    starts: usize,
    not_before: Instant,
    /// Whether its next end is one that we have caused.
    expected: bool,
}

impl Supervised {
    pub(crate) fn start(program: Program, timeline: Arc<Timeline>) -> Self {
        let log = program.log.clone();
        let inner = Inner { program, child: None, starts: 0, not_before: Instant::now(), expected: false };
        let inner = Arc::new(Mutex::new(inner));
        let watching = tokio::spawn({
            let inner = Arc::clone(&inner);
            async move {
                loop {
                    {
                        let mut inner = lock(&inner);
                        if let Err(error) = inner.look(&timeline) {
                            timeline.finding(format!("cannot start {}: {error}", inner.program.name));
                        }
                    }
                    sleep(Duration::from_millis(100)).await;
                }
            }
        });
        Self { inner, log, _watching: AbortOnDropHandle::new(watching) }
    }

    /// Kills it, and starts it again after this time.
    pub(crate) fn kill(&self, away: Duration) {
        let mut inner = lock(&self.inner);
        inner.expected = true;
        inner.not_before = Instant::now() + away;
        inner.end();
    }

    /// Sends it a signal. One that does not run gets none.
    pub(crate) fn signal(&self, signal: Signal) {
        let mut inner = lock(&self.inner);
        inner.expected |= signal == Signal::TERM;
        if let Some(pid) = inner.child.as_ref().and_then(|child| Pid::from_raw(child.id().cast_signed())) {
            // It fails only for one that has just ended.
            let _ = kill_process(pid, signal);
        }
    }

    pub(crate) fn starts(&self) -> usize {
        lock(&self.inner).starts
    }
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    /// Starts it if it does not run.
    fn look(&mut self, timeline: &Timeline) -> Result {
        if let Some(child) = &mut self.child {
            let Some(status) = child.try_wait()? else { return Ok(()) };
            if !std::mem::take(&mut self.expected) {
                timeline.note(format!("{} has ended by itself ({status})", self.program.name));
            }
            self.child = None;
            self.not_before = self.not_before.max(Instant::now() + RESTART_DELAY);
        }
        if Instant::now() < self.not_before {
            return Ok(());
        }
        self.expected = false;
        let log = File::options().create(true).append(true).open(&self.program.log)?;
        let child = Command::new(&self.program.path)
            .args(&self.program.arguments)
            .env("KUBECONFIG", &self.program.kubeconfig)
            .env("POD_NAME", format!("{}-{}", self.program.name, self.starts))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn();
        self.starts += 1;
        self.not_before = Instant::now() + RESTART_DELAY;
        self.child = Some(child?);
        Ok(())
    }

    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Both fail only for one that is already gone.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end();
    }
}
