//! `cargo xtask`: what is derived from the code.
#![allow(clippy::disallowed_methods, reason = "this is the crate that reads and writes the project's files")]

mod cel;
mod examples;
mod generate;
mod pages;
mod schema;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Tasks of the project")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Writes the generated files.
    Generate {
        /// Writes nothing; fails if a generated file is not what it should be.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Generate { check } => generate::run(check),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
