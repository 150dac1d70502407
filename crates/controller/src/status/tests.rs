//! The summary of conditions, and the next status.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition as MetaCondition, Time},
    jiff::Timestamp,
};
use palisade_api::{
    NamespaceCounts, RolloutPhase, RolloutStatus,
    conditions::{ConditionType, Reason},
};

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
        generated: None,
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
    current.chain(in_progress.into_iter().map(of("InProgress"))).chain(failed.into_iter().map(of("Failed"))).collect()
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
    with_summary(pipeline.map(|(status, reason)| Condition::new(types.next().expect("three"), status, reason, "why")))
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
