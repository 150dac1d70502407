//! `palisade lint`: finds errors and dangerous settings in admission policies.

mod args;
mod formats;
mod human;
mod json;

use std::io;

use palisade_cel::Minor;
use palisade_lint::{Level, Options, Report, UnknownRule, lint, unreadable};
use palisade_manifest::{Severity, objects};

use args::FailOn;
pub use args::LintArgs;

use crate::{
    config::Config,
    files,
    findings::{Format, Output},
    input, output,
    report::{self, Failure, Problem},
    style::Style,
};

/// Runs the command.
pub fn run(args: &LintArgs) -> u8 {
    match found(args) {
        Ok(true) => 1,
        Ok(false) => 0,
        Err(failure) => report::exit(Err(failure)),
    }
}

/// Lints and prints. Returns whether the findings are a failure.
fn found(args: &LintArgs) -> Result<bool, Failure> {
    if args.list {
        return output::print(&human::list()).map(|()| false);
    }
    let config = Config::read(args.config.as_deref())?;
    let fail_on = config.value("lint.failOn", config.content.lint.fail_on.as_ref())?;
    let options = options(args, &config)?;
    if let Some(id) = &args.explain {
        let rule = options.rule(id).map_err(|error| wrong(&error))?;
        return output::print(&human::explain(rule)).map(|()| false);
    }
    let (report, unread) = judged(&args.files, &options)?;
    let shared = formats::shared(&report);
    let mut outputs = if args.output.is_empty() { config.output } else { args.output.clone() };
    if outputs.is_empty() {
        outputs.push(Output { format: Format::Human, file: None });
    }
    for output in &outputs {
        let style = if output.file.is_none() { Style::of(&io::stdout()) } else { Style::PLAIN };
        output.write(&shared, [&|| human::text(&report, style), &|| json::text(&report)])?;
    }
    let least = match args.fail_on.or(fail_on).unwrap_or(FailOn::Error) {
        FailOn::Error => Severity::Error,
        FailOn::Warning => Severity::Warning,
        FailOn::Info => Severity::Info,
        FailOn::Never => return args.unevaluated.settle(unread).map(|()| false),
    };
    args.unevaluated.settle(unread)?;
    Ok(report.worst().is_some_and(|worst| worst >= least))
}

/// The options. The level of a rule in an argument takes precedence over the file.
fn options(args: &LintArgs, config: &Config) -> Result<Options, Failure> {
    let minor = args.kube_version.or(config.kube_version).unwrap_or(Minor::DEFAULT);
    let mut options = Options { minor, ..palisade_profiles::lint::options() };
    let file = &config.content.lint;
    for (key, ids, level) in
        [("allow", &file.allow, Level::Allow), ("warn", &file.warn, Level::Warn), ("deny", &file.deny, Level::Deny)]
    {
        for (index, id) in ids.iter().enumerate() {
            let place = format!("lint.{key}[{index}]");
            let unknown = |error: UnknownRule| config.problem(&place, format!("{place}: {error}"));
            let rule = options.rule(id).map_err(|error| Failure::CouldNotRun(vec![unknown(error)]))?;
            options.levels.set(rule, level);
        }
    }
    for (ids, level) in [(&args.allow, Level::Allow), (&args.warn, Level::Warn), (&args.deny, Level::Deny)] {
        for id in ids {
            let rule = options.rule(id).map_err(|error| wrong(&error))?;
            options.levels.set(rule, level);
        }
    }
    Ok(options)
}

fn wrong(error: &dyn std::fmt::Display) -> Failure {
    Failure::CouldNotRun(vec![Problem::new(error.to_string())])
}

/// Lints all objects of all files. Also returns the documents that are not objects.
fn judged(paths: &[String], options: &Options) -> Result<(Report, Vec<Problem>), Failure> {
    let mut sources = Vec::new();
    let mut bad = Vec::new();
    for path in files::expand(paths)? {
        let (source, problem) = files::read_or_problem(&path)?;
        bad.extend(problem.and_then(|problem| unreadable(&source, &problem, options)));
        sources.push(source);
    }
    let (mut all, mut unread) = (Vec::new(), Vec::new());
    for source in &sources {
        match objects(source) {
            Ok(found) => {
                for object in found {
                    match object.refusal() {
                        Some(problem) => unread.push(problem),
                        None => all.push(object),
                    }
                }
            }
            Err(problem) => bad.extend(unreadable(source, &input::of_helm(source, problem), options)),
        }
    }
    if all.is_empty() && bad.is_empty() && unread.is_empty() {
        unread.push(Problem::new("at least one object is required in the files"));
    }
    let mut report = lint(&all, options);
    report.findings.extend(bad);
    // Stable: of one file, the findings are in order already.
    report.findings.sort_by(|a, b| a.source.name().cmp(b.source.name()));
    Ok((report, unread))
}
