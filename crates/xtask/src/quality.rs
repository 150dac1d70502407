//! Tests of tests: mutation tests, random profiles and pods, fuzz tests; and checks with other programs.

use std::path::PathBuf;

use clap::Subcommand;

use crate::{
    fuzz,
    project::root,
    shell::{self, FUZZ, MUTANTS, cargo, command, directory, go, optional, run, status, target},
};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Shell(#[from] shell::Error),
    #[error(transparent)]
    Seeds(#[from] fuzz::Error),
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Run mutation tests of the fast path: a test must fail for each mutant.
    Mutants {
        /// Pattern of the files to change, for example `**/simplify/*.rs`.
        #[arg(long, default_value = "crates/compiler/src/fast/**/*.rs")]
        files: String,
    },
    /// Evaluate random pods against random profiles, different in each run.
    Properties {
        /// Number of random cases.
        #[arg(long, default_value_t = 3000)]
        cases: u32,
        /// Module or test, for example `early`. The default is all of them.
        #[arg(long, default_value = "")]
        only: String,
    },
    /// Compare the answers of another version's policies.
    Compare {
        /// Program `palisade` of the other version.
        #[arg(long)]
        with: PathBuf,
        /// Settings that the other version does not have, for example `scheduling.schedulers,images.redirect`.
        #[arg(long, default_value = "")]
        without: String,
        /// Number of random cases.
        #[arg(long, default_value_t = 10_000)]
        cases: u32,
        /// Seed of the random cases.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Run fuzz tests of parser, checker, evaluator, schemas, webhook and commands (needs nightly Rust).
    Fuzz {
        /// Duration for each target, in seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Targets, separated by commas.
        #[arg(long, value_delimiter = ',', default_values = ["check", "evaluate", "schema", "review", "commands"])]
        targets: Vec<String>,
    },
    /// Check that Flux and Argo CD read the conditions of profiles correctly.
    Kstatus,
    /// Check the page of `palisade report` in a headless Chromium, light and dark, wide and narrow.
    ReportScreens {
        /// Path of Chromium. The default is CHROMIUM, or chromium-headless-shell or chromium on the path.
        #[arg(long)]
        chromium: Option<PathBuf>,
    },
}

pub(crate) fn task(verb: &Verb) -> Result<(), Error> {
    match verb {
        Verb::Mutants { files } => mutants(files)?,
        Verb::Properties { cases, only } => {
            let mut test = cargo("test --workspace --test gate --");
            run(test.arg(format!("properties::{only}")).arg("--nocapture").env("PROPTEST_CASES", cases.to_string()))?;
        }
        Verb::Compare { with, without, cases, seed } => {
            let with = std::path::absolute(with).map_err(|source| shell::Error::File { path: with.clone(), source })?;
            // Unoptimized: the test takes ten minutes of CPU time, as long as the optimization of all crates.
            let mut test = cargo("test --workspace --test gate -- --ignored of_another_version --nocapture");
            test.env("PALISADE_COMPARE_WITH", with).env("PALISADE_COMPARE_WITHOUT", without);
            test.env("PALISADE_COMPARE_CASES", cases.to_string()).env("PALISADE_COMPARE_SEED", seed.to_string());
            run(&mut test)?;
        }
        Verb::Fuzz { seconds, targets } => fuzz_targets(*seconds, targets)?,
        Verb::Kstatus => {
            run(&mut go("tests/kstatus", "vet ."))?;
            // The tests read files of the project, which Go's cache of results does not cover.
            run(&mut go("tests/kstatus", "test -count=1 ."))?;
        }
        Verb::ReportScreens { chromium } => {
            let names = ["chromium-headless-shell", "chromium"];
            let Some(chromium) = optional(chromium.as_deref(), "CHROMIUM", &names) else {
                println!("skipped: no chromium-headless-shell and no chromium; CHROMIUM names a program");
                return Ok(());
            };
            let mut test = cargo("test --workspace --test screens -- --nocapture");
            test.env("PALISADE_CHROMIUM", chromium).env("PALISADE_SCREENS", target().join("report-screens"));
            run(&mut test)?;
        }
    }
    Ok(())
}

fn mutants(files: &str) -> Result<(), shell::Error> {
    let (program, out) = (MUTANTS.install()?, target().join("mutants"));
    directory(&out, true)?;
    let mutants = || {
        let mut command = command(program.as_path());
        command.arg("mutants");
        command
    };
    println!("First by the tests of the compiler, in seconds. The tests of the gate try surviving mutants.");
    let mut first = mutants();
    first.args(["--jobs", "2", "--file", files, "--output"]).arg(&out).args(["--", "--lib", "--test=compiler"]);
    let ended = status(&mut first)?;
    // 2: a mutant survived; 3: a test timed out.
    if !matches!(ended.code(), Some(0 | 2 | 3)) {
        return Err(shell::Error::Invalid(format!("cargo mutants failed: {ended}")));
    }
    let mut second = mutants();
    second.args(["--iterate", "--file", files, "--output"]).arg(&out);
    run(second.args(["--test-package", "palisade-gate", "--", "--test=gate", "catalogue::"]))
}

/// libFuzzer stops at a panic, at an input that exceeds its time limit, and beyond its memory limit. It stores the input in
/// fuzz/artifacts, and the next run tries it first.
fn fuzz_targets(seconds: u64, targets: &[String]) -> Result<(), Error> {
    let (program, seeds) = (FUZZ.install()?, target().join("fuzz-seeds"));
    directory(&seeds, true)?;
    fuzz::seeds(&seeds)?;
    for name in targets {
        let [corpus, artifacts] = ["corpus", "artifacts"].map(|kind| format!("fuzz/{kind}/{name}"));
        for path in [&corpus, &artifacts] {
            directory(&root().join(path), false)?;
        }
        let words = seeds.join(if name == "review" { "reviews" } else { "expressions" });
        let mut fuzz = command(program.as_path());
        fuzz.env("RUSTUP_TOOLCHAIN", "nightly").args(["fuzz", "run", "--sanitizer", "none", "--target-dir"]);
        fuzz.arg(target().join("fuzz")).arg(name).arg(corpus);
        // A command is slow: reading thousands of seeds would leave no time to change them. Its inputs are the seeds. It
        // compiles and checks a profile within its limits, and is too slow for inputs that grow bit by bit.
        let limits = if name == "commands" {
            ["-timeout=5", "-rss_limit_mb=1024", "-len_control=0"]
        } else {
            fuzz.arg(&words);
            ["-timeout=10", "-rss_limit_mb=2048", "-len_control=10"]
        };
        fuzz.arg(artifacts).args(["--", &format!("-max_total_time={seconds}"), "-max_len=10000"]).args(limits);
        fuzz.arg(format!("-dict={}", words.with_extension("dict").display())).arg("-print_final_stats=1");
        run(&mut fuzz)?;
    }
    Ok(())
}
