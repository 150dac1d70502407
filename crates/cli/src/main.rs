//! `palisade`: shows, offline, what a `ToolSecurityProfile` becomes. CI and the controller take the same way:
//! parse, compile, check.
#![allow(clippy::disallowed_methods, reason = "this crate reads the files that its user names")]

mod args;
mod explain;
mod input;
mod locate;
mod migrate;
mod output;
mod render;
mod report;
mod strict;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command, MigrateCommand};

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Render(args) => render::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Migrate(MigrateCommand::Psp(args)) => migrate::run(&args),
    };
    report::exit(result)
}
