//! The status of a profile, from observations. Pure.

pub mod conditions;
pub mod events;

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition as MetaCondition, Time},
    jiff::Timestamp,
};
use palisade_api::{
    ExceptionCounts, FailedNamespace, MutationStatus, NamespaceCounts, PssEquivalent, RolloutPhase, RolloutStatus,
    ScanStatus, ToolSecurityProfileStatus,
    conditions::{ConditionType, Outcome, Reason},
};

/// Status of a condition.
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
    /// Which condition.
    pub type_: ConditionType,
    /// Its status.
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

/// Observed state of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Observations {
    /// The generation this is about.
    pub generation: Option<i64>,
    /// In the order of [`ConditionType::ALL`]; the last one only with a rollout.
    pub conditions: Vec<Condition>,
    /// Counts of namespaces.
    pub namespaces: NamespaceCounts,
    /// The first ten that failed.
    pub failed: Vec<FailedNamespace>,
    /// The level of the Pod Security Standards that the profile in effect implies.
    pub implied: Option<PssEquivalent>,
    /// How many exceptions the profile in effect has.
    pub exceptions: Option<ExceptionCounts>,
    /// The engine that mutates pods, if the profile in effect mutates any.
    pub mutation: Option<MutationStatus>,
    /// How far the rollout is.
    pub rollout: Option<RolloutStatus>,
    /// Results of the background scan.
    pub scan: Option<ScanStatus>,
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
        namespaces: observations.namespaces.clone(),
        failed_namespaces: observations.failed.clone(),
        pss_equivalent: observations.implied.clone(),
        exceptions: observations.exceptions,
        mutation: observations.mutation.clone(),
        rollout: observations.rollout.clone(),
        scan: observations.scan.clone(),
        generated_policies: observations.policies.clone(),
    };
    let same = previous.is_some_and(|previous| is_same(previous, &status));
    (!same).then_some((status, transitions))
}

/// True if `previous` contains all of `status`. Conditions of other writers do not matter.
fn is_same(previous: &ToolSecurityProfileStatus, status: &ToolSecurityProfileStatus) -> bool {
    let ToolSecurityProfileStatus {
        observed_generation,
        conditions,
        namespaces,
        failed_namespaces,
        pss_equivalent,
        exceptions,
        mutation,
        rollout,
        scan,
        generated_policies,
    } = status;
    previous.observed_generation == *observed_generation
        && previous.namespaces == *namespaces
        && previous.failed_namespaces == *failed_namespaces
        && previous.pss_equivalent == *pss_equivalent
        && previous.exceptions == *exceptions
        && previous.mutation == *mutation
        && previous.rollout == *rollout
        && previous.scan == *scan
        && previous.generated_policies == *generated_policies
        && conditions.iter().all(|condition| previous.conditions.contains(condition))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observations(programmed: ConditionStatus, reason: Reason) -> Observations {
        Observations {
            generation: Some(3),
            conditions: with_summary([
                Condition::new(ConditionType::Accepted, ConditionStatus::True, Reason::Accepted, "a"),
                Condition::new(ConditionType::Programmed, programmed, reason, "p"),
                Condition::new(ConditionType::Enforced, ConditionStatus::False, Reason::StageWarn, "e"),
            ])
            .to_vec(),
            namespaces: NamespaceCounts { selected: 2, ready: 1, failed: 1, ..NamespaceCounts::default() },
            failed: vec![],
            implied: None,
            exceptions: None,
            mutation: None,
            rollout: None,
            scan: None,
            policies: vec![],
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_rollout_is_a_condition() {
        use ConditionStatus::{False, True};
        let of = |phase, held, of_this_generation| {
            let rollout = RolloutStatus { phase, held, message: "why".to_owned(), ..RolloutStatus::default() };
            let Condition { status, reason, message, .. } = rolled_out(&rollout, of_this_generation);
            assert_eq!(message == "why", of_this_generation);
            (status, reason)
        };
        for (phase, expected) in RolloutPhase::ALL.into_iter().zip([
            Reason::InProgress,
            Reason::InProgress,
            Reason::Paused,
            Reason::Stopped,
            Reason::RolloutFailed,
            Reason::Completed,
        ]) {
            let holds = if phase == RolloutPhase::Complete { True } else { False };
            assert_eq!(of(phase, 0, true), (holds, expected));
            assert_eq!(of(phase, 0, false), (False, Reason::InProgress), "another generation was {phase}");
        }
        assert_eq!(of(RolloutPhase::Complete, 2, true), (False, Reason::Held));
        assert_eq!(of(RolloutPhase::Promoting, 2, true), (False, Reason::InProgress));
    }

    #[test]
    fn an_unchanged_status_is_not_written() {
        let observations = observations(ConditionStatus::True, Reason::Programmed);
        let (status, transitions) = next(None, &observations, at(1)).unwrap();
        assert_eq!(transitions.len(), 6);
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
        let changed = [&failed.conditions[1], &failed.conditions[3], &failed.conditions[4], &failed.conditions[5]];
        assert_eq!(transitions, changed);
        assert_eq!(status.conditions[1].last_transition_time, Time(at(1)));
        let (status, _) = next(Some(&status), &observations(ConditionStatus::True, Reason::Programmed), at(3)).unwrap();
        assert_eq!(status.conditions[1].last_transition_time, Time(at(3)));
        assert_eq!(status.conditions[0].last_transition_time, Time(at(1)));
    }

    #[test]
    fn status_of_a_new_generation_is_written() {
        let old = observations(ConditionStatus::True, Reason::Programmed);
        let (status, _) = next(None, &old, at(1)).unwrap();
        let new = Observations { generation: Some(4), ..old };
        let (status, transitions) = next(Some(&status), &new, at(2)).unwrap();
        assert_eq!(status.conditions[0].observed_generation, Some(4));
        assert!(transitions.is_empty());
    }

    /// Each way a profile can be: Accepted, Programmed and Enforced, what follows for Ready, Reconciling and Stalled,
    /// the condition that decides, and the status by kstatus.
    #[allow(clippy::type_complexity, reason = "a table")]
    fn ways() -> Vec<([(ConditionStatus, Reason); 3], [ConditionStatus; 3], &'static str, &'static str)> {
        use ConditionStatus::{False, True, Unknown};
        let (accepted, programmed) = ((True, Reason::Accepted), (True, Reason::Programmed));
        let not_programmed = (False, Reason::NotProgrammed);
        let rejected = |reason| {
            ([(False, reason), (False, Reason::LastGoodInForce), not_programmed], [False, False, True], "Accepted")
        };
        let enforced = |status, reason, summary| ([accepted, programmed, (status, reason)], summary, "Enforced");
        let of = |kstatus| move |(pipeline, summary, decisive)| (pipeline, summary, decisive, kstatus);
        let current = [
            enforced(True, Reason::ProbesPassed, [True, False, False]),
            enforced(False, Reason::StageAudit, [True, False, False]),
            enforced(False, Reason::StageWarn, [True, False, False]),
            enforced(False, Reason::NothingRestricted, [True, False, False]),
        ];
        let in_progress = [
            ([accepted, (False, Reason::Pending), not_programmed], [False, True, False], "Programmed"),
            ([accepted, (False, Reason::ApplyFailed), not_programmed], [False, True, False], "Programmed"),
            (
                [(False, Reason::InternalError), (False, Reason::LastGoodInForce), not_programmed],
                [False, True, False],
                "Accepted",
            ),
            ([(False, Reason::Deleting); 3], [False, True, False], "Accepted"),
            enforced(False, Reason::NotProgrammed, [False, True, False]),
            enforced(Unknown, Reason::ProbeFailed, [Unknown, True, False]),
        ];
        let failed = [
            rejected(Reason::InvalidSpec),
            rejected(Reason::CheckFailed),
            rejected(Reason::RefusedByApiServer),
            enforced(False, Reason::ViolationAdmitted, [False, False, True]),
            enforced(False, Reason::CompliantPodDenied, [False, False, True]),
            enforced(False, Reason::NotMutated, [False, False, True]),
            enforced(Unknown, Reason::ProbeImpossible, [Unknown, False, True]),
        ];
        let current = current.into_iter().map(of("Current"));
        current
            .chain(in_progress.into_iter().map(of("InProgress")))
            .chain(failed.into_iter().map(of("Failed")))
            .collect()
    }

    #[test]
    fn the_first_condition_that_failed_decides_whether_the_profile_is_ready() {
        for (pipeline, expected, decisive, _) in ways() {
            let conditions = of(pipeline);
            let [.., ready, reconciling, stalled] = &conditions;
            assert_eq!([ready.status, reconciling.status, stalled.status], expected, "{pipeline:?}");
            assert_eq!(ready.message, format!("{decisive}: why"), "{pipeline:?}");
            for one in [ready, reconciling, stalled] {
                assert!(conditions.iter().any(|of| of.type_.to_string() == decisive && of.reason == one.reason));
            }
        }
    }

    fn of(pipeline: [(ConditionStatus, Reason); 3]) -> [Condition; 6] {
        let types = [ConditionType::Accepted, ConditionType::Programmed, ConditionType::Enforced];
        let mut types = types.into_iter();
        with_summary(
            pipeline.map(|(status, reason)| Condition::new(types.next().expect("three"), status, reason, "why")),
        )
    }

    /// The statuses that tests/kstatus evaluates with the libraries of Argo CD and Flux. `UPDATE_GOLDEN=1` writes them
    /// again.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test that reads a file")]
    fn the_statuses_for_other_tools_are_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/kstatus/statuses.json");
        let reported = |(pipeline, _, _, kstatus)| {
            let observed = Observations {
                conditions: of(pipeline).to_vec(),
                ..observations(ConditionStatus::True, Reason::Programmed)
            };
            let (status, _) = next(None, &observed, at(1)).expect("a first status");
            serde_json::json!({"kstatus": kstatus, "status": status})
        };
        let all: Vec<_> = ways().into_iter().map(reported).collect();
        let text = serde_json::to_string_pretty(&all).expect("JSON") + "\n";
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, &text).expect("a file that can be written");
        }
        assert!(std::fs::read_to_string(path).expect("a file") == text, "UPDATE_GOLDEN=1 writes {path} anew");
    }
}
