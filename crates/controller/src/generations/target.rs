//! The generations of a profile, and the decision which of them must be in effect. Pure: other modules of this room
//! compile and load generations, [`crate::apply`] asks the API server about them and writes them.
//!
//! ```text
//! proposed --compile, check--> candidate --dry run--> target --written--> in force --probed--> proven
//!     |                            |                    ^                                |
//!     +---------- rejected --------+---> in force, or last good <------- refuted --------+
//! ```

use std::sync::Arc;

use super::{
    accepted::{AcceptedProfile, Rejection, Verdict},
    refuted::RefutedGeneration,
};
use crate::api_request::ApiError;

/// The generations of one profile, as the lane of reconciliations knows them.
#[derive(Debug, Default)]
pub struct Generations {
    /// The generation in the cluster.
    proposed: Option<Proposed>,
    /// The generation in effect, or being put in effect: a copy, which only this lane changes.
    in_force: Option<Arc<AcceptedProfile>>,
    /// The last generation that took effect. It is saved for restarts.
    last_good: Option<Arc<AcceptedProfile>>,
    /// The last generation that all probes passed, or that needs none.
    proven: Option<Arc<AcceptedProfile>>,
    /// The last generation that probes refuted.
    refuted: Option<RefutedGeneration>,
}

#[derive(Debug)]
struct Proposed {
    generation: Option<i64>,
    /// The verdict of the compiler and the offline check.
    compiled: Verdict,
}

/// The answer of the API server to the dry run of the proposed generation.
#[derive(Debug)]
pub enum DryRunAnswer {
    /// It accepts all policies and bindings.
    Accepted,
    /// It rejects one of them.
    Rejected(Arc<Rejection>),
    NoVerdict(ApiError),
}

/// The decision about a proposed generation.
#[derive(Debug)]
pub struct Decision {
    /// The verdict on the proposed generation, for the status.
    pub verdict: Verdict,
    pub target: Target,
}

/// The generation that must be in effect.
#[derive(Debug)]
pub enum Target {
    /// This generation: the proposed one, or an earlier one that must stay in effect or be restored.
    Enforce(Arc<AcceptedProfile>),
    /// No change until the API server gives a verdict on the proposed generation.
    Wait {
        /// The generation that the cluster has until then.
        kept: Option<Arc<AcceptedProfile>>,
        /// Why there is no verdict.
        error: ApiError,
    },
    /// None: no generation of the profile was ever accepted.
    Nothing,
}

impl Generations {
    /// The last generation that took effect.
    pub fn last_good(&self) -> Option<&Arc<AcceptedProfile>> {
        self.last_good.as_ref()
    }

    /// A generation took effect, was loaded, or none is known.
    pub fn set_last_good(&mut self, accepted: Option<Arc<AcceptedProfile>>) {
        self.last_good = accepted;
    }

    /// Copies the generation in effect from the state that the lanes share.
    pub fn set_in_force(&mut self, accepted: Option<Arc<AcceptedProfile>>) {
        self.in_force = accepted;
    }

    /// The generation that the cluster has, or had before a restart.
    pub fn kept(&self) -> Option<&Arc<AcceptedProfile>> {
        self.in_force.as_ref().or(self.last_good.as_ref())
    }

    /// The generation to restore after a restart, before the proposed generation is checked: the last good one, if it
    /// is another generation and nothing is in effect yet.
    pub fn to_restore(&self, proposed: Option<i64>) -> Option<&Arc<AcceptedProfile>> {
        let last_good = self.last_good.as_ref().filter(|_| self.in_force.is_none())?;
        (last_good.generation() != proposed.unwrap_or_default()).then_some(last_good)
    }

    /// Proposes the generation in the cluster, with the verdict of the compiler and the offline check. `reported` is
    /// the refutation by an earlier process, if the status has one: a restart must not try that generation again.
    pub fn propose(&mut self, generation: Option<i64>, compiled: Verdict, reported: Option<RefutedGeneration>) {
        self.proposed = Some(Proposed { generation, compiled });
        if self.refuted.is_none() && self.proven.is_none() && self.earlier_last_good().is_some() {
            self.proven = reported.is_some().then(|| self.last_good.clone()).flatten();
            self.refuted = reported;
        }
    }

    /// The generation to send as a dry run: the proposed one, unless it is already rejected or refuted.
    pub fn candidate(&self) -> Option<Arc<AcceptedProfile>> {
        self.verdict().ok()
    }

    /// Decides which generation must be in effect. `answer` is about the candidate; without it, the candidate does not
    /// take effect.
    pub fn decide(&self, answer: Option<DryRunAnswer>) -> Decision {
        let verdict = self.verdict();
        let Ok(candidate) = &verdict else { return Decision { target: self.fallback(), verdict } };
        match answer {
            Some(DryRunAnswer::Accepted) => Decision { target: Target::Enforce(Arc::clone(candidate)), verdict },
            Some(DryRunAnswer::Rejected(rejection)) => Decision { target: self.fallback(), verdict: Err(rejection) },
            Some(DryRunAnswer::NoVerdict(error)) => {
                Decision { target: Target::Wait { kept: self.kept().cloned(), error }, verdict }
            }
            None => Decision { target: self.fallback(), verdict },
        }
    }

    /// A generation passed all probes, or needs none. Later failures of probes do not refute it: no edit caused them.
    pub fn prove(&mut self, accepted: &Arc<AcceptedProfile>) {
        self.proven = Some(Arc::clone(accepted));
    }

    /// Probes refuted a generation: the proven one before it is the last good one again. `None` if there is no such
    /// generation; then the refuted one stays in effect.
    pub fn refute(&mut self, generation: i64, why: &str) -> Option<&RefutedGeneration> {
        let before = self.proven.clone().filter(|proven| proven.generation() != generation)?;
        let refuted = RefutedGeneration::new(generation, why, before.generation());
        self.last_good = Some(before);
        Some(self.refuted.insert(refuted))
    }

    /// The verdict on the proposed generation before its dry run.
    fn verdict(&self) -> Verdict {
        let Some(proposed) = &self.proposed else {
            return Err(Arc::new(Rejection::internal("no generation was proposed")));
        };
        let accepted = proposed.compiled.clone()?;
        self.refutation().map_or(Ok(accepted), |refuted| Err(Arc::clone(&refuted.rejection)))
    }

    /// The target if the proposed generation may not take effect.
    fn fallback(&self) -> Target {
        let kept = match self.refutation() {
            // The refuted generation may still be in effect.
            Some(_) => self.last_good(),
            None => self.kept(),
        };
        kept.map_or(Target::Nothing, |kept| Target::Enforce(Arc::clone(kept)))
    }

    /// The refutation of the proposed generation, if another one is the last good one.
    fn refutation(&self) -> Option<&RefutedGeneration> {
        let generation = self.proposed.as_ref()?.generation;
        self.earlier_last_good()?;
        self.refuted.as_ref().filter(|refuted| generation == Some(refuted.generation))
    }

    /// The last good generation, unless it is the proposed one.
    fn earlier_last_good(&self) -> Option<&Arc<AcceptedProfile>> {
        let generation = self.proposed.as_ref()?.generation;
        self.last_good.as_ref().filter(|last_good| generation != Some(last_good.generation()))
    }
}
