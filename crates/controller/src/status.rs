//! The status of a profile, from observations. Pure.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition as MetaCondition, Time},
    jiff::Timestamp,
};
use palisade_api::{
    ExceptionCounts, FailedNamespace, MutationStatus, NamespaceCounts, PssEquivalent, ToolSecurityProfileStatus,
    conditions::{ConditionType, Reason},
};

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It does.
    True,
    /// It does not.
    False,
    /// It is not known.
    Unknown,
}

impl ConditionStatus {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::True, Self::False, Self::Unknown];

    /// As it stands in a condition.
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
    /// Which condition.
    pub type_: ConditionType,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why.
    pub reason: Reason,
    /// Why, for people.
    pub message: String,
}

impl Condition {
    /// A condition.
    pub fn new(type_: ConditionType, status: ConditionStatus, reason: Reason, message: impl Into<String>) -> Self {
        Self { type_, status, reason, message: message.into() }
    }

    /// Whether an admin has something to do.
    pub fn is_alarming(&self) -> bool {
        use Reason::{
            Accepted, ApplyFailed, CheckFailed, CompliantPodDenied, InternalError, InvalidSpec, LastGoodInForce,
            NotAccepted, NotMutated, NotProgrammed, NothingRestricted, Pending, ProbeFailed, ProbeImpossible,
            ProbesPassed, Programmed, RefusedByApiServer, StageAudit, StageWarn, ViolationAdmitted,
        };
        match self.reason {
            InvalidSpec | CheckFailed | RefusedByApiServer | InternalError | ApplyFailed | LastGoodInForce
            | NotAccepted | NotMutated | ViolationAdmitted | CompliantPodDenied | ProbeFailed | ProbeImpossible => true,
            Accepted | Programmed | Pending | ProbesPassed | StageWarn | StageAudit | NothingRestricted
            | NotProgrammed => false,
        }
    }

    /// Whether it only reports work in progress.
    pub fn is_transient(&self) -> bool {
        matches!(self.reason, Reason::Pending | Reason::NotProgrammed)
    }
}

/// What was observed of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Observations {
    /// The generation this is about.
    pub generation: Option<i64>,
    /// In the order of [`ConditionType::ALL`].
    pub conditions: [Condition; 3],
    /// Counts of namespaces.
    pub namespaces: NamespaceCounts,
    /// The first ten that failed.
    pub failed: Vec<FailedNamespace>,
    /// The level of the Pod Security Standards that the profile in force implies.
    pub implied: Option<PssEquivalent>,
    /// How many exceptions the profile in force has.
    pub exceptions: Option<ExceptionCounts>,
    /// Which engine mutates pods, if the profile in force mutates any.
    pub mutation: Option<MutationStatus>,
    /// The policies in the cluster.
    pub policies: Vec<String>,
}

/// The new status, and the conditions that differ from the previous status; `None` if nothing differs.
pub fn next<'a>(
    previous: Option<&ToolSecurityProfileStatus>,
    observations: &'a Observations,
    now: Timestamp,
) -> Option<(ToolSecurityProfileStatus, Vec<&'a Condition>)> {
    let known = |type_: ConditionType| {
        previous.and_then(|status| status.conditions.iter().find(|condition| condition.type_ == type_.to_string()))
    };
    let mut transitions = Vec::new();
    let mut conditions = Vec::new();
    for observed in &observations.conditions {
        let known = known(observed.type_);
        let mut condition = MetaCondition {
            type_: observed.type_.to_string(),
            status: observed.status.text().to_owned(),
            reason: observed.reason.to_string(),
            message: observed.message.clone(),
            observed_generation: observations.generation,
            last_transition_time: Time(now),
        };
        if let Some(known) = known.filter(|known| known.status == condition.status) {
            condition.last_transition_time = known.last_transition_time.clone();
        }
        if known.is_none_or(|known| known.status != condition.status || known.reason != condition.reason) {
            transitions.push(observed);
        }
        conditions.push(condition);
    }
    let status = ToolSecurityProfileStatus {
        observed_generation: observations.generation,
        conditions,
        namespaces: observations.namespaces,
        failed_namespaces: observations.failed.clone(),
        pss_equivalent: observations.implied.clone(),
        exceptions: observations.exceptions,
        mutation: observations.mutation.clone(),
        generated_policies: observations.policies.clone(),
    };
    let same = previous.is_some_and(|previous| is_same(previous, &status));
    (!same).then_some((status, transitions))
}

/// Whether `previous` contains all of `status`. Conditions of other writers do not matter.
fn is_same(previous: &ToolSecurityProfileStatus, status: &ToolSecurityProfileStatus) -> bool {
    let ToolSecurityProfileStatus {
        observed_generation,
        conditions,
        namespaces,
        failed_namespaces,
        pss_equivalent,
        exceptions,
        mutation,
        generated_policies,
    } = status;
    previous.observed_generation == *observed_generation
        && previous.namespaces == *namespaces
        && previous.failed_namespaces == *failed_namespaces
        && previous.pss_equivalent == *pss_equivalent
        && previous.exceptions == *exceptions
        && previous.mutation == *mutation
        && previous.generated_policies == *generated_policies
        && conditions.iter().all(|condition| previous.conditions.contains(condition))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observations(programmed: ConditionStatus, reason: Reason) -> Observations {
        Observations {
            generation: Some(3),
            conditions: [
                Condition::new(ConditionType::Accepted, ConditionStatus::True, Reason::Accepted, "a"),
                Condition::new(ConditionType::Programmed, programmed, reason, "p"),
                Condition::new(ConditionType::Enforced, ConditionStatus::False, Reason::StageWarn, "e"),
            ],
            namespaces: NamespaceCounts { selected: 2, ready: 1, failed: 1 },
            failed: vec![],
            implied: None,
            exceptions: None,
            mutation: None,
            policies: vec![],
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn an_unchanged_status_is_not_written() {
        let observations = observations(ConditionStatus::True, Reason::Programmed);
        let (status, transitions) = next(None, &observations, at(1)).unwrap();
        assert_eq!(transitions.len(), 3);
        assert_eq!(next(Some(&status), &observations, at(9)), None);
        let mut with_foreign = status.clone();
        with_foreign.conditions.push(MetaCondition { type_: "Foreign".into(), ..status.conditions[0].clone() });
        assert_eq!(next(Some(&with_foreign), &observations, at(9)), None);
    }

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
        let (status, _) = next(None, &observations(ConditionStatus::False, Reason::Pending), at(1)).unwrap();
        let failed = observations(ConditionStatus::False, Reason::ApplyFailed);
        let (status, transitions) = next(Some(&status), &failed, at(2)).unwrap();
        assert_eq!(transitions, [&failed.conditions[1]]);
        assert_eq!(status.conditions[1].last_transition_time, Time(at(1)));
        let (status, _) = next(Some(&status), &observations(ConditionStatus::True, Reason::Programmed), at(3)).unwrap();
        assert_eq!(status.conditions[1].last_transition_time, Time(at(3)));
        assert_eq!(status.conditions[0].last_transition_time, Time(at(1)));
    }

    #[test]
    fn a_new_generation_is_written() {
        let old = observations(ConditionStatus::True, Reason::Programmed);
        let (status, _) = next(None, &old, at(1)).unwrap();
        let new = Observations { generation: Some(4), ..old };
        let (status, transitions) = next(Some(&status), &new, at(2)).unwrap();
        assert_eq!(status.conditions[0].observed_generation, Some(4));
        assert!(transitions.is_empty());
    }
}
