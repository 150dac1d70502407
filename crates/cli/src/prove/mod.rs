//! `palisade prove`: whether a change of a profile newly admits or denies a pod, and statements about a profile, for all
//! pods.

mod answer;
mod args;
mod example;
mod found;
mod side;

pub use args::ProveArgs;
use palisade_admission::requests::Operation;
use palisade_cel::Minor;

use self::{
    answer::Change,
    args::ProveFormat,
    found::{Found, Types},
    side::Side,
};
use crate::{cluster::could_not_run, output, report::Failure};

/// The operations on pods.
const BOTH: [Operation; 2] = [Operation::Create, Operation::Update];

/// Runs the command.
pub fn run(args: &ProveArgs) -> Result<(), Failure> {
    let version = args.kube_version.unwrap_or(Minor::DEFAULT);
    let before = Side::read(&args.before, version)?;
    let types = Types::of(version)?;
    let Some(after) = &args.after else {
        let statement = before.of_statement(args, version)?;
        // An update is judged by the fields that it can change. So the whole pod is known only when it is created.
        let operations = if args.never.is_some() { &BOTH[..1] } else { &BOTH };
        let found = types.found(&before, &statement, operations);
        let write = match args.output {
            ProveFormat::Human => answer::statement,
            ProveFormat::Json => answer::statement_json,
        };
        return print(&write(&before, &statement, &found, version), &found, "the statement holds");
    };
    let after = Side::read(after, version)?;
    if before.accepted.profile.spec.parameters != after.accepted.profile.spec.parameters {
        return Err(could_not_run(
            "spec.parameters differ, so that namespaces have other values: only profiles with the same parameters can be \
             compared",
        ));
    }
    let change = Change { admitted: types.found(&after, &before, &BOTH), denied: types.found(&before, &after, &BOTH) };
    let text = match args.output {
        ProveFormat::Human => change.text(&before, &after, version),
        ProveFormat::Json => change.json(&before, &after, version),
    };
    print(&text, &change.admitted, "a pod is newly admitted")
}

/// Prints the answer. A pod that refutes the statement is a failure.
fn print(text: &str, refuting: &Found, whether: &str) -> Result<(), Failure> {
    output::print(text)?;
    match refuting {
        found if !found.examples.is_empty() => Err(Failure::Wrong(Vec::new())),
        Found { undecided: Some(why), .. } => Err(could_not_run(format!("not decided whether {whether}: {why}"))),
        Found { undecided: None, .. } => Ok(()),
    }
}
