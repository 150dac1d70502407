//! `palisade eval`: evaluates requests like an API server.

mod args;
mod cluster;
mod requests;
mod show;

pub use args::EvalArgs;

use crate::{
    output,
    report::{Failure, Problem},
};

/// Runs the command.
pub fn run(args: &EvalArgs) -> Result<(), Failure> {
    let inputs = args.files.iter().chain(&args.requests).chain(&args.old);
    if inputs.filter(|path| *path == "-").count() > 1 {
        return Err(Failure::CouldNotRun(vec![Problem::new("only one FILE can be standard input")]));
    }
    let cluster = cluster::read(args)?;
    let (requests, problems) = requests::read(args, &cluster)?;
    let answers: Vec<_> = requests.iter().map(|request| request.ask(&cluster)).collect();
    let human = show::human(&answers, cluster.has_policies(), args.verbose)?;
    output::print(&args.format.text(|| human, || show::json(&answers))?)?;
    if !problems.is_empty() {
        return Err(Failure::CouldNotRun(problems));
    }
    let allowed = answers.iter().all(|answer| answer.review.outcome.is_allowed());
    if allowed { Ok(()) } else { Err(Failure::Wrong(vec![])) }
}
