//! `palisade`: shows, offline, the objects that a `ToolSecurityProfile` compiles to, and the answers of an API server.
//! CI and the controller run the same pipeline: parse, compile, check. The help of `palisade` lists the commands that
//! connect to a cluster.
//!
//! Each module uses only modules before it:
//!
//! 1. Shared code of all commands: `capture`, `style`, `report`, `output`, `progress`, `parallel`, `input`, `files`,
//!    `findings`, `options`, `config`, `diff`, `markdown`, `smallest`, `selector`.
//! 2. The content of files: `strict`, `namespaces`, `profiles`, `pods`, `offline`, `object_kinds`, `clusters`,
//!    `parameters`, `evaluator`, `explained`, `present`.
//! 3. The state of a cluster: `cluster`, `revisions`, `live`; a profile in files, a commit or a cluster: `place`; files that
//!    were written from a cluster: `dump_files`, `denial`, `events`, `log`; or either: `evaluation_inputs`.
//! 4. The effects of a change of profiles: `admission_changes`, `changes_output`, `object_comparison`, and for all pods
//!    `prove`, which is a command, too; and the smallest change of profiles that admits the existing objects: `proposal`.
//! 5. Commands, none of which uses another: `render`, `check`, `eval`, `test`, `new`, `lint`, `migrate`, `history`,
//!    `compare` (`palisade diff`), `replay`, `dump`, `rollback`, `rollout`, `exception`, `status`, `audit`,
//!    `readiness` (`palisade report`), `suggest`, `infer`, `why`.
//! 6. The command line, its former spellings, its manual, and a test of documents that mention it: `args`, `deprecated`,
//!    `manual`, `documented_commands`, and a test of the options: `vocabulary`.
#![warn(missing_docs)]
#![allow(clippy::disallowed_methods, reason = "this crate reads the files that its user names")]

mod admission_changes;
mod args;
mod audit;
mod capture;
mod changes_output;
mod check;
mod cluster;
mod clusters;
mod compare;
mod config;
mod denial;
mod deprecated;
mod diff;
#[cfg(test)]
mod documented_commands;
mod dump;
mod dump_files;
mod eval;
mod evaluation_inputs;
mod evaluator;
mod events;
mod exception;
mod explained;
mod files;
mod findings;
mod history;
mod infer;
mod input;
mod lint;
mod live;
mod log;
mod manual;
mod markdown;
mod migrate;
mod namespaces;
mod new;
mod object_comparison;
mod object_kinds;
mod offline;
mod options;
mod output;
mod parallel;
mod parameters;
mod place;
mod pods;
mod present;
mod profiles;
mod progress;
mod proposal;
mod prove;
mod readiness;
mod render;
mod replay;
mod report;
mod revisions;
mod rollback;
mod rollout;
mod selector;
mod smallest;
mod status;
mod strict;
mod style;
mod suggest;
mod test;
#[cfg(test)]
mod vocabulary;
mod why;

use std::ffi::OsString;

use clap::FromArgMatches as _;

use crate::{
    args::{Args, Command, MigrateCommand},
    report::Failure,
    style::Color,
};

/// The result of a command.
#[derive(Clone, Debug, Default)]
pub struct CommandOutput {
    /// The exit code.
    pub code: u8,
    /// What it printed to standard output.
    pub out: String,
    /// What it printed to standard error.
    pub err: String,
}

/// The definition of the command line, from which manual pages and references are generated.
pub fn definition() -> clap::Command {
    args::definition()
}

/// Runs a command line, whose first argument is the name of the program. Returns the exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let (args, warnings) = match deprecated::current(args.into_iter().collect()) {
        Ok(current) => current,
        Err(removed) => return report::exit(Err(Failure::CouldNotRun(vec![removed]))),
    };
    for warning in &warnings {
        report::note(warning);
    }
    let parsed = args::definition().color(Color::of(&args).of_clap()).try_get_matches_from(args);
    let command = match parsed.and_then(|matches| Args::from_arg_matches(&matches)) {
        Ok(args) => {
            args.color.set();
            args.command
        }
        Err(error) => {
            let text = error.render();
            if capture::is_kept() {
                report::say(&text.to_string());
            } else {
                let _ = error.print();
            }
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    let result = match command {
        Command::Render(args) => render::run(&args),
        Command::Test(args) => test::run(&args),
        Command::New(command) => new::run(&command),
        Command::Eval(args) => eval::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Migrate(MigrateCommand::Psp(args)) => migrate::run(&args),
        Command::Lint(args) => return lint::run(&args),
        Command::History(args) => history::run(&args),
        Command::Diff(args) => compare::run(&args),
        Command::Prove(args) => prove::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Dump(args) => dump::run(&args),
        Command::Rollback(args) => rollback::run(&args),
        Command::Rollout(command) => rollout::run(&command),
        Command::Exception(command) => exception::run(&command),
        Command::Status(args) => status::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Report(args) => readiness::run(&args),
        Command::Suggest(args) => suggest::run(&args),
        Command::Infer(args) => infer::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { directory } => manual::pages(directory.as_deref()),
    };
    report::exit(result)
}

/// Runs a command line within this process and captures its output. For tests, which run many.
pub fn captured(args: impl IntoIterator<Item = OsString>) -> CommandOutput {
    capture::keep();
    let code = run(args);
    let (out, err) = capture::kept();
    CommandOutput { code, out, err }
}
