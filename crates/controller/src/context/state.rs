//! Shared state of the lanes of one profile. They hold locks of data only briefly, and never while awaiting; only
//! [`State::writing`] is held during requests, by the lane that writes policies and bindings of the profile.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use palisade_api::ScanStatus;
use tokio::time::Instant;

use crate::{
    api_request::PARAMS_RETENTION,
    evaluation::Evaluator,
    generations::accepted::AcceptedProfile,
    param_plan::{profile_params::ProfileParams, retained::RetainedParams},
    waves::RolloutState,
};

#[derive(Debug, Default)]
pub struct States {
    all: Mutex<BTreeMap<String, Arc<State>>>,
}

impl States {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<State>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, profile: &str) -> Option<Arc<State>> {
        self.lock().get(profile).cloned()
    }

    /// The state of a profile; creates it if there is none.
    pub fn of(&self, profile: &str) -> Arc<State> {
        Arc::clone(self.lock().entry(profile.to_owned()).or_default())
    }

    /// Removes the state of a deleted profile.
    pub fn forget(&self, profile: &str) {
        self.lock().remove(profile);
    }
}

#[derive(Debug, Default)]
pub struct State {
    /// Held while policies and bindings are written.
    pub writing: tokio::sync::Mutex<()>,
    in_force: Mutex<InForce>,
    params: Mutex<ProfileParams>,
    rollout: Mutex<RolloutState>,
    evaluator: Mutex<Option<(Arc<AcceptedProfile>, Arc<Evaluator>)>>,
    scan: Mutex<Option<ScanStatus>>,
}

impl State {
    /// The generation that policies and bindings are kept at.
    pub fn in_force(&self) -> MutexGuard<'_, InForce> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rollout to stricter stages.
    pub fn rollout(&self) -> MutexGuard<'_, RolloutState> {
        self.rollout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The policies of a generation, compiled for evaluation. They are kept until another generation is requested.
    ///
    /// # Errors
    ///
    /// An error in a policy, which the check of the profile should have found.
    pub fn evaluator(&self, accepted: &Arc<AcceptedProfile>) -> Result<Arc<Evaluator>, String> {
        // Compiling takes a while: other callers wait for the result.
        let mut known = self.evaluator.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, evaluator)) = known.as_ref().filter(|(of, _)| Arc::ptr_eq(of, accepted)) {
            return Ok(Arc::clone(evaluator));
        }
        let evaluator = Arc::new(Evaluator::new(accepted)?);
        *known = Some((Arc::clone(accepted), Arc::clone(&evaluator)));
        Ok(evaluator)
    }

    /// Results of the background scan; `None` before its first run.
    pub fn scan(&self) -> MutexGuard<'_, Option<ScanStatus>> {
        self.scan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parameters in the namespaces.
    pub fn params(&self) -> MutexGuard<'_, ProfileParams> {
        self.params.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The generation that policies and bindings are kept at.
#[derive(Debug, Default)]
pub struct InForce {
    /// The generation in effect, or being put in effect. If there is none, no objects are restored.
    pub accepted: Option<Arc<AcceptedProfile>>,
    /// When a policy was written last.
    pub propagation: PropagationDelay,
    /// The generation whose policies and bindings were confirmed to be in the cluster.
    pub confirmed: Option<i64>,
    /// True if this process has written a policy or binding.
    pub wrote: bool,
    /// Why policies and bindings could not be restored.
    pub error: Option<String>,
    /// How often that failed in a row.
    pub failures: u32,
}

impl InForce {
    /// The generation that is in effect or being put in effect.
    pub fn generation(&self) -> Option<i64> {
        self.accepted.as_ref().map(|accepted| accepted.generation())
    }

    /// True if all policies and bindings of the generation in effect were confirmed to be in the cluster.
    pub fn is_confirmed(&self) -> bool {
        self.confirmed.is_some() && self.confirmed == self.generation()
    }

    /// Time until the API server certainly evaluates the policies in the cluster; `None` if it already does.
    pub fn propagates_in(&self, now: Instant) -> Option<Duration> {
        let rest = PARAMS_RETENTION.saturating_sub(now.duration_since(self.propagation.since));
        (!rest.is_zero()).then_some(rest)
    }
}

/// A policy that the API server may not evaluate yet.
#[derive(Debug)]
pub struct PropagationDelay {
    pub since: Instant,
    /// The parameters that the policy before it reads.
    pub before: RetainedParams,
}

impl Default for PropagationDelay {
    fn default() -> Self {
        // This process may have been stopped just after it had written the policy.
        Self { since: Instant::now(), before: RetainedParams::Everything }
    }
}
