//! `palisade test`: runs suites of tests of admission policies.

mod args;
mod files;

use std::{fs, num::NonZeroUsize, path::PathBuf, thread, time::Duration};

use palisade_admission::requests::Plugins;
use palisade_policy_test::{
    Server, Suite, coverage,
    mutate::{Baseline, MutationReport},
    report::{Format, Report, SuiteReport},
};
use palisade_profiles::suite::Profiles;

use args::Survivors;
pub use args::TestArgs;

use crate::{
    output,
    parallel::{self, parallel},
    report::{self, Failure, Problem},
};
use files::Disk;

/// The interval of checks for changed files.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Runs the command.
pub fn run(args: &TestArgs) -> Result<(), Failure> {
    if let Some(policy) = &args.init {
        return init(policy, args);
    }
    if !args.watch {
        return once(args, &Disk::default());
    }
    loop {
        let disk = Disk::default();
        if let Err(Failure::Wrong(problems) | Failure::CouldNotRun(problems)) = once(args, &disk) {
            report::tell(&problems);
        }
        let stamps = || disk.stamps(&files::discover(&args.paths).unwrap_or_default());
        let before = stamps();
        report::note("waiting for changes; press Ctrl-C to stop");
        while stamps() == before {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Writes an initial suite for a policy.
fn init(policy: &std::path::Path, args: &TestArgs) -> Result<(), Failure> {
    let source = Disk::default().source(policy)?;
    let file = policy.file_name().unwrap_or_default().to_string_lossy();
    let server = Server { minor: args.kube_version, plugins: Plugins::default(), extension: Some(&Profiles) };
    let text = palisade_policy_test::init::scaffold(&source, &file, &server).map_err(Failure::Wrong)?;
    let target = policy.with_extension("test.yaml");
    let failed = |error: std::io::Error| {
        Failure::CouldNotRun(vec![Problem::new(format!("cannot write {}: {error}", target.to_string_lossy()))])
    };
    let mut file = fs::File::create_new(&target).map_err(failed)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)?;
    output::print(&format!("wrote {}\n", target.to_string_lossy()))
}

/// The API server for the tests.
fn server(args: &TestArgs) -> Result<Server, Failure> {
    let (minor, plugins) = (args.kube_version, args.plugins.plugins()?);
    Ok(Server { minor, plugins, extension: Some(&Profiles) })
}

/// Finds and runs all suites, and writes all reports.
fn once(args: &TestArgs, disk: &Disk) -> Result<(), Failure> {
    let paths = files::discover(&args.paths)?;
    let server = server(args)?;
    let (mut suites, mut problems) = load(&paths, &server, disk);
    if let Some(text) = &args.filter {
        for suite in &mut suites {
            let of_suite = suite.name.contains(text) || suite.source.name().contains(text);
            suite.cases.retain(|case| of_suite || case.name.contains(text));
        }
        suites.retain(|suite| !suite.cases.is_empty());
    }
    if suites.is_empty() && problems.is_empty() {
        let problem = match &args.filter {
            Some(text) => Problem::new(format!("--filter: no case or suite has {text:?} in its name")),
            None => Problem::new("no suite found").help(
                "a suite must be named palisade-test.yaml or *.test.yaml; create one with palisade test --init POLICY",
            ),
        };
        problems.push(problem);
    }
    let report = judge(&suites, args);
    for output in &args.output {
        let text = report.write(output.format, args.verbose);
        match &output.file {
            None => output::print(&text)?,
            Some(file) => fs::write(file, text).map_err(|error| {
                Failure::CouldNotRun(vec![Problem::new(format!("cannot write {}: {error}", file.to_string_lossy()))])
            })?,
        }
    }
    if problems.is_empty() { verdict(&report, args) } else { Err(Failure::CouldNotRun(problems)) }
}

fn load(paths: &[PathBuf], server: &Server, disk: &Disk) -> (Vec<Suite>, Vec<Problem>) {
    let (mut suites, mut problems) = (Vec::new(), Vec::new());
    for path in paths {
        let loaded = disk.source(path).and_then(|source| {
            let found = palisade_policy_test::load(&source, disk, server).map_err(Failure::CouldNotRun)?;
            if found.is_empty() {
                let problem = Problem::new(format!("{}: no suite in this file", source.name()));
                return Err(Failure::CouldNotRun(vec![problem.help("a suite must have kind PolicyTest")]));
            }
            Ok(found)
        });
        match loaded {
            Ok(found) => suites.extend(found),
            Err(Failure::Wrong(found) | Failure::CouldNotRun(found)) => problems.extend(found),
        }
    }
    (suites, problems)
}

/// Runs all cases, and measures coverage and mutants if requested.
fn judge(suites: &[Suite], args: &TestArgs) -> Report {
    let threads = args.jobs.map_or_else(parallel::threads, NonZeroUsize::get);
    let cases: Vec<_> = suites.iter().flat_map(|suite| suite.cases.iter().map(move |case| (suite, case))).collect();
    let mut results = parallel(threads, &cases, |(suite, case)| palisade_policy_test::run(suite, case)).into_iter();
    let mut report = Report::default();
    for suite in suites {
        report.suites.push(SuiteReport {
            name: suite.name.clone(),
            file: suite.source.name().to_owned(),
            notes: suite.notes.clone(),
            results: results.by_ref().take(suite.cases.len()).collect(),
        });
    }
    // Runs of mutants do not count as coverage.
    if args.coverage || args.min_coverage.is_some() {
        let mut all = coverage::Coverage::default();
        for of_suite in parallel(threads, suites, coverage::measure) {
            all.merge(of_suite);
        }
        report.coverage = Some(all);
    }
    if args.mutate || args.fail_on_survivors.is_some() {
        let baselines = parallel(threads, suites, Baseline::new);
        let mutants: Vec<_> = baselines
            .iter()
            .flat_map(|baseline| baseline.mutants().into_iter().map(move |mutant| (baseline, mutant)))
            .collect();
        let outcomes = parallel(threads, &mutants, |(baseline, mutant)| baseline.outcome(mutant));
        let (mut mutation, mut messages) = (MutationReport::default(), MutationReport::default());
        for ((_, mutant), outcome) in mutants.into_iter().zip(outcomes) {
            let of = if mutant.of_message { &mut messages } else { &mut mutation };
            of.add(mutant, outcome);
        }
        (report.mutation, report.messages) = (Some(mutation), Some(messages));
    }
    report
}

/// Fails if a case failed, or if coverage or mutants do not meet the requirements. The report has the details.
fn verdict(report: &Report, args: &TestArgs) -> Result<(), Failure> {
    let mut problems = Vec::new();
    let counts = report.counts();
    let failed = counts.failed + counts.no_verdict > 0;
    if failed && !args.output.iter().any(|output| output.format == Format::Human && output.file.is_none()) {
        problems.push(Problem::new(counts.to_string()));
    }
    if let (Some(least), Some(coverage)) = (args.min_coverage, &report.coverage)
        && coverage.percent() < least
    {
        problems
            .push(Problem::new(format!("the coverage must be at least {least} %, not {:.1} %", coverage.percent())));
    }
    for (what, mutation, counts) in [
        ("mutants", &report.mutation, args.fail_on_survivors.is_some()),
        ("mutants of messages", &report.messages, args.fail_on_survivors == Some(Survivors::All)),
    ] {
        let survivors = mutation.as_ref().map_or(0, |mutation| mutation.survivors().count());
        if counts && survivors > 0 {
            problems.push(Problem::new(format!("surviving {what}: {survivors}")));
        }
    }
    if failed || !problems.is_empty() { Err(Failure::Wrong(problems)) } else { Ok(()) }
}
