//! Background tasks, and the reaction to their failure.
//!
//! A panic of a single task would stay unnoticed: its watch stops, its port is not served, and `/livez` reports "ok".
//! Therefore a [`Supervisor`] starts each task with a name. When one fails, the supervisor stops the whole process, and
//! [`Supervisor::finish`] returns the [`TaskFailure`]; the kubelet restarts the process.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Which task failed, and how.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskFailure {
    /// It panicked.
    #[error("the background task {task:?} panicked: {message}")]
    Panicked {
        /// Its name.
        task: String,
        /// Message of the panic.
        message: String,
    },
    /// It ended before it was asked to.
    #[error("the background task {task:?} ended before the process was asked to stop")]
    Ended {
        /// Its name.
        task: String,
    },
}

/// Starts tasks and notices when one fails. Clones are the same supervisor.
#[derive(Clone, Debug)]
pub struct Supervisor {
    tasks: TaskTracker,
    stop: CancellationToken,
    /// The first one that failed.
    failed: Arc<OnceLock<TaskFailure>>,
}

impl Supervisor {
    /// Cancels `stop` when a task fails. If it is cancelled elsewhere, the tasks may end.
    pub fn new(stop: CancellationToken) -> Self {
        Self { tasks: TaskTracker::new(), stop, failed: Arc::default() }
    }

    /// Cancelled when the process is to stop: it was asked to, or a task failed.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Starts a task that the process needs for as long as it runs: a watch, a server. It must not end before
    /// [`Self::stop`] is cancelled, and it must not panic.
    pub fn spawn(&self, name: impl Into<String>, work: impl Future<Output = ()> + Send + 'static) {
        self.start(name.into(), false, work);
    }

    /// Starts a task that terminates, such as one probe. It must not panic.
    pub fn spawn_job(&self, name: impl Into<String>, work: impl Future<Output = ()> + Send + 'static) {
        self.start(name.into(), true, work);
    }

    fn start(&self, task: String, may_end: bool, work: impl Future<Output = ()> + Send + 'static) {
        let supervisor = self.clone();
        // The inner task catches a panic, and the tracker counts until it is recorded here.
        self.tasks.spawn(async move {
            match tokio::spawn(work).await {
                Ok(()) if may_end || supervisor.stop.is_cancelled() => {}
                Ok(()) => supervisor.failed(TaskFailure::Ended { task }),
                // Else the runtime itself ends, and the task with it.
                Err(error) if error.is_panic() => {
                    let payload = error.into_panic();
                    let text = payload.downcast_ref::<&str>().copied();
                    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
                    supervisor.failed(TaskFailure::Panicked { task, message: text.unwrap_or("no message").to_owned() });
                }
                Err(_) => {}
            }
        });
    }

    fn failed(&self, failed: TaskFailure) {
        tracing::error!(error = %failed, "a background task failed; stopping");
        // A task that fails because of the first explains nothing.
        let _ = self.failed.set(failed);
        self.stop.cancel();
    }

    /// How many tasks run.
    pub fn running(&self) -> usize {
        self.tasks.len()
    }

    /// Waits until every task has ended, at most `bound`. Call it after [`Self::stop`] was cancelled.
    ///
    /// # Errors
    /// The first task that failed. The process is to end with it, and not with success.
    pub async fn finish(&self, bound: Duration) -> Result<(), TaskFailure> {
        self.tasks.close();
        if timeout(bound, self.tasks.wait()).await.is_err() {
            tracing::warn!(tasks = self.running(), ?bound, "some background tasks did not stop in time");
        }
        self.failed.get().map_or(Ok(()), |failed| Err(failed.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::{Instant, sleep};

    use super::*;

    const BOUND: Duration = Duration::from_secs(10);

    fn supervisor() -> Supervisor {
        Supervisor::new(CancellationToken::new())
    }

    /// A task that ends when it is asked to.
    fn well_behaved(supervisor: &Supervisor) {
        let stop = supervisor.stop().clone();
        supervisor.spawn("well-behaved", async move { stop.cancelled().await });
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_stops_the_others_and_is_named() {
        let supervisor = supervisor();
        well_behaved(&supervisor);
        supervisor.spawn("watch of profiles", async {
            sleep(Duration::from_mins(1)).await;
            panic!("index {} out of bounds", 7);
        });
        supervisor.stop().cancelled().await;
        let failed = supervisor.finish(BOUND).await.unwrap_err();
        let expected =
            TaskFailure::Panicked { task: "watch of profiles".into(), message: "index 7 out of bounds".into() };
        assert_eq!(failed, expected);
        assert!(failed.to_string().contains("watch of profiles"), "{failed}");
        assert_eq!(supervisor.running(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_ends_too_early_stops_the_others() {
        let supervisor = supervisor();
        well_behaved(&supervisor);
        supervisor.spawn("health server", async {});
        supervisor.stop().cancelled().await;
        assert_eq!(supervisor.finish(BOUND).await, Err(TaskFailure::Ended { task: "health server".into() }));
    }

    #[tokio::test(start_paused = true)]
    async fn job_may_finish_but_its_panic_is_a_failure() {
        let supervisor = supervisor();
        supervisor.spawn_job("probe", async {});
        while supervisor.running() > 0 {
            sleep(Duration::from_millis(1)).await;
        }
        assert!(!supervisor.stop().is_cancelled());
        supervisor.spawn_job("probe", async { panic!("no") });
        supervisor.stop().cancelled().await;
        assert_eq!(
            supervisor.finish(BOUND).await,
            Err(TaskFailure::Panicked { task: "probe".into(), message: "no".into() })
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_succeeds_and_waits_for_running_tasks() {
        let supervisor = supervisor();
        well_behaved(&supervisor);
        let stop = supervisor.stop().clone();
        supervisor.spawn("slow", async move {
            stop.cancelled().await;
            sleep(Duration::from_secs(3)).await;
        });
        supervisor.stop().cancel();
        let begin = Instant::now();
        assert_eq!(supervisor.finish(BOUND).await, Ok(()));
        assert_eq!(begin.elapsed(), Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_does_not_wait_forever() {
        let supervisor = supervisor();
        supervisor.spawn("deaf", pending());
        supervisor.stop().cancel();
        let begin = Instant::now();
        assert_eq!(supervisor.finish(BOUND).await, Ok(()));
        assert_eq!((begin.elapsed(), supervisor.running()), (BOUND, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_during_shutdown_is_a_failure() {
        let supervisor = supervisor();
        let stop = supervisor.stop().clone();
        supervisor.spawn("late", async move {
            stop.cancelled().await;
            panic!("at the end");
        });
        supervisor.stop().cancel();
        assert!(matches!(supervisor.finish(BOUND).await, Err(TaskFailure::Panicked { .. })));
    }
}
