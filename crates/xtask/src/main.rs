//! `cargo xtask`: files that are derived from the code, comparisons with the API server's code, measurements, and releases.
//!
//! Each module uses only modules before it:
//!
//! 1. The project and its programs: `project`, `shell`.
//! 2. The sources of pages: `flow`, `examples`, `defaults`, `bounds`, `schema`.
//! 3. Pages, schemas for editors, and all generated files: `commands`, `coverage`, `editors`, `kinds`, `library`, `lints`,
//!    `metrics`, `pages`, `object_pages`, `values`; `book`, `generate`.
//! 4. Parts of tasks: `agreement`, `bench`, `fuzz`, `sbom`, `spell`.
//! 5. Tasks that run programs: `oracle`, `differential`, `chart`, `scenarios`, `minors`, `benchmarks`, `quality`, `release`.
#![allow(clippy::disallowed_methods, reason = "this is the crate that reads and writes the project's files")]

mod agreement;
mod bench;
mod benchmarks;
mod book;
mod bounds;
mod chart;
mod commands;
mod coverage;
mod defaults;
mod differential;
mod editors;
mod examples;
mod flow;
mod fuzz;
mod generate;
mod kinds;
mod library;
mod lints;
mod metrics;
mod minors;
mod object_pages;
mod oracle;
mod pages;
mod project;
mod quality;
mod release;
mod sbom;
mod scenarios;
mod schema;
mod shell;
mod spell;
mod values;

use std::{
    fmt::Display,
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

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
    /// Build the documentation as a book (target/book), and check its links.
    Book,
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
    /// Print the pods of the fixtures of all checks, with one JSON object on each line.
    Pods,
    /// Write the seeds for `cargo xtask fuzz`.
    FuzzSeeds {
        /// Directory for `expressions` and `reviews`, each with its dictionary.
        directory: PathBuf,
    },
    /// Print objects in other spellings of YAML and JSON: a line `{"id", "text"}` for each spelling.
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
    #[command(flatten)]
    Oracle(oracle::Verb),
    #[command(flatten)]
    Differential(differential::Verb),
    #[command(flatten)]
    Scenarios(scenarios::Verb),
    #[command(flatten)]
    Minors(minors::Verb),
    #[command(flatten)]
    Chart(chart::Verb),
    #[command(flatten)]
    Quality(quality::Verb),
    #[command(flatten)]
    Benchmarks(benchmarks::Verb),
    #[command(flatten)]
    Release(release::Verb),
}

/// The exit code of a task: 1 for a negative result, and `code` for an error, which is printed.
fn ended(result: Result<bool, impl Display>, code: u8) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(code)
        }
    }
}

/// Prints a text. A reader that has enough closes its end.
fn print(text: &str) -> bool {
    let _ = io::stdout().write_all(text.as_bytes());
    true
}

fn done<E>(result: Result<(), E>) -> Result<bool, E> {
    result.map(|()| true)
}

fn main() -> ExitCode {
    match Arguments::parse().task {
        Task::Generate { check } => ended(done(generate::run(check)), 1),
        Task::Book => match book::build() {
            Ok(directory) => ended(book::check(&directory), 2),
            Err(error) => ended(Err(error), 2),
        },
        // All renderers are supported.
        Task::BookLinks { question } if !question.is_empty() => ExitCode::SUCCESS,
        Task::BookLinks { .. } => ended(book::preprocess(io::stdin()).map(|text| print(&text)), 2),
        Task::BookCheck { directory } => ended(book::check(&directory), 2),
        Task::Agreement { files, minor, cases, specification } => {
            let agrees = match (cases, specification) {
                (Some(directory), _) => agreement::cases(&directory),
                (None, Some(path)) => agreement::specification(&path, minor),
                (None, None) => agreement::run(&files, minor),
            };
            ended(agrees, 2)
        }
        Task::Pods => ended(fuzz::pods().map(|pods| print(&pods)), 2),
        Task::FuzzSeeds { directory } => ended(done(fuzz::seeds(&directory)), 2),
        Task::Spell { paths, count, seed, damage } => {
            ended(done(spell::write(&mut io::stdout().lock(), &paths, count, seed, damage)), 2)
        }
        Task::Texts { files } => ended(spell::compare(&files), 2),
        Task::Oracle(verb) => ended(done(oracle::task(&verb)), 1),
        Task::Differential(verb) => ended(differential::task(&verb), 2),
        Task::Scenarios(verb) => ended(done(scenarios::task(&verb)), 1),
        Task::Minors(verb) => ended(minors::task(&verb), 2),
        Task::Chart(verb) => ended(done(chart::task(&verb)), 1),
        Task::Quality(verb) => ended(done(quality::task(&verb)), 1),
        Task::Benchmarks(verb) => ended(benchmarks::task(&verb), 2),
        Task::Release(verb) => ended(done(release::task(&verb)), 1),
    }
}
