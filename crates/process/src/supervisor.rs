//! Tasks that run beside the main one, and what happens when one of them dies.
//!
//! A task that panics leaves no trace in a process of many: its watch stands still, its port answers nobody, and
//! `/livez` says "ok". So each is started under a name by a [`Supervisor`]. When one dies, the supervisor stops the
//! whole process, and [`Supervisor::finish`] returns the [`Died`] with which it ends; the kubelet starts it again.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Which task died, and how.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Died {
    /// It panicked.
    #[error("the background task {task:?} panicked: {message}")]
    Panicked {
        /// Its name.
        task: String,
        /// What it panicked with.
        message: String,
    },
    /// It ended, and nothing had told it to.
    #[error("the background task {task:?} ended before the process was told to stop")]
    Ended {
        /// Its name.
        task: String,
    },
}

/// Starts tasks and notices when one dies. Clones are the same supervisor.
#[derive(Clone, Debug)]
pub struct Supervisor {
    tasks: TaskTracker,
    stop: CancellationToken,
    /// The first one that died.
    died: Arc<OnceLock<Died>>,
}

impl Supervisor {
    /// Cancels `stop` when a task dies. Who cancels it otherwise tells the tasks that they may end.
    pub fn new(stop: CancellationToken) -> Self {
        Self { tasks: TaskTracker::new(), stop, died: Arc::default() }
    }

    /// Cancelled when the process is to stop, because it was told to or because a task died.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Starts a task that the process needs for as long as it runs: a watch, a server. It must not end before
    /// [`Self::stop`] is cancelled, and it must not panic.
    pub fn spawn(&self, name: impl Into<String>, work: impl Future<Output = ()> + Send + 'static) {
        self.start(name.into(), false, work);
    }

    /// Starts a task that has an end of its own, such as one probe. It must not panic.
    pub fn spawn_job(&self, name: impl Into<String>, work: impl Future<Output = ()> + Send + 'static) {
        self.start(name.into(), true, work);
    }

    fn start(&self, task: String, may_end: bool, work: impl Future<Output = ()> + Send + 'static) {
        let supervisor = self.clone();
        // The inner task catches a panic, and the tracker counts until it is recorded here.
        self.tasks.spawn(async move {
            match tokio::spawn(work).await {
                Ok(()) if may_end || supervisor.stop.is_cancelled() => {}
                Ok(()) => supervisor.died(Died::Ended { task }),
                // Else the runtime itself ends, and the task with it.
                Err(error) if error.is_panic() => {
                    let payload = error.into_panic();
                    let text = payload.downcast_ref::<&str>().copied();
                    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
                    supervisor.died(Died::Panicked { task, message: text.unwrap_or("no message").to_owned() });
                }
                Err(_) => {}
            }
        });
    }

    fn died(&self, died: Died) {
        tracing::error!(error = %died, "the process stops: it cannot do without this task");
        // Another one that dies because of the first explains nothing.
        let _ = self.died.set(died);
        self.stop.cancel();
    }

    /// How many tasks run.
    pub fn running(&self) -> usize {
        self.tasks.len()
    }

    /// Waits until every task has ended, at most `bound`. Call it when whatever tells them to end has done so.
    ///
    /// # Errors
    /// The first task that died. The process is to end with it, and not with success.
    pub async fn finish(&self, bound: Duration) -> Result<(), Died> {
        self.tasks.close();
        if timeout(bound, self.tasks.wait()).await.is_err() {
            tracing::warn!(tasks = self.running(), ?bound, "some background tasks did not end in time");
        }
        self.died.get().map_or(Ok(()), |died| Err(died.clone()))
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

    /// A task as they should be: it ends when it is told to.
    fn obedient(supervisor: &Supervisor) {
        let stop = supervisor.stop().clone();
        supervisor.spawn("obedient", async move { stop.cancelled().await });
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_stops_the_others_and_is_named() {
        let supervisor = supervisor();
        obedient(&supervisor);
        supervisor.spawn("watch of profiles", async {
            sleep(Duration::from_mins(1)).await;
            panic!("index {} out of bounds", 7);
        });
        supervisor.stop().cancelled().await;
        let died = supervisor.finish(BOUND).await.unwrap_err();
        let expected = Died::Panicked { task: "watch of profiles".into(), message: "index 7 out of bounds".into() };
        assert_eq!(died, expected);
        assert!(died.to_string().contains("watch of profiles"), "{died}");
        assert_eq!(supervisor.running(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_ends_too_early_stops_the_others() {
        let supervisor = supervisor();
        obedient(&supervisor);
        supervisor.spawn("health server", async {});
        supervisor.stop().cancelled().await;
        assert_eq!(supervisor.finish(BOUND).await, Err(Died::Ended { task: "health server".into() }));
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_may_end_and_may_not_panic() {
        let supervisor = supervisor();
        supervisor.spawn_job("probe", async {});
        while supervisor.running() > 0 {
            sleep(Duration::from_millis(1)).await;
        }
        assert!(!supervisor.stop().is_cancelled());
        supervisor.spawn_job("probe", async { panic!("no") });
        supervisor.stop().cancelled().await;
        assert_eq!(supervisor.finish(BOUND).await, Err(Died::Panicked { task: "probe".into(), message: "no".into() }));
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_is_no_failure_and_waits_for_what_is_under_way() {
        let supervisor = supervisor();
        obedient(&supervisor);
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
    async fn a_shutdown_does_not_wait_for_ever() {
        let supervisor = supervisor();
        supervisor.spawn("deaf", pending());
        supervisor.stop().cancel();
        let begin = Instant::now();
        assert_eq!(supervisor.finish(BOUND).await, Ok(()));
        assert_eq!((begin.elapsed(), supervisor.running()), (BOUND, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_while_it_stops_is_a_failure_too() {
        let supervisor = supervisor();
        let stop = supervisor.stop().clone();
        supervisor.spawn("late", async move {
            stop.cancelled().await;
            panic!("at the end");
        });
        supervisor.stop().cancel();
        assert!(matches!(supervisor.finish(BOUND).await, Err(Died::Panicked { .. })));
    }
}
