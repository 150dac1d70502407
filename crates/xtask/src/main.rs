//! `cargo xtask`: what is derived from the code, and how far it agrees with the API server's.
//!
//! Each module uses only modules before it:
//!
//! 1. What pages are made of: `project`, `flow`, `examples`, `defaults`, `bounds`, `schema`.
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
    /// Compares Palisade's CEL with the answers of kube-apiserver's own; fails where they differ and it is not listed.
    Agreement {
        /// What `oracle answer` has written; the golden files of all minors unless given.
        files: Vec<PathBuf>,
        /// The minor version of Kubernetes that answered in FILES.
        #[arg(long, default_value_t = Minor::DEFAULT)]
        minor: Minor,
        /// Compares what Palisade says of policies and requests of other projects instead, with what an API server said.
        #[arg(long, conflicts_with = "files")]
        cases: Option<PathBuf>,
        /// The tests of the CEL specification as `oracle celspec` has answered them, instead of FILES.
        #[arg(long, conflicts_with_all = ["files", "cases"], value_name = "FILE")]
        specification: Option<PathBuf>,
    },
    /// Reads a book as mdBook gives it to a preprocessor; links that lead out of docs/ lead to the repository.
    BookLinks {
        /// `supports` and the name of a renderer, which mdBook asks first.
        question: Vec<String>,
    },
    /// Fails if a link of a book that was built leads nowhere.
    BookCheck {
        /// The directory of its pages.
        directory: PathBuf,
    },
    /// Prints the pods of the fixtures of all checks, one as JSON on a line.
    Pods,
    /// Writes what `make fuzz` begins with.
    FuzzSeeds {
        /// For `expressions` and `reviews`; beside each of them comes its dictionary.
        directory: PathBuf,
    },
    /// Writes objects as other tools and people write YAML and JSON: a line `{"id", "text"}` for each spelling.
    Spell {
        /// Files with objects, or directories of them; objects that nobody would write unless given.
        paths: Vec<PathBuf>,
        /// So many spellings of each object.
        #[arg(long, default_value_t = 3)]
        count: usize,
        /// Others for another seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Damages every second text.
        #[arg(long)]
        damage: bool,
    },
    /// Reads what `oracle texts` or `oracle read` has written; fails if anything is read differently.
    Texts {
        /// The files.
        files: Vec<PathBuf>,
    },
    /// Fails if the SBOMs of a release are malformed, or do not name what Cargo.lock says of the programs.
    SbomCheck {
        /// The directory with them.
        directory: PathBuf,
    },
    /// Measures Palisade's CEL and kube-apiserver's own with the same expressions.
    BenchCel {
        /// The program of tests/oracle.
        #[arg(long)]
        oracle: PathBuf,
        /// With so many expressions of the golden files.
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
                println!("{count} links in {}, and each leads somewhere", directory.display());
                ExitCode::SUCCESS
            }
            Ok((count, wrong)) => failed(&format!("of {count} links these lead nowhere:\n{}", wrong.join("\n")), 1),
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
