//! `palisade prove`: whether a change of profiles newly admits or denies a pod, and statements about profiles, for all pods.

mod answer;
mod args;
mod example;
mod found;
mod side;

use std::collections::BTreeMap;

pub use answer::Answer;
pub use args::ProveArgs;
use palisade_admission::requests::Operation;
use palisade_cel::Minor;

use self::{args::ProveFormat, found::Types, side::Side};
use crate::{cluster::could_not_run, output, profiles::Accepted, report::Failure};

/// The operations on pods.
const BOTH: [Operation; 2] = [Operation::Create, Operation::Update];

/// Runs the command.
pub fn run(args: &ProveArgs) -> Result<(), Failure> {
    let version = args.kube_version.unwrap_or(Minor::DEFAULT);
    let before = Side::all(&args.before, version)?;
    let answers: Vec<_> = if let Some(after) = &args.after {
        let pairs = paired(before, Side::all(after, version)?);
        let types = Types::of(version)?;
        pairs.iter().map(|pair| compared(&types, pair)).collect()
    } else {
        let types = Types::of(version)?;
        before.iter().map(|profile| stated(&types, profile, args, version)).collect::<Result<_, _>>()?
    };
    output::print(&match args.output {
        ProveFormat::Human => answer::text(&answers, version),
        ProveFormat::Json => answer::json(&answers, version),
    })?;
    if answers.iter().any(Answer::is_refuted) {
        return Err(Failure::Wrong(Vec::new()));
    }
    answers.iter().find_map(Answer::undecided).map_or(Ok(()), |why| Err(could_not_run(why)))
}

/// A profile before and after a change; none where it is missing.
type Pair = (Option<Side>, Option<Side>);

/// The profiles with the same name. If there is one on each side, their names may differ.
fn paired(before: Vec<Side>, after: Vec<Side>) -> Vec<Pair> {
    if before.len() == 1 && after.len() == 1 {
        return before.into_iter().map(Some).zip(after.into_iter().map(Some)).collect();
    }
    let mut pairs = BTreeMap::<String, Pair>::new();
    for side in before {
        let name = side.accepted.checked.profile.clone();
        pairs.entry(name).or_default().0 = Some(side);
    }
    for side in after {
        let name = side.accepted.checked.profile.clone();
        pairs.entry(name).or_default().1 = Some(side);
    }
    pairs.into_values().collect()
}

fn compared(types: &Types, pair: &Pair) -> Answer {
    let (before, after) = match pair {
        (Some(before), Some(after)) => (before, after),
        (before, after) => {
            let name = |side: &Option<Side>| side.as_ref().map(|side| side.name.clone());
            return Answer::Only { before: name(before), after: name(after) };
        }
    };
    if before.accepted.profile.spec.parameters != after.accepted.profile.spec.parameters {
        return Answer::not_compared(
            [&before.name, &after.name],
            "spec.parameters differ, so that namespaces have other values: only profiles with the same parameters can be \
             compared",
        );
    }
    Answer::Change {
        before: before.name.clone(),
        after: after.name.clone(),
        admitted: types.found(after, before, &BOTH),
        denied: types.found(before, after, &BOTH),
    }
}

/// The answers about the profiles whose specs differ.
pub fn of_edit(before: &[Accepted], after: &[Accepted], version: Minor) -> Result<Vec<Answer>, Failure> {
    let mut pairs = BTreeMap::<&str, [Option<&Accepted>; 2]>::new();
    for (profiles, side) in [(before, 0), (after, 1)] {
        for one in profiles {
            pairs.entry(&one.checked.profile).or_default()[side] = Some(one);
        }
    }
    pairs.retain(|_, pair| pair[0].map(|one| &one.profile.spec) != pair[1].map(|one| &one.profile.spec));
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    let types = Types::of(version)?;
    let answer = |(name, pair): (&str, [Option<&Accepted>; 2])| {
        let side = |one: Option<&Accepted>| one.map(|one| Side::new(name.to_owned(), one.clone(), version)).transpose();
        match (side(pair[0]), side(pair[1])) {
            (Ok(before), Ok(after)) => compared(&types, &(before, after)),
            (Err(failure), _) | (_, Err(failure)) => Answer::not_compared([name, name], &failure.to_string()),
        }
    };
    Ok(pairs.into_iter().map(answer).collect())
}

fn stated(types: &Types, profile: &Side, args: &ProveArgs, version: Minor) -> Result<Answer, Failure> {
    let statement = profile.of_statement(args, version)?;
    // An update is judged by the fields that it can change. So the whole pod is known only when it is created.
    let operations = if args.never.is_some() { &BOTH[..1] } else { &BOTH };
    let found = types.found(profile, &statement, operations);
    Ok(Answer::Statement { profile: profile.name.clone(), statement: statement.name, found })
}
