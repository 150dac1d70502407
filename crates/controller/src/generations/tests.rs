//! Which generation is the target, for each combination of generations and verdicts.

use std::sync::{Arc, LazyLock};

use palisade_api::{ToolSecurityProfile, conditions::Reason};
use serde_json::json;

use super::{
    accepted::{AcceptedProfile, Rejection},
    refuted::RefutedGeneration,
    target::{Decision, DryRunAnswer, Generations, Target},
};
use crate::api_request::ApiError;

const LAST_GOOD: i64 = 1;
const IN_FORCE: i64 = 2;
const PROPOSED: i64 = 3;

/// The same profile with each generation that the tests need. Compiling takes a while.
static PROFILE: LazyLock<AcceptedProfile> = LazyLock::new(|| {
    let spec = serde_json::from_value(json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}));
    let profile = ToolSecurityProfile::new("tools", spec.unwrap());
    let compiled = palisade_gate::check(palisade_compiler::compile(&profile).unwrap()).unwrap();
    AcceptedProfile { profile: Arc::new(profile), compiled }
});

fn accepted(generation: i64) -> Arc<AcceptedProfile> {
    let mut profile = ToolSecurityProfile::clone(&PROFILE.profile);
    profile.metadata.generation = Some(generation);
    Arc::new(AcceptedProfile { profile: Arc::new(profile), compiled: PROFILE.compiled.clone() })
}

fn rejection(reason: Reason) -> Arc<Rejection> {
    Arc::new(Rejection { reason, message: String::new() })
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum DryRun {
    NotAsked,
    Accepted,
    Rejected,
    NoVerdict,
}

impl DryRun {
    const ALL: &[Self] = &[Self::NotAsked, Self::Accepted, Self::Rejected, Self::NoVerdict];

    fn answer(self) -> Option<DryRunAnswer> {
        match self {
            Self::NotAsked => None,
            Self::Accepted => Some(DryRunAnswer::Accepted),
            Self::Rejected => Some(DryRunAnswer::Rejected(rejection(Reason::RefusedByApiServer))),
            Self::NoVerdict => Some(DryRunAnswer::NoVerdict(ApiError::Stopped)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Expected {
    Enforce(i64),
    Wait(Option<i64>),
    Nothing,
}

/// One row: the inputs, the target, the reason of a negative verdict, and the reason for the row. For the input
/// `in_force`, `None` means both values.
struct Row {
    compiles: bool,
    refuted: bool,
    dry_run: &'static [DryRun],
    in_force: Option<bool>,
    last_good: &'static [Option<i64>],
    target: Expected,
    rejected: Option<Reason>,
    why: &'static str,
}

const ANY: &[Option<i64>] = &[None, Some(LAST_GOOD), Some(PROPOSED)];
/// A refutation counts only if another generation can be restored.
const NOT_RESTORABLE: &[Option<i64>] = &[None, Some(PROPOSED)];
const RESTORABLE: &[Option<i64>] = &[Some(LAST_GOOD)];

fn rows() -> Vec<Row> {
    let mut rows = vec![
        Row {
            compiles: false,
            refuted: true,
            dry_run: DryRun::ALL,
            in_force: None,
            last_good: RESTORABLE,
            target: Expected::Enforce(LAST_GOOD),
            rejected: Some(Reason::InvalidSpec),
            why: "the refuted generation may be in effect, so the last good one replaces it; the error of the \
                  compiler is reported because it comes first",
        },
        Row {
            compiles: true,
            refuted: true,
            dry_run: DryRun::ALL,
            in_force: None,
            last_good: RESTORABLE,
            target: Expected::Enforce(LAST_GOOD),
            rejected: Some(Reason::CompliantPodDenied),
            why: "the refuted generation may be in effect, so the last good one replaces it; no dry run is sent",
        },
    ];
    // Without an effective refutation.
    for (refuted, last_good) in [(true, NOT_RESTORABLE), (false, ANY)] {
        let rejections: [(bool, &[DryRun], _, _); 3] = [
            (false, DryRun::ALL, Some(Reason::InvalidSpec), "the compiler or the offline check rejects it"),
            (true, &[DryRun::Rejected], Some(Reason::RefusedByApiServer), "the API server rejects it"),
            (true, &[DryRun::NotAsked], None, "without a dry run, nothing is written"),
        ];
        for (compiles, dry_run, rejected, why) in rejections {
            let row = |in_force, last_good, target| Row {
                compiles,
                refuted,
                dry_run,
                in_force: Some(in_force),
                last_good,
                target,
                rejected,
                why,
            };
            rows.push(row(true, last_good, Expected::Enforce(IN_FORCE)));
            rows.push(row(false, &[None], Expected::Nothing));
            rows.push(row(false, &[Some(PROPOSED)], Expected::Enforce(PROPOSED)));
            if !refuted {
                rows.push(row(false, RESTORABLE, Expected::Enforce(LAST_GOOD)));
            }
        }
        let row = |dry_run, in_force, last_good, target, why| Row {
            compiles: true,
            refuted,
            dry_run,
            in_force,
            last_good,
            target,
            rejected: None,
            why,
        };
        let accepted = "the API server accepts it";
        rows.push(row(&[DryRun::Accepted], None, last_good, Expected::Enforce(PROPOSED), accepted));
        let unknown = "an unknown verdict changes nothing: the generation in effect stays, after a restart the last \
                       good one";
        let wait = |in_force, last_good, kept| {
            row(&[DryRun::NoVerdict], Some(in_force), last_good, Expected::Wait(kept), unknown)
        };
        rows.push(wait(true, last_good, Some(IN_FORCE)));
        rows.push(wait(false, &[None], None));
        rows.push(wait(false, &[Some(PROPOSED)], Some(PROPOSED)));
        if !refuted {
            rows.push(wait(false, RESTORABLE, Some(LAST_GOOD)));
        }
    }
    rows
}

#[test]
fn each_combination_of_generations_has_one_target() {
    let rows = rows();
    for compiles in [true, false] {
        for refuted in [true, false] {
            for &dry_run in DryRun::ALL {
                for in_force in [true, false] {
                    for &last_good in ANY {
                        let case = format!("{compiles} {refuted} {dry_run:?} {in_force} {last_good:?}");
                        let matches = |row: &&Row| {
                            (row.compiles, row.refuted) == (compiles, refuted)
                                && row.dry_run.contains(&dry_run)
                                && row.in_force.is_none_or(|it| it == in_force)
                                && row.last_good.contains(&last_good)
                        };
                        let rows: Vec<_> = rows.iter().filter(matches).collect();
                        let [row] = rows[..] else { panic!("{case}: {} rows", rows.len()) };
                        let mut generations = Generations::default();
                        if refuted {
                            generations.prove(&accepted(LAST_GOOD));
                            generations.refute(PROPOSED, "why");
                        }
                        generations.set_last_good(last_good.map(accepted));
                        generations.set_in_force(in_force.then(|| accepted(IN_FORCE)));
                        let compiled =
                            if compiles { Ok(accepted(PROPOSED)) } else { Err(rejection(Reason::InvalidSpec)) };
                        generations.propose(Some(PROPOSED), compiled, None);
                        let Decision { verdict, target } = generations.decide(dry_run.answer());
                        let target = match target {
                            Target::Enforce(accepted) => Expected::Enforce(accepted.generation()),
                            Target::Wait { kept, .. } => Expected::Wait(kept.map(|kept| kept.generation())),
                            Target::Nothing => Expected::Nothing,
                        };
                        assert_eq!(target, row.target, "{case}: {}", row.why);
                        let rejected = verdict.err().map(|rejection| rejection.reason);
                        assert_eq!(rejected, row.rejected, "{case}: {}", row.why);
                    }
                }
            }
        }
    }
}

#[test]
fn refuted_generation_gives_way_to_the_proven_one() {
    let [one, two] = [1, 2].map(accepted);
    let mut generations = Generations::default();
    generations.propose(Some(1), Ok(Arc::clone(&one)), None);
    generations.set_last_good(Some(Arc::clone(&one)));
    // Without a proven generation, there is none to restore.
    assert!(generations.refute(1, "why").is_none());
    generations.prove(&one);
    assert!(generations.refute(1, "why").is_none());
    generations.propose(Some(2), Ok(Arc::clone(&two)), None);
    generations.set_last_good(Some(Arc::clone(&two)));
    assert_eq!(generations.refute(2, "why").map(|refuted| refuted.generation), Some(2));
    assert_eq!(generations.last_good().map(|accepted| accepted.generation()), Some(1));
    assert!(generations.candidate().is_none());
    // The next edit is tried.
    generations.propose(Some(3), Ok(accepted(3)), None);
    assert_eq!(generations.candidate().map(|accepted| accepted.generation()), Some(3));
}

#[test]
fn only_another_proven_generation_replaces_a_refuted_one() {
    for proven in [None, Some(1), Some(2), Some(3)] {
        for refuted in 1..=3 {
            let mut generations = Generations::default();
            generations.propose(Some(refuted), Ok(accepted(refuted)), None);
            generations.set_last_good(Some(accepted(refuted)));
            if let Some(proven) = proven {
                generations.prove(&accepted(proven));
            }
            let result = generations.refute(refuted, "the probe was denied");
            let rejection = result.map(|result| (result.generation, Arc::clone(&result.rejection)));
            let replaced = proven.filter(|proven| *proven != refuted);
            let last_good = generations.last_good().map(|accepted| accepted.generation());
            assert_eq!(last_good, replaced.or(Some(refuted)), "{proven:?} {refuted}");
            assert_eq!(rejection.as_ref().map(|(of, _)| *of), replaced.map(|_| refuted), "{proven:?} {refuted}");
            if let (Some((_, rejection)), Some(replaced)) = (rejection, replaced) {
                let message = &rejection.message;
                let restored =
                    format!("the probe was denied; therefore the spec of generation {replaced} was restored");
                assert!(message.starts_with(&restored), "{message}");
            }
        }
    }
}

#[test]
fn reported_refutation_counts_only_after_a_restart_with_another_last_good_generation() {
    let reported = || Some(RefutedGeneration::new(2, "why", 1));
    for (last_good, proven, refuted) in
        [(None, false, false), (Some(1), false, true), (Some(2), false, false), (Some(1), true, false)]
    {
        let mut generations = Generations::default();
        generations.set_last_good(last_good.map(accepted));
        if proven {
            generations.prove(&accepted(1));
        }
        generations.propose(Some(2), Ok(accepted(2)), reported());
        assert_eq!(generations.candidate().is_none(), refuted, "{last_good:?} {proven}");
    }
}

/// After a restart, a reported refutation also shows that the last good generation was proven, unless that is the
/// refuted one: a later edit that is refuted is replaced by it.
#[test]
fn reported_refutation_proves_another_last_good_generation() {
    for reported in [true, false] {
        for last_good in [None, Some(1), Some(2)] {
            let mut generations = Generations::default();
            generations.set_last_good(last_good.map(accepted));
            let report = reported.then(|| RefutedGeneration::new(2, "why", 1));
            generations.propose(Some(2), Ok(accepted(2)), report);
            let replaced = last_good.filter(|last_good| reported && *last_good != 2);
            assert_eq!(generations.candidate().is_none(), replaced.is_some(), "{reported} {last_good:?}");
            generations.propose(Some(3), Ok(accepted(3)), None);
            generations.set_last_good(Some(accepted(3)));
            assert_eq!(generations.refute(3, "why").is_some(), replaced.is_some(), "{reported} {last_good:?}");
            let now = generations.last_good().map(|accepted| accepted.generation());
            assert_eq!(now, replaced.or(Some(3)), "{reported} {last_good:?}");
        }
    }
}

/// A process that has refuted a generation does not need the report about it, which may be of another generation.
#[test]
fn reported_refutation_does_not_replace_one_of_this_process() {
    let mut generations = Generations::default();
    generations.prove(&accepted(1));
    generations.refute(2, "of this process");
    generations.propose(Some(2), Ok(accepted(2)), Some(RefutedGeneration::new(2, "of the status", 1)));
    let Decision { verdict, target } = generations.decide(None);
    assert!(verdict.unwrap_err().message.starts_with("of this process"));
    assert!(matches!(target, Target::Enforce(accepted) if accepted.generation() == 1));
}

#[test]
fn only_another_last_good_generation_is_restored_after_a_restart() {
    // Generation 0 is a profile without one.
    let all = [None, Some(0), Some(1), Some(2)];
    for last_good in all {
        for proposed in all {
            for in_force in all {
                let mut generations = Generations::default();
                generations.set_last_good(last_good.map(accepted));
                generations.set_in_force(in_force.map(accepted));
                let restored = generations.to_restore(proposed).map(|accepted| accepted.generation());
                let expected = last_good.filter(|last_good| *last_good != proposed.unwrap_or(0) && in_force.is_none());
                assert_eq!(restored, expected, "{last_good:?} {proposed:?} {in_force:?}");
                let kept = generations.kept().map(|accepted| accepted.generation());
                assert_eq!(kept, in_force.or(last_good));
            }
        }
    }
}
