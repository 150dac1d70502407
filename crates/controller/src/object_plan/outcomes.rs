//! The results of the lane of objects, by profile and namespace, and the limits of repeated attempts.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use palisade_api::{
    FailedNamespace, GeneratedStatus,
    conditions::{ConditionType, Reason},
};
use tokio::time::Instant;

use crate::{
    message::counted,
    object_name::{NamespaceName, ProfileName},
    status::{Condition, ConditionStatus},
};

/// Longest delay of a retry.
const MAX_DELAY: Duration = Duration::from_mins(1);
/// The most repairs of an object within [`MAX_DELAY`]: two controllers may undo each other's changes.
const MAX_REPAIRS: u32 = 20;
/// How many namespaces the status names.
const SHOWN: usize = 10;

/// The objects of a profile in a namespace, after the lane has processed it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The generation of the profile; `None` if it generates nothing here.
    pub generation: Option<i64>,
    pub desired: usize,
    pub ready: usize,
    /// Why not all are ready, or not all others are deleted.
    pub problem: Option<String>,
    /// Failed attempts and repairs, by object.
    pub attempts: BTreeMap<String, Attempts>,
}

/// Attempts to write an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempts {
    /// The state of the object that was to be written.
    digest: String,
    failures: u32,
    /// The last error.
    error: Option<String>,
    /// No earlier attempt.
    again: Option<Instant>,
    repairs: u32,
    since: Instant,
}

impl Attempts {
    fn new(digest: String) -> Self {
        Self { digest, failures: 0, error: None, again: None, repairs: 0, since: Instant::now() }
    }
}

impl Attempts {
    /// True if the object was repaired within the limit's time.
    pub fn has_repairs(&self) -> bool {
        self.repairs > 0 && self.since.elapsed() <= MAX_DELAY
    }
}

impl Outcome {
    /// How long an attempt must wait, and why; `None` if it may begin.
    pub fn wait(&self, (object, digest): &(String, String)) -> Option<(Duration, String)> {
        let attempts = self.attempts.get(object).filter(|attempts| attempts.digest == *digest)?;
        let rest = attempts.again?.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero())?;
        Some((rest, attempts.error.clone().unwrap_or_else(|| "another client changes it repeatedly".to_owned())))
    }

    fn attempts(&mut self, (object, digest): (String, String)) -> &mut Attempts {
        let attempts = self.attempts.entry(object).or_insert_with(|| Attempts::new(digest.clone()));
        if attempts.digest != digest {
            *attempts = Attempts::new(digest);
        }
        attempts
    }

    /// An attempt has failed. Returns the delay of the next one.
    pub fn failed(&mut self, key: (String, String), error: String) -> Duration {
        let attempts = self.attempts(key);
        attempts.failures = attempts.failures.saturating_add(1);
        attempts.error = Some(error);
        let delay = palisade_runtime::delay(attempts.failures, MAX_DELAY);
        attempts.again = Some(Instant::now() + delay);
        delay
    }

    /// An object was written. A repair counts, and many of them delay the next one.
    pub fn succeeded(&mut self, key: (String, String), is_repair: bool) {
        if !is_repair {
            self.attempts.remove(&key.0);
            return;
        }
        let attempts = self.attempts(key);
        (attempts.failures, attempts.error, attempts.again) = (0, None, None);
        if attempts.since.elapsed() > MAX_DELAY {
            (attempts.repairs, attempts.since) = (0, Instant::now());
        }
        attempts.repairs += 1;
        if attempts.repairs >= MAX_REPAIRS {
            attempts.again = Some(attempts.since + MAX_DELAY);
        }
    }
}

type ByNamespace = BTreeMap<NamespaceName, Outcome>;

/// The results for all profiles.
#[derive(Debug, Default)]
pub struct Outcomes {
    all: Mutex<BTreeMap<ProfileName, ByNamespace>>,
}

/// The objects of a profile, for its status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectSummary {
    pub status: GeneratedStatus,
    /// Selected namespaces that the lane has not processed for this generation.
    pub pending: usize,
}

impl Outcomes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ProfileName, ByNamespace>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, profile: &str, namespace: &str) -> Option<Outcome> {
        self.lock().get(profile)?.get(namespace).cloned()
    }

    /// Sets a result; without anything to report, it is removed. Returns whether the status may differ.
    pub fn set(&self, profile: &ProfileName, namespace: &NamespaceName, outcome: Option<Outcome>) -> bool {
        let mut all = self.lock();
        if outcome.is_none() && !all.contains_key(profile) {
            return false;
        }
        let of_profile = all.entry(profile.clone()).or_default();
        let reported = |outcome: Option<&Outcome>| {
            outcome.map(|one| (one.generation, one.desired, one.ready, one.problem.clone()))
        };
        let now = reported(outcome.as_ref());
        let before = match outcome {
            Some(outcome) => of_profile.insert(namespace.clone(), outcome),
            None => of_profile.remove(namespace.as_str()),
        };
        reported(before.as_ref()) != now
    }

    /// The profile is gone.
    pub fn forget(&self, profile: &str) {
        self.lock().remove(profile);
    }

    /// The first namespace with a problem, and the problem.
    pub fn first_problem(&self, profile: &str) -> Option<(String, String)> {
        let all = self.lock();
        let mut problems = all.get(profile)?.iter();
        problems.find_map(|(namespace, outcome)| Some((namespace.to_string(), outcome.problem.clone()?)))
    }

    /// The results for a generation of a profile in the namespaces that it selects.
    pub fn summary<'a>(
        &self,
        profile: &str,
        generation: i64,
        selected: impl Iterator<Item = &'a str>,
    ) -> ObjectSummary {
        let all = self.lock();
        let none = BTreeMap::new();
        let of_profile = all.get(profile).unwrap_or(&none);
        let mut summary = ObjectSummary::default();
        let is_pending = |outcome: &Outcome| outcome.generation != Some(generation);
        summary.pending = selected.filter(|namespace| of_profile.get(*namespace).is_none_or(is_pending)).count();
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let GeneratedStatus { desired, ready, failed_namespaces, failures } = &mut summary.status;
        for (namespace, outcome) in of_profile {
            *desired += number(outcome.desired);
            *ready += number(outcome.ready);
            let Some(problem) = &outcome.problem else { continue };
            *failed_namespaces += 1;
            if failures.len() < SHOWN {
                failures.push(FailedNamespace { name: namespace.to_string(), message: problem.clone() });
            }
        }
        summary
    }
}

/// The condition Generated.
pub fn condition(ObjectSummary { status, pending }: &ObjectSummary) -> Condition {
    let GeneratedStatus { desired, ready, failed_namespaces, failures } = status;
    let number = |count: i64| usize::try_from(count).unwrap_or_default();
    let (status, reason, message) = if let Some(first) = failures.first() {
        let message = format!(
            "{ready} of {} are ready; failed in {}, first {}: {}",
            counted(number(*desired), "object"),
            counted(number(*failed_namespaces), "namespace"),
            first.name,
            first.message
        );
        (ConditionStatus::False, Reason::ObjectsFailed, message)
    } else if *pending > 0 || ready < desired {
        let message = format!("{ready} of {} are ready", counted(number(*desired), "object"));
        (ConditionStatus::False, Reason::WritingObjects, message)
    } else {
        (ConditionStatus::True, Reason::ObjectsReady, format!("{} ready", counted(number(*desired), "object")))
    };
    Condition::new(ConditionType::Generated, status, reason, message)
}
