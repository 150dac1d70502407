//! The parameters of a profile in all namespaces: the plan, and the failed writes.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;
use palisade_api::names;
use tokio::time::Instant;

use crate::{
    api_request::{ApiError, PARAMS_RETENTION},
    generations::accepted::AcceptedProfile,
    param_plan::{
        jobs::{Class, Job},
        namespace_plan::ParamsAction,
        plan::Plan,
        retained::RetainedParams,
    },
    queue::MinDelay,
};

/// The parameters of a profile in all namespaces.
#[derive(Debug, Default)]
pub struct ProfileParams {
    /// The generation that parameters are kept for.
    pub target: Option<Arc<AcceptedProfile>>,
    /// The plan of all namespaces, once there is one.
    pub planned: Option<Planned>,
    /// Namespaces whose parameters could not be written or deleted.
    pub failures: BTreeMap<String, Failure>,
    /// Namespaces whose parameters are to be removed, and since when.
    pub removable: BTreeMap<String, Instant>,
    /// Namespaces with parameters that another writer had changed, and that are right again.
    pub restored: Vec<String>,
}

/// The plan of all namespaces, and its input.
#[derive(Debug)]
pub struct Planned {
    /// The generation of the plan.
    pub target: Arc<AcceptedProfile>,
    /// The parameters that had to be kept.
    pub keep: RetainedParams,
    /// When an exception ends.
    pub until: Option<Timestamp>,
    /// The work to do in each namespace.
    pub plan: Plan,
    /// True if its jobs were handed over.
    pub handed_over: bool,
}

/// Parameters that could not be written.
#[derive(Debug)]
pub struct Failure {
    failures: u32,
    /// When to try again.
    again: Instant,
    message: String,
    /// True if they should have been deleted.
    deleting: bool,
}

/// The namespaces of a profile, for its status.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// How many the profile selects.
    pub selected: usize,
    /// Those by stage, in the order of [`Stage::ALL`](palisade_api::Stage::ALL).
    pub by_stage: [usize; 3],
    /// Number of selected namespaces in which pods are validated.
    pub ready: usize,
    /// Those in which every pod violates the profile because of a parameter, and why.
    pub problems: BTreeMap<String, String>,
    /// Those whose parameters could not be written, and why.
    pub unwritten: BTreeMap<String, String>,
    /// Number of namespaces without parameters. Checks with parameters are not evaluated there: in the stage Deny, new
    /// pods are denied, and updates are not evaluated.
    pub missing: usize,
}

impl ProfileParams {
    /// Sets the generation to keep parameters for. Returns whether it is new.
    pub fn set_target(&mut self, target: &Arc<AcceptedProfile>) -> bool {
        let new = self.target.as_ref().is_none_or(|now| !Arc::ptr_eq(now, target));
        self.target = Some(Arc::clone(target));
        new
    }

    /// True if there is a generation to keep parameters for.
    pub fn has_target(&self) -> bool {
        self.target.is_some()
    }

    /// Stops writes: parameters remain unchanged.
    pub fn stop(&mut self) {
        *self = Self::default();
    }

    /// For the status, once all namespaces were planned for this generation.
    pub fn summary(&self, target: &Arc<AcceptedProfile>) -> Option<Summary> {
        let planned = self.planned.as_ref().filter(|it| it.handed_over && Arc::ptr_eq(&it.target, target))?;
        let unwritten = self.failures.iter().filter(|(_, failure)| !failure.deleting);
        let is_missing = |name: &str| {
            let action = planned.plan.get(name).map(|namespace_plan| &namespace_plan.action);
            name != names::PROBE_NAMESPACE
                && matches!(action, Some(ParamsAction::Write(write)) if write.observed.is_none())
        };
        Some(Summary {
            missing: unwritten.clone().filter(|(name, _)| is_missing(name)).count(),
            selected: planned.plan.selected,
            by_stage: planned.plan.by_stage,
            ready: planned.plan.ready,
            problems: planned.plan.problems.clone(),
            unwritten: unwritten.map(|(name, failure)| (name.clone(), failure.message.clone())).collect(),
        })
    }

    /// The first namespace with parameters that could not be deleted, how many others there are, and why.
    pub fn take_undeleted(&mut self) -> Option<(String, usize, String)> {
        let failures = std::mem::take(&mut self.failures);
        let more = failures.len().saturating_sub(1);
        failures.into_iter().next().map(|(namespace, failure)| (namespace, more, failure.message))
    }

    /// True if the plan still holds. It may keep more parameters than necessary if it carries none.
    pub fn is_planned(&mut self, target: &Arc<AcceptedProfile>, keep: &RetainedParams, now: Timestamp) -> bool {
        let Some(planned) = &mut self.planned else { return false };
        let current = Arc::ptr_eq(&planned.target, target) && planned.until.is_none_or(|until| now <= until);
        let kept = planned.keep == *keep || (planned.plan.carried == 0 && planned.keep.covers(keep));
        if current && kept {
            planned.keep = keep.clone();
        }
        current && kept
    }

    pub fn job(
        &self,
        namespace: &str,
        class: Class,
        drifted: bool,
        settles: bool,
        later: &mut MinDelay,
    ) -> Option<(Class, Job)> {
        let now = Instant::now();
        let namespace_plan = self.planned.as_ref()?.plan.get(namespace)?;
        let job = match &namespace_plan.action {
            ParamsAction::Nothing(_) => return None,
            ParamsAction::Write(write) => Job::Write { write: Arc::clone(write), drifted },
            // Only when the API server has certainly read both the policy and the namespace's labels: until then it may
            // still validate the namespace's pods by the profile.
            ParamsAction::Remove => {
                let due = self.removable.get(namespace).map_or(now, |since| *since) + PARAMS_RETENTION;
                if settles || due > now {
                    later.at(Some(due.saturating_duration_since(now)));
                    return None;
                }
                Job::Delete
            }
        };
        match self.failures.get(namespace) {
            None => Some((class, job)),
            Some(failure) if failure.again <= now => Some((Class::Retry, job)),
            Some(failure) => {
                later.at(Some(failure.again.duration_since(now)));
                None
            }
        }
    }

    /// The parameters in a namespace could not be written or deleted.
    pub fn failed(&mut self, namespace: &str, error: &ApiError, deleting: bool) {
        let failures = self.failures.get(namespace).map_or(1, |failure| failure.failures.saturating_add(1));
        let again = Instant::now() + palisade_runtime::delay(failures, Duration::from_mins(1));
        let failure = Failure { failures, again, message: explained(error), deleting };
        self.failures.insert(namespace.to_owned(), failure);
    }
}

/// Why parameters could not be written, and what to do about it.
fn explained(error: &ApiError) -> String {
    if error.is_quota() {
        format!(
            "a ResourceQuota of the namespace forbids them: {error}; remove count/toolsecurityparams.toolsecurity.dev from \
             the quota"
        )
    } else {
        error.to_string()
    }
}
