//! `palisade`: shows, offline, what a `ToolSecurityProfile` becomes, and what an API server would say. CI and the controller take the same way:
//! parse, compile, check.
#![allow(clippy::disallowed_methods, reason = "this crate reads the files that its user names")]

mod args;
mod diff;
mod eval;
mod explain;
mod fill;
mod input;
mod lint;
mod manual;
mod migrate;
mod output;
mod plugins;
mod render;
mod report;
mod strict;
mod test;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command, MigrateCommand};

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Render(args) => render::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Migrate(MigrateCommand::Psp(args)) => migrate::run(&args),
        Command::Lint(args) => return lint::run(&args),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { directory } => manual::pages(directory.as_deref()),
    };
    report::exit(result)
}
