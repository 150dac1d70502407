//! Conditions of a profile, and the summary of the pipeline in `Ready`, `Reconciling` and `Stalled`. Pure.

use palisade_api::{
    RolloutPhase, RolloutStatus,
    conditions::{ConditionType, Outcome, Reason},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The controller does not know whether it holds.
    Unknown,
}

impl ConditionStatus {
    /// All values.
    pub const ALL: [Self; 3] = [Self::True, Self::False, Self::Unknown];

    /// The value in a condition.
    pub fn text(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A condition without its history.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub type_: ConditionType,
    pub status: ConditionStatus,
    pub reason: Reason,
    /// Why, for people.
    pub message: String,
}

impl Condition {
    pub fn new(type_: ConditionType, status: ConditionStatus, reason: Reason, message: impl Into<String>) -> Self {
        Self { type_, status, reason, message: message.into() }
    }

    /// True if something failed.
    pub fn is_alarming(&self) -> bool {
        matches!(self.reason.outcome(), Outcome::Retrying | Outcome::Failed)
    }

    /// True if it only reports work in progress.
    pub fn is_transient(&self) -> bool {
        self.reason.outcome() == Outcome::InProgress
    }
}

/// All conditions: those of the pipeline, and `Ready`, `Reconciling` and `Stalled` for tools without knowledge of
/// Palisade (kubectl wait, Argo CD, Flux). The latter follow the rules of kstatus:
/// <https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus>. They have the reason and message of the
/// first condition in the pipeline that is not in its target state.
pub fn with_summary(pipeline: [Condition; 3]) -> [Condition; 6] {
    let outcome = |condition: &Condition| condition.reason.outcome();
    let [accepted, programmed, enforced] = pipeline;
    let failed = [&accepted, &programmed].into_iter().find(|condition| outcome(condition) != Outcome::Current);
    let decisive = failed.unwrap_or(&enforced);
    let Condition { type_, status, reason, message } = decisive;
    let (ready, reconciling, stalled) = match outcome(decisive) {
        Outcome::Current => (ConditionStatus::True, ConditionStatus::False, ConditionStatus::False),
        Outcome::InProgress | Outcome::Retrying => (*status, ConditionStatus::True, ConditionStatus::False),
        Outcome::Failed => (*status, ConditionStatus::False, ConditionStatus::True),
    };
    let message = format!("{type_}: {message}");
    let ready = Condition::new(ConditionType::Ready, ready, *reason, message.clone());
    let [reconciling, stalled] =
        [(ConditionType::Reconciling, reconciling), (ConditionType::Stalled, stalled)].map(|(type_, status)| {
            // A false condition needs no message.
            let message = if status == ConditionStatus::True { message.clone() } else { String::new() };
            Condition::new(type_, status, *reason, message)
        });
    [accepted, programmed, enforced, ready, reconciling, stalled]
}

/// The progress of the rollout as a condition, for `kubectl wait`. Observations of another generation do not count for
/// this one.
pub fn rolled_out(rollout: &RolloutStatus, of_this_generation: bool) -> Condition {
    let (status, reason) = match rollout.phase {
        _ if !of_this_generation => (ConditionStatus::False, Reason::InProgress),
        RolloutPhase::Complete if rollout.held > 0 => (ConditionStatus::False, Reason::Held),
        RolloutPhase::Complete => (ConditionStatus::True, Reason::Completed),
        RolloutPhase::Promoting | RolloutPhase::Soaking => (ConditionStatus::False, Reason::InProgress),
        RolloutPhase::Paused => (ConditionStatus::False, Reason::Paused),
        RolloutPhase::Stopped => (ConditionStatus::False, Reason::Stopped),
        RolloutPhase::Failed => (ConditionStatus::False, Reason::RolloutFailed),
    };
    let message = if of_this_generation { &rollout.message } else { "the rollout has not processed this generation" };
    Condition::new(ConditionType::RolledOut, status, reason, message)
}
