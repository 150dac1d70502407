//! Groups of scenarios, each on a control plane of its own. Several groups run beside each other; the scenarios of one do
//! not, for they stop the controller and the API server under each other's feet.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::FutureExt as _;
use libtest_mimic::{Completion, Failed, Trial};
use palisade_controlplane::{Builder, Feature};
use palisade_kube_json::text::truncated;
use palisade_tests::{Cluster, TestResult, is_lost, known_fault};
use tokio::sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore};

use crate::RUNTIME;

pub(crate) type Scenario = for<'a> fn(&'a mut Cluster) -> Pin<Box<dyn Future<Output = TestResult> + 'a>>;

/// A scenario of a group.
pub(crate) struct Listed {
    pub(crate) name: &'static str,
    pub(crate) run: Scenario,
    /// The feature that it needs and the API server lacks: it is skipped.
    pub(crate) lacking: Option<&'static Feature>,
}

/// How many of the slowest scenarios are printed.
const SLOWEST: usize = 10;
/// How much of a failure is printed again at the end, in characters.
const SHOWN: usize = 2000;

/// How long a scenario took, with its group and its name.
type Took = (Duration, Arc<str>, &'static str);

/// What runs beside each other.
pub(crate) struct Lanes {
    permits: Arc<Semaphore>,
    times: Arc<StdMutex<Vec<Took>>>,
    /// The scenarios that failed, with their groups, and why.
    failures: Arc<StdMutex<Vec<String>>>,
    at_once: usize,
}

/// Scenarios of one control plane, which is started by the first of them and stopped after the last. After one that
/// fails, another is started.
struct Group {
    control_plane: Builder,
    permits: Arc<Semaphore>,
    /// The places of the scenarios that have been asked for and have not ended. All are asked for at once, each by a thread.
    left: StdMutex<BTreeSet<usize>>,
    /// A scenario has ended: it may be the turn of another.
    turn: Notify,
    running: Mutex<Option<(Cluster, OwnedSemaphorePermit)>>,
}

impl Lanes {
    /// So many control planes run at once.
    pub(crate) fn new(at_once: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(at_once)), times: Arc::default(), failures: Arc::default(), at_once }
    }

    /// The scenarios of one control plane.
    pub(crate) fn trials(
        &self,
        (kind, minor): (&str, u8),
        control_plane: Builder,
        scenarios: Vec<Listed>,
    ) -> Vec<Trial> {
        let permits = Arc::clone(&self.permits);
        // Groups of one version are told apart by where they begin.
        let label: Arc<str> = match scenarios.first() {
            Some(first) => format!("{kind}, from {}", first.name).into(),
            None => kind.into(),
        };
        let group = Arc::new(Group {
            control_plane,
            permits,
            left: StdMutex::default(),
            turn: Notify::new(),
            running: Mutex::new(None),
        });
        let trial = |(place, Listed { name, run: scenario, lacking }): (usize, Listed)| {
            if let Some(feature) = lacking {
                let skipped = Completion::ignored_with(format!("the API server lacks: {feature}"));
                return Trial::ignorable_test(name, || Ok(skipped)).with_kind(kind);
            }
            let (group, times, label) = (Arc::clone(&group), Arc::clone(&self.times), Arc::clone(&label));
            let (failures, failed_on) = (Arc::clone(&self.failures), kind.to_owned());
            let run = move || {
                group.left().insert(place);
                let result = RUNTIME.block_on(group.run(place, scenario, |took| {
                    times.lock().unwrap_or_else(PoisonError::into_inner).push((took, label, name));
                }));
                if let Err(why) = &result {
                    let why = why.message().unwrap_or_default();
                    if let Some(fault) = known_fault(minor, why) {
                        return Ok(Completion::ignored_with(format!("the API server ended: {fault}")));
                    }
                    let why = truncated(why, SHOWN);
                    let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                    failures.push(format!("[{failed_on}] {name}: {why}"));
                }
                result.map(|()| Completion::Completed)
            };
            Trial::ignorable_test(name, run).with_kind(kind)
        };
        scenarios.into_iter().enumerate().map(trial).collect()
    }

    /// Prints how long each group took, and which scenarios took longest.
    pub(crate) fn print_slowest(&self) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.sort_unstable_by_key(|(took, ..)| Reverse(*took));
        println!("The slowest of {} scenarios:", times.len());
        for (took, group, name) in times.iter().take(SLOWEST) {
            println!("  {:>4} s  [{group}] {name}", took.as_secs());
        }
        let mut groups = BTreeMap::<_, (Duration, usize)>::new();
        for (took, group, _) in times.iter() {
            let (sum, count) = groups.entry(group).or_default();
            (*sum, *count) = (*sum + *took, *count + 1);
        }
        println!("The groups, {} at once:", self.at_once);
        for (group, (took, count)) in groups {
            println!("  {:>4} s  {count} scenarios [{group}]", took.as_secs());
        }
    }

    /// Prints once more what failed and why: where the output is cut, its end is kept.
    pub(crate) fn print_failures(&self) {
        for failure in self.failures.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            println!("failed: {failure}");
        }
    }
}

impl Group {
    fn left(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a scenario when those listed before it have ended: what one leaves behind, it leaves in each run to the same
    /// next one.
    async fn run(&self, place: usize, scenario: Scenario, report: impl FnOnce(Duration)) -> Result<(), Failed> {
        let (mut running, started) = loop {
            let next = self.turn.notified();
            let mut running = self.running.lock().await;
            let started = self.cluster(&mut running).await.map(drop);
            // While the control plane started, all threads have asked.
            if started.is_err() || self.left().first() == Some(&place) {
                break (running, started);
            }
            drop(running);
            next.await;
        };
        let result = match started.and(self.cluster(&mut running).await) {
            Ok(cluster) => {
                let begin = Instant::now();
                // A scenario that panics must not keep the control plane, for which other groups wait.
                let result = AssertUnwindSafe(scenario(cluster)).catch_unwind().await;
                report(begin.elapsed());
                let result = result.unwrap_or_else(|_| Err("the scenario panicked".into()));
                match (result, cluster.control_plane.check_apiserver()) {
                    // The end of the API server explains only that no connection to it was possible.
                    (Err(error), Err(ended)) if is_lost(&error.to_string()) => Err(format!("{error}\n{ended}").into()),
                    (result, _) => result,
                }
            }
            Err(error) => Err(error),
        };
        let last = {
            let mut left = self.left();
            left.remove(&place);
            left.is_empty()
        };
        // What a failed scenario leaves behind must not fail the next one.
        let stopped = match running.take_if(|_| last || result.is_err()) {
            Some((cluster, _permit)) => cluster.stop().await,
            None => Ok(()),
        };
        drop(running);
        self.turn.notify_waiters();
        result.and(stopped).map_err(|error| Failed::from(error.to_string()))
    }

    /// The cluster, which is started where none runs, with the controller.
    async fn cluster<'a>(
        &self,
        running: &'a mut Option<(Cluster, OwnedSemaphorePermit)>,
    ) -> TestResult<&'a mut Cluster> {
        if running.is_none() {
            let permit = Arc::clone(&self.permits).acquire_owned().await?;
            *running = Some((Cluster::start_on(self.control_plane.clone()).await?, permit));
        }
        let (cluster, _) = running.as_mut().ok_or("a cluster was started")?;
        cluster.start_controller().await?;
        Ok(cluster)
    }
}
