//! Tests on control planes of other minor versions of Kubernetes, and their results in `docs/versions.md`.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use clap::{Subcommand, ValueEnum};

use crate::{
    project::root,
    scenarios::LARGE,
    shell::{Error, build_all, built, cargo, command, output, run},
};

/// The page with the results.
const PAGE: &str = "docs/versions.md";
/// The head of its table of results.
const HEAD: &str = "| version | demo | scenarios | offline answers | conformance | attacks |";
/// The modules of `tests/apiserver/tests` that compare offline answers with those of the API server.
const OFFLINE: [&str; 8] =
    ["admission::", "catalogue::", "customs::", "gate::", "plugins::", "policies::", "stored::", "validation::"];

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Build control planes of other minor versions, run the demo and all tests on them, or upgrade through them.
    Minors {
        /// The task. `test` builds, too, and writes the results to `docs/versions.md`; `upgrade` replaces the programs of a
        /// control plane by those of each minor in turn, while pods are created.
        task: Task,
        /// Minor versions, separated by commas.
        #[arg(long, value_name = "MINORS", value_delimiter = ',', required = true)]
        minors: Vec<String>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Task {
    Build,
    Test,
    Upgrade,
}

/// Returns whether all tests have passed.
pub(crate) fn task(verb: &Verb) -> Result<bool, Error> {
    let Verb::Minors { task, minors } = verb;
    if let Task::Build = task {
        run(&mut cargo("build --quiet -p palisade-controlplane"))?;
        minors.iter().try_for_each(|minor| build(minor).map(drop))?;
        return Ok(true);
    }
    build_all()?;
    if let Task::Upgrade = task {
        minors.iter().try_for_each(|minor| build(minor).map(drop))?;
        let mut scenario = cargo("test --workspace --test apiserver upgrades_through_minors");
        return Ok(run_on("", scenario.env("PALISADE_UPGRADE", minors.join(",")))?.passed);
    }
    let mut passed = true;
    for minor in minors {
        passed &= test(minor)?;
    }
    Ok(passed)
}

/// Builds a control plane, and returns the version of its Kubernetes.
fn build(minor: &str) -> Result<String, Error> {
    let program = output(command(built("controlplane")).args(["build", "--minor", minor]))?;
    let version = output(command(program).args(["kube-apiserver", "--version"]))?;
    Ok(version.trim_start_matches("Kubernetes v").to_owned())
}

/// Runs all tests on a minor, and writes the results.
fn test(minor: &str) -> Result<bool, Error> {
    let version = build(minor)?;
    let begin = Instant::now();
    let demo = run_on(minor, command(built("palisade-demo")).arg("--once"))?;
    let demo_time = begin.elapsed().as_secs();
    // Side by side, as in `make test-all`: one half uses a core while the other waits.
    let (scenarios, others) = thread::scope(|scope| {
        let others = scope.spawn(|| {
            let conformance = run_on(minor, &mut cargo("test --workspace --test conformance"))?;
            Ok::<_, Error>((conformance, run_on(minor, &mut cargo("test --workspace --test redteam"))?))
        });
        (run_on(minor, &mut cargo("test --workspace --test apiserver")), others.join())
    });
    let scenarios = scenarios?;
    let (conformance, attacks) = others.map_err(|_| Error::Invalid("a thread panicked".to_owned()))??;
    let cells = [
        version,
        if demo.passed { format!("passed in {demo_time} s") } else { "failed".to_owned() },
        scenarios.tests(),
        scenarios.offline(),
        conformance.fixtures(),
        attacks.tests(),
    ];
    let row = format!("| {} |", cells.join(" | "));
    println!("{HEAD}\n{row}");
    let path = root().join(PAGE);
    let failed = |source| Error::File { path: path.clone(), source };
    let page = fs::read_to_string(&path).map_err(failed)?;
    let page = with_row(&page, minor, &row).ok_or_else(|| Error::Invalid(format!("{PAGE} has no table: {HEAD}")))?;
    fs::write(&path, page).map_err(failed)?;
    Ok([demo, scenarios, conformance, attacks].iter().all(|one| one.passed))
}

/// A program that has ended.
struct Ended {
    passed: bool,
    lines: Vec<String>,
}

/// Runs a program on a minor, and prints and keeps its output.
fn run_on(minor: &str, command: &mut Command) -> Result<Ended, Error> {
    // As `make test`: with all modules, and with less garbage collection.
    command.env("PALISADE_MINOR", minor).env("PALISADE_EXPECT", "modules").env("GOGC", "400").env(LARGE, "1");
    let what = format!("{command:?}");
    let failed = |source| Error::Start { command: what.clone(), source };
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut lines = Vec::new();
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
        let line = line.map_err(failed)?;
        println!("{line}");
        lines.push(line);
    }
    Ok(Ended { passed: child.wait().map_err(failed)?.success(), lines })
}

impl Ended {
    /// The numbers of the tests, from `test result: ok. 40 passed; 0 failed; 2 ignored; ...`.
    fn tests(&self) -> String {
        let counts = self.lines.iter().rev().find_map(|line| line.strip_prefix("test result: ")?.split_once(". "));
        let Some((_, counts)) = counts else { return "no result".to_owned() };
        let counts = counts.replace("ignored", "skipped");
        let counts: Vec<_> = counts.split("; ").take(3).filter(|count| !count.starts_with("0 ")).collect();
        counts.join(", ")
    }

    /// The number of comparisons with offline answers that passed, of those that ran.
    fn offline(&self) -> String {
        let mut counts = [0, 0];
        for line in &self.lines {
            let Some((name, result)) =
                line.strip_prefix("test [").and_then(|rest| rest.split_once("] ")?.1.split_once(" ... "))
            else {
                continue;
            };
            if OFFLINE.iter().any(|module| name.trim().starts_with(module)) && !result.starts_with("ignored") {
                counts[0] += usize::from(result == "ok");
                counts[1] += 1;
            }
        }
        format!("{} of {}", counts[0], counts[1])
    }

    /// The number of fixtures with the right answer, from the summary of the suite.
    fn fixtures(&self) -> String {
        let summary = self.lines.iter().find_map(|line| line.strip_prefix("conformance: "));
        let number = |text: &str, after: &str| Some(text.split_once(after)?.0.rsplit(' ').next()?.to_owned());
        let numbers = summary.and_then(|text| Some((number(text, " right")?, number(text, " fixtures")?)));
        numbers.map_or_else(|| "no result".to_owned(), |(right, all)| format!("{right} of {all}"))
    }
}

/// The page with this row as the row of its minor.
fn with_row(page: &str, minor: &str, row: &str) -> Option<String> {
    let mut lines: Vec<&str> = page.lines().collect();
    let first = lines.iter().position(|line| *line == HEAD)? + 2;
    let end = first + lines[first..].iter().take_while(|line| line.starts_with('|')).count();
    let of = |line: &str| line.trim_start_matches("| ").split('.').take(2).map(str::to_owned).collect::<Vec<_>>();
    let own: Vec<_> = minor.split('.').map(str::to_owned).collect();
    if let Some(place) = lines[first..end].iter().position(|line| of(line) == own) {
        lines[first + place] = row;
    } else {
        let place = lines[first..end].iter().take_while(|line| of(line) < own).count();
        lines.insert(first + place, row);
    }
    Some(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(text: &str) -> Ended {
        Ended { passed: true, lines: text.lines().map(str::to_owned).collect() }
    }

    #[test]
    fn a_row_replaces_the_row_of_its_minor() {
        let page = format!("x\n\n{HEAD}\n|---|\n| 1.33.13 | a |\n| 1.36.1 | b |\n\n| 1.35.1 | of another table |\n");
        let replaced = with_row(&page, "1.33", "| 1.33.14 | c |").unwrap();
        assert_eq!(replaced, page.replace("| 1.33.13 | a |", "| 1.33.14 | c |"));
        for (minor, before) in [("1.32", "| 1.33.13"), ("1.35", "| 1.36.1"), ("1.37", "\n| 1.35.1")] {
            let row = format!("| {minor}.0 | new |");
            assert_eq!(with_row(&page, minor, &row).unwrap(), page.replacen(before, &format!("{row}\n{before}"), 1));
        }
        assert_eq!(with_row("no table", "1.33", "| 1.33.13 |"), None);
    }

    #[test]
    fn results_are_read_from_the_output_of_the_tests() {
        let tests = ended(
            "test [1.33] gate::a        ... ok\ntest [1.33] stored::b ... FAILED\ntest [1.33] plugins::c ... ignored, x\n\
             test [1.33] lint::d ... ok\n\ntest result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out",
        );
        assert_eq!(tests.tests(), "2 passed, 1 failed, 1 skipped");
        assert_eq!(tests.offline(), "1 of 2");
        assert_eq!(ended("test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured").tests(), "7 passed");
        let suite = ended("conformance: 9074 fixtures (4537 pods, 4537 controllers; 1 denied), 9072 right, 2 wrong");
        assert_eq!(suite.fixtures(), "9072 of 9074");
        assert_eq!(ended("killed").fixtures(), "no result");
        assert_eq!(ended("killed").tests(), "no result");
    }
}
