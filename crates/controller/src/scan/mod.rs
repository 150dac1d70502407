//! The background scan: evaluates existing objects as if they were created now, by the same expressions
//! that are enforced, and reports violations.
//!
//! ```text
//! list pages --> pass: evaluate changes --> tally by workload --> reports, status, metrics
//! ```
//!
//! A pass lists each kind in the whole cluster, a page at a time. For each object, it keeps the verdict and the inputs
//! of the verdict, so that the next pass evaluates only changes, and writes only changed results.

mod needed;
mod pass;
mod policy_reports;
mod reports;
mod snapshot;
mod tally;

use std::{sync::Arc, time::Duration};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::api::ListParams;
use palisade_api::ScanStatus;
use palisade_kube_json::{existing::is_current, owners::Owners, workload::WORKLOADS};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use self::{
    pass::{Memory, Pass},
    reports::Budget,
    snapshot::{Snapshot, Subject},
    tally::Tallies,
};
use crate::{
    api_request::ApiError,
    context::{
        Context,
        discovery::{self, Discovered},
        pages::{Page, list_page},
    },
    evaluation::{Existing, ListedKind},
    generations::accepted::AcceptedProfile,
    message::counted,
    object_name::ProfileName,
    options::{Options, PolicyReports},
};

/// How often it is looked whether a pass is due.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The longest pause after a failure.
const MAX_RETRY_DELAY: Duration = Duration::from_mins(5);
/// How many objects one request lists at most.
const PAGE_SIZE: u32 = 500;
/// The longest message in the status.
const MAX_MESSAGE_CHARS: usize = 1000;
/// How often a list may begin again in one pass, because it takes longer than the API server keeps its place.
const MAX_LIST_RESTARTS: usize = 3;

/// Starts it, if the options say so.
pub fn start(cx: &Arc<Context>, options: &Options) {
    let Some(interval) = options.scan_interval.0 else { return };
    let cx = Arc::clone(cx);
    let scan = Scan::new(Arc::clone(&cx), interval, options);
    Arc::clone(&cx).supervisor.spawn("the background scan", async move {
        let stop = cx.stop.clone();
        tokio::select! {
            () = stop.cancelled() => {}
            () = scan.run() => {}
        }
    });
}

/// Why a pass failed.
#[derive(Debug, thiserror::Error)]
enum ScanError {
    #[error("{resource} could not be listed: {error}{}", help(error))]
    List { resource: String, error: ApiError },
    #[error("reports could not be written: {error}{}", help(error))]
    Write { error: ApiError },
    #[error("the policies of {profile} could not be compiled: {message}")]
    Compile { profile: String, message: String },
    #[error("the evaluation panicked, which is a bug in Palisade: {0}")]
    Panicked(#[from] tokio::task::JoinError),
}

fn help(error: &ApiError) -> &'static str {
    if error.is_forbidden() {
        "; grant the permission with kubectl apply -k manifests/scan, or with scan.enabled=true in the chart"
    } else {
        ""
    }
}

struct Scan {
    cx: Arc<Context>,
    interval: Duration,
    /// Between two requests for lists.
    pace: Interval,
    budget: usize,
    policy_reports: PolicyReports,
    memory: Memory,
}

impl Scan {
    fn new(cx: Arc<Context>, interval: Duration, options: &Options) -> Self {
        let period = Duration::from_secs(1) / u32::try_from(options.scan_rate.max(1)).unwrap_or(u32::MAX);
        let mut pace = tokio::time::interval(period.max(Duration::from_millis(1)));
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (budget, policy_reports) = (options.scan_max_report_bytes, options.scan_policy_reports);
        Self { cx, interval, pace, budget, policy_reports, memory: Memory::default() }
    }

    async fn run(mut self) {
        let (mut last, mut failures) = (Vec::new(), 0);
        loop {
            let subjects = self.wait(&last, failures).await;
            let begun = Instant::now();
            match self.pass(&subjects).await {
                Ok(()) => {
                    failures = 0;
                    self.cx.metrics.scans.ended("ok", begun.elapsed());
                }
                Err(error) => {
                    failures += 1;
                    tracing::warn!(%error, "the background scan failed; will retry");
                    self.cx.metrics.scans.ended("error", begun.elapsed());
                    self.failed(&subjects, &error);
                }
            }
            last = subjects;
        }
    }

    /// Waits until a pass is due: the interval has elapsed, or other profiles are in effect. Returns these.
    async fn wait(&self, last: &[Arc<AcceptedProfile>], failures: u32) -> Vec<Arc<AcceptedProfile>> {
        let pause = match failures {
            0 => self.interval,
            _ => palisade_runtime::delay(failures, MAX_RETRY_DELAY.min(self.interval)),
        };
        let due = Instant::now() + pause;
        loop {
            let subjects = self.in_force();
            let same =
                subjects.len() == last.len() && subjects.iter().zip(last).all(|(one, other)| Arc::ptr_eq(one, other));
            if !same || (!subjects.is_empty() && Instant::now() >= due) {
                return subjects;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// The generations of profiles that are in effect, in the order of their names.
    fn in_force(&self) -> Vec<Arc<AcceptedProfile>> {
        if !self.cx.store.synced() {
            return Vec::new();
        }
        let states = self.cx.store.profiles().into_iter().filter_map(|profile| self.cx.states.get(&profile));
        states
            .filter_map(|state| {
                let in_force = state.in_force();
                in_force.accepted.clone().filter(|_| in_force.is_confirmed())
            })
            .collect()
    }

    async fn pass(&mut self, in_force: &[Arc<AcceptedProfile>]) -> Result<(), ScanError> {
        let snapshot = self.snapshot(in_force).await?;
        let workloads = snapshot.subjects.iter().any(|subject| subject.evaluator.evaluates_workloads());
        let mut pass = Pass::new(snapshot, std::mem::take(&mut self.memory));
        let mut owners = Owners::default();
        // Without a profile, reports of former ones are left to delete.
        let none = in_force.is_empty();
        let others: Vec<_> = pass.object_kinds();
        let Discovered { listed, mut missing } = discovery::discover(&self.cx.client, &others).await;
        let kinds = WORKLOADS.iter().map(|one| ListedKind::new(one.api_version, one.kind, one.resource));
        for of in kinds.chain([ListedKind::new("v1", "Pod", "pods")]).take_while(|_| !none) {
            let evaluated = workloads || of.is_pods() || listed.contains(&of);
            if !evaluated && !matches!(of.kind.as_str(), "ReplicaSet" | "Job") {
                continue;
            }
            let resource = of.resource.clone();
            let (listed, error) = self.list(pass, of, evaluated, &mut owners).await?;
            pass = listed;
            if let Some(error) = error {
                self.memory = pass.abandon();
                return Err(ScanError::List { resource, error });
            }
        }
        for of in listed.into_iter().filter(|of| !of.is_workload()) {
            let name = of.name();
            let (listed, error) = self.list(pass, of, true, &mut owners).await?;
            pass = listed;
            if let Some(error) = error {
                missing.insert(name, discovery::reason(&error));
            }
        }
        let (objects, evaluated) = (pass.objects, pass.evaluated);
        let (snapshot, found, needed, memory) = pass.end();
        self.memory = memory;
        self.cx.store.exceptions.set_needed(needed);
        self.cx.queues.exceptions.trigger(self.cx.store.exceptions.namespaces());
        self.cx.metrics.scans.set_objects(objects);
        let tallies = tally::count(&found, &owners);
        let mut budget = Budget::new(self.budget);
        let written = self.report(&snapshot, &tallies, &mut budget).await;
        let cut = budget.cut;
        for subject in &snapshot.subjects {
            let mut status = tally::total(tallies.range(of_profile(subject.name())).map(|(_, tally)| tally));
            let cut = cut.get(subject.name()).map(|reports| {
                format!(
                    "{} incomplete or missing: the limit for all reports together is {} bytes \
                     (--scan-max-report-bytes)",
                    counted(*reports, "report"),
                    self.budget
                )
            });
            let messages = cut.into_iter().chain(discovery::unlisted(&subject.evaluator, &missing));
            status.message = messages.collect::<Vec<_>>().join("; ").chars().take(MAX_MESSAGE_CHARS).collect();
            self.publish(subject.name(), status);
        }
        let written = written.map_err(|error| ScanError::Write { error })?;
        tracing::info!(objects, judged = evaluated, violating = found.len(), written, "scanned");
        Ok(())
    }

    /// Keeps all reports. Returns how many were written or deleted.
    async fn report(&self, snapshot: &Snapshot, tallies: &Tallies, budget: &mut Budget) -> Result<usize, ApiError> {
        let (cx, now) = (&self.cx, Time(Timestamp::now()));
        let own = reports::desired(snapshot, tallies, &now, budget);
        let own = reports::keep(cx, &reports::TOOL_SECURITY_REPORT, snapshot, own).await?;
        let served = policy_reports::served(cx).await?;
        let chosen = served.first().copied().filter(|_| self.policy_reports == PolicyReports::Auto);
        let others = chosen.map(|api| policy_reports::desired(api, snapshot, tallies, &now, budget));
        let others = policy_reports::keep(cx, snapshot, &served, chosen, others.unwrap_or_default()).await?;
        Ok(own + others)
    }

    async fn snapshot(&self, in_force: &[Arc<AcceptedProfile>]) -> Result<Snapshot, ScanError> {
        let mut subjects = Vec::new();
        for accepted in in_force {
            let profile = accepted.compiled.profile.clone();
            let (state, of) = (self.cx.states.of(&profile), Arc::clone(accepted));
            let evaluator = tokio::task::spawn_blocking(move || state.evaluator(&of)).await?;
            let evaluator = evaluator.map_err(|message| ScanError::Compile { profile: profile.clone(), message })?;
            let requests = self.cx.store.exceptions.of_profile(&profile);
            subjects.push(Subject { accepted: Arc::clone(accepted), evaluator, requests });
        }
        let namespaces = self.cx.store.namespaces();
        let namespaces = namespaces.into_iter().map(|one| (one.namespace.get().name, one)).collect();
        Ok(Snapshot { subjects, namespaces, now: Timestamp::now() })
    }

    /// Lists all objects of a kind and evaluates them, unless only their owners matter. If a list fails, the kind has no
    /// results.
    async fn list(
        &mut self,
        mut pass: Pass,
        of: ListedKind,
        evaluated: bool,
        owners: &mut Owners,
    ) -> Result<(Pass, Option<ApiError>), ScanError> {
        let of = Arc::new(of);
        let (mut page, mut restarts) = (ListParams::default().limit(PAGE_SIZE), 0);
        loop {
            self.pace.tick().await;
            let listed = list_page(&self.cx, None, &of, &page).await;
            let Page { mut objects, next, room } = match listed {
                Ok(page) => page,
                Err(error) if error.is_expired() && restarts < MAX_LIST_RESTARTS => {
                    restarts += 1;
                    pass.restart(&of);
                    page = ListParams::default().limit(PAGE_SIZE);
                    continue;
                }
                Err(error) => {
                    pass.restart(&of);
                    return Ok((pass, Some(error)));
                }
            };
            if of.is_workload() {
                for existing in &objects {
                    owners.learn(&existing.object);
                }
            }
            if evaluated {
                objects.retain(|Existing { object, .. }| is_current(&of.kind, object));
                let _permit = self.cx.plans.acquire().await;
                pass = tokio::task::spawn_blocking(move || {
                    pass.evaluate(&objects);
                    drop((objects, room));
                    pass
                })
                .await?;
            }
            match next {
                Some(token) => page = page.continue_token(&token),
                None => return Ok((pass, None)),
            }
        }
    }

    /// Stores the results, and triggers a report if they differ.
    fn publish(&self, profile: &str, status: ScanStatus) {
        let Some(state) = self.cx.states.get(profile) else { return };
        let mut known = state.scan();
        if known.as_ref() != Some(&status) {
            *known = Some(status);
            self.cx.queue.trigger([ProfileName::new(profile)]);
        }
    }

    fn failed(&self, subjects: &[Arc<AcceptedProfile>], error: &ScanError) {
        let message: String = error.to_string().chars().take(MAX_MESSAGE_CHARS).collect();
        for accepted in subjects {
            let profile = &accepted.compiled.profile;
            let known = self.cx.states.get(profile).and_then(|state| state.scan().clone());
            let reported = || self.cx.store.profile(profile)?.profile.as_ref().ok()?.status.as_ref()?.scan.clone();
            let known = known.or_else(reported).unwrap_or_default();
            self.publish(profile, ScanStatus { message: message.clone(), ..known });
        }
    }
}

/// All tallies of a profile.
fn of_profile(profile: &str) -> std::ops::Range<(String, String)> {
    // No namespace comes after this one.
    (profile.to_owned(), String::new())..(profile.to_owned(), "\u{10ffff}".to_owned())
}
