//! `cargo xtask`: files that are derived from the code, and measurements of its agreement with the API server.
//!
//! Each module uses only modules before it:
//!
//! 1. The sources of pages: `project`, `flow`, `examples`, `defaults`, `bounds`, `schema`.
//! 2. Pages, schemas for editors, and all generated files: `commands`, `coverage`, `editors`, `kinds`, `library`, `lints`,
//!    `metrics`, `pages`, `values`; `book`, `generate`.
//! 3. Other tasks: `agreement`, `bench`, `fuzz`, `sbom`, `spell`.
#![allow(clippy::disallowed_methods, reason = "this is the crate that reads and writes the project's files")]

mod agreement;
mod bench;
mod book;
mod bounds;
mod commands;
mod coverage;
mod defaults;
mod editors;
mod examples;
mod flow;
mod fuzz;
mod generate;
mod kinds;
mod library;
mod lints;
mod metrics;
mod pages;
mod project;
mod sbom;
mod schema;
mod spell;
mod values;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use palisade_cel::Minor;

#[derive(Parser)]
#[command(about = "Development tasks of the project")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write the generated files.
    Generate {
        /// Only check; fail if a generated file is out of date.
        #[arg(long)]
        check: bool,
    },
    /// Compare Palisade's CEL with the answers of kube-apiserver; fail for differences that are not listed.
    Agreement {
        /// Output of `oracle answer`. The default is the golden files of all minors.
        files: Vec<PathBuf>,
        /// Minor version of Kubernetes that answered in FILES.
        #[arg(long, default_value_t = Minor::DEFAULT)]
        minor: Minor,
        /// Compare verdicts on policies and requests of other projects with the answers of an API server instead.
        #[arg(long, conflicts_with = "files")]
        cases: Option<PathBuf>,
        /// Tests of the CEL specification with the answers of `oracle celspec`, instead of FILES.
        #[arg(long, conflicts_with_all = ["files", "cases"], value_name = "FILE")]
        specification: Option<PathBuf>,
    },
    /// Run as a preprocessor of mdBook; links to files outside of docs/ become links to the repository.
    BookLinks {
        /// `supports` and the name of a renderer, the first question of mdBook.
        question: Vec<String>,
    },
    /// Check the links of a built book.
    BookCheck {
        /// Directory of its pages.
        directory: PathBuf,
    },
    /// Print the pods of the fixtures of all checks, with one JSON object on each line.
    Pods,
    /// Write the seeds for `make fuzz`.
    FuzzSeeds {
        /// Directory for `expressions` and `reviews`, each with its dictionary.
        directory: PathBuf,
    },
    /// Write objects in other spellings of YAML and JSON: a line `{"id", "text"}` for each spelling.
    Spell {
        /// Files or directories with objects. The default is unusual objects.
        paths: Vec<PathBuf>,
        /// Number of spellings of each object.
        #[arg(long, default_value_t = 3)]
        count: usize,
        /// Seed of the random spellings.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Damage every second text.
        #[arg(long)]
        damage: bool,
    },
    /// Read the output of `oracle texts` or `oracle read`; fail if a text is read differently.
    Texts {
        /// Files to read.
        files: Vec<PathBuf>,
    },
    /// Check that the SBOMs of a release are valid and match Cargo.lock.
    SbomCheck {
        /// Directory of the SBOMs.
        directory: PathBuf,
    },
    /// Measure Palisade's CEL and that of kube-apiserver with the same expressions.
    BenchCel {
        /// Program of tests/oracle.
        #[arg(long)]
        oracle: PathBuf,
        /// Number of expressions of the golden files.
        #[arg(long, default_value_t = 200)]
        count: usize,
    },
}

fn main() -> ExitCode {
    let failed = |error: &dyn std::fmt::Display, code: u8| {
        eprintln!("error: {error}");
        ExitCode::from(code)
    };
    match Arguments::parse().task {
        Task::Generate { check } => match generate::run(check) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error, 1),
        },
        Task::Agreement { files, minor, cases, specification } => match match (cases, specification) {
            (Some(directory), _) => agreement::cases(&directory),
            (None, Some(path)) => agreement::specification(&path, minor),
            (None, None) => agreement::run(&files, minor),
        } {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => failed(&error, 2),
        },
        // All renderers are supported.
        Task::BookLinks { question } if !question.is_empty() => ExitCode::SUCCESS,
        Task::BookLinks { .. } => match book::preprocess(std::io::stdin()) {
            Ok(text) => {
                let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
                ExitCode::SUCCESS
            }
            Err(error) => failed(&error, 2),
        },
        Task::BookCheck { directory } => match book::broken(&directory) {
            Ok((count, wrong)) if wrong.is_empty() && count > 0 => {
                println!("{count} links in {}, all valid", directory.display());
                ExitCode::SUCCESS
            }
            Ok((count, wrong)) => failed(&format!("broken links, of {count}:\n{}", wrong.join("\n")), 1),
            Err(error) => failed(&error, 2),
        },
        Task::Pods => match fuzz::pods() {
            Ok(pods) => {
                // A reader that has enough closes its end.
                let _ = std::io::Write::write_all(&mut std::io::stdout(), pods.as_bytes());
                ExitCode::SUCCESS
            }
            Err(error) => failed(&error, 2),
        },
        Task::FuzzSeeds { directory } => match fuzz::seeds(&directory) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error, 2),
        },
        Task::Spell { paths, count, seed, damage } => match spell::write(&paths, count, seed, damage) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error, 2),
        },
        Task::Texts { files } => match spell::compare(&files) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => failed(&error, 2),
        },
        Task::SbomCheck { directory } => match sbom::check(&directory) {
            Ok((seen, wrong)) if wrong.is_empty() => {
                println!("{seen}");
                ExitCode::SUCCESS
            }
            Ok((_, wrong)) => failed(&wrong.join("\n"), 1),
            Err(error) => failed(&error, 2),
        },
        Task::BenchCel { oracle, count } => match bench::run(&oracle, count) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => failed(&error, 2),
        },
    }
}
