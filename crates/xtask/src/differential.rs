//! Comparisons with the oracle: golden verdicts, and random objects and expressions that both implementations evaluate.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
};

use clap::{Args, Subcommand};
use palisade_cel::Minor;

use crate::{
    agreement, bench, fuzz,
    oracle::{build, oracle},
    project::root,
    shell::{self, cargo, command, directory, file, run, target},
    spell,
};

/// Expressions for one process of the oracle, which bounds its memory.
const PART: usize = 10_000;
/// Processes of the oracle at a time.
const PROCESSES: usize = 2;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Shell(#[from] shell::Error),
    #[error(transparent)]
    Agreement(#[from] palisade_agreement::Error),
    #[error(transparent)]
    Spelling(#[from] spell::Error),
    #[error(transparent)]
    Pods(#[from] fuzz::Error),
    #[error(transparent)]
    Bench(#[from] bench::Error),
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Write the verdicts of k8s.io/pod-security-admission on the pods of the fixtures of all checks.
    Standards,
    /// Compare with kubectl how objects in all spellings of YAML and JSON are read.
    Spellings {
        #[command(flatten)]
        random: Random,
        /// Files or directories with objects. The default is unusual objects.
        objects: Vec<PathBuf>,
    },
    /// Compare both CEL implementations with random expressions.
    FuzzCel(Random),
    /// Compare both CEL implementations with random custom resources; COUNT is the number of CRDs.
    FuzzCustom(Random),
    /// Compare both CEL implementations with the tests of the CEL specification.
    SpecCel,
    /// Measure both CEL implementations with the same expressions.
    BenchCel {
        /// Program of tests/oracle; this build measures. The default builds the program, and measures an optimized build.
        #[arg(long)]
        oracle: Option<PathBuf>,
        /// Number of expressions of the golden files.
        #[arg(long, default_value_t = 200)]
        count: usize,
    },
}

#[derive(Args)]
pub(crate) struct Random {
    /// Number of random inputs.
    #[arg(long, default_value_t = 5000)]
    count: usize,
    /// Seed of the random inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Returns whether both implementations agree.
pub(crate) fn task(verb: &Verb) -> Result<bool, Error> {
    match verb {
        Verb::Standards => standards().map(|()| true),
        Verb::Spellings { random, objects } => spellings(random, objects),
        Verb::FuzzCel(random) => fuzz_cel(random),
        Verb::FuzzCustom(random) => fuzz_custom(random).map(|()| true),
        Verb::SpecCel => {
            let file = target().join("celspec.jsonl");
            run(oracle(&build(Minor::DEFAULT)?, "celspec").arg(&file))?;
            Ok(agreement::specification(&file, Minor::DEFAULT)?)
        }
        Verb::BenchCel { oracle: Some(program), count } => Ok(bench::run(program, *count)?),
        Verb::BenchCel { oracle: None, count } => {
            let mut optimized = cargo("run --release --quiet -p xtask -- bench-cel --count");
            optimized.arg(count.to_string()).arg("--oracle").arg(build(Minor::DEFAULT)?);
            Ok(shell::status(&mut optimized)?.success())
        }
    }
}

fn standards() -> Result<(), Error> {
    let (texts, at) = (root().join("tests/conformance/texts"), target().join("standards"));
    let [pods, verdicts] = ["pods.jsonl", "verdicts.jsonl"].map(|name| at.join(name));
    directory(&at, false)?;
    let path = texts.join("pods.jsonl");
    let listed = fs::read_to_string(&path).map_err(|source| Error::File { path, source })?;
    let written = file(&pods, true)?.write_all((listed + &fuzz::pods()?).as_bytes());
    written.map_err(|source| Error::File { path: pods.clone(), source })?;
    let mut verdict = command("go");
    verdict.current_dir(root().join("tests/conformance")).args(["run", "./texts"]);
    run(verdict.stdin(file(&pods, false)?).stdout(file(&verdicts, true)?))?;
    let golden = file(&texts.join("golden.jsonl.gz"), true)?;
    Ok(run(command("gzip").args(["-n", "-9"]).stdin(file(&verdicts, false)?).stdout(golden))?)
}

fn spellings(random: &Random, objects: &[PathBuf]) -> Result<bool, Error> {
    let at = target().join("spellings");
    let [texts, read] = ["texts.jsonl", "read.jsonl"].map(|name| at.join(name));
    directory(&at, false)?;
    let mut out = io::BufWriter::new(file(&texts, true)?);
    spell::write(&mut out, objects, random.count, random.seed, false)?;
    out.flush().map_err(|source| Error::File { path: texts.clone(), source })?;
    run(oracle(&build(Minor::DEFAULT)?, "read").stdin(file(&texts, false)?).stdout(file(&read, true)?))?;
    Ok(spell::compare(&[read])?)
}

fn fuzz_cel(random: &Random) -> Result<bool, Error> {
    let at = target().join("fuzz-cel");
    directory(&at, true)?;
    let requests = at.join("requests.jsonl");
    let program = build(Minor::DEFAULT)?;
    let generate = format!("generate {} {}", random.seed, random.count);
    run(oracle(&program, &generate).stdout(file(&requests, true)?))?;
    let parts = split(&requests, &at)?;
    let answer = |part: &PathBuf| {
        let answered = part.with_extension("answered");
        let mut command = oracle(&program, "answer");
        run(command.stdin(file(part, false)?).stdout(file(&answered, true)?)).map(|()| answered)
    };
    let waiting = Mutex::new(parts.iter());
    let next = || waiting.lock().ok().and_then(|mut parts| parts.next());
    let worker = || std::iter::from_fn(next).map(answer).collect::<Result<Vec<_>, _>>();
    let answers: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..PROCESSES).map(|_| scope.spawn(worker)).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().map(join).collect()
    });
    let mut files = answers.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    if files.is_empty() {
        return Err(shell::Error::Invalid("no expression was generated".to_owned()).into());
    }
    files.sort();
    Ok(agreement::run(&files, Minor::DEFAULT)?)
}

/// Writes the lines of a file into several files.
fn split(path: &Path, directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    let part = |(index, lines): (usize, &[&str])| {
        let path = directory.join(format!("requests-{index:03}.jsonl"));
        let written = fs::write(&path, lines.concat());
        written.map(|()| path.clone()).map_err(|source| Error::File { path, source })
    };
    lines.chunks(PART).enumerate().map(part).collect()
}

fn fuzz_custom(random: &Random) -> Result<(), Error> {
    let at = target().join("fuzz-custom");
    directory(&at, true)?;
    let lines = at.join("lines.jsonl.gz");
    run(oracle(&build(Minor::DEFAULT)?, &format!("custom {} {}", random.seed, random.count)).arg(&lines))?;
    let mut test = cargo("test -p palisade-admission --test offline -- customs::random --nocapture");
    Ok(run(test.env("CUSTOM_RESOURCES", lines))?)
}
