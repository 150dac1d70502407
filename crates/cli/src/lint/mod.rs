//! `palisade lint`: finds mistakes in admission policies, and what is valid but dangerous.

mod args;
mod formats;
mod human;
mod json;

use std::io;

use palisade_lint::{Level, Options, Report, lint, unreadable};
use palisade_manifest::{Severity, objects};

use args::FailOn;
pub use args::LintArgs;

use crate::{
    files, output,
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
    let options = options(args)?;
    if let Some(id) = &args.explain {
        let rule = options.rule(id).map_err(|error| wrong(&error))?;
        return output::print(&human::explain(rule)).map(|()| false);
    }
    let report = judged(&args.files, &options)?;
    let shared = formats::shared(&report);
    for output in &args.output {
        let style = if output.file.is_none() { Style::of(&io::stdout()) } else { Style::PLAIN };
        output.write(&shared, [&|| human::text(&report, style), &|| json::text(&report)])?;
    }
    let least = match args.fail_on {
        FailOn::Error => Severity::Error,
        FailOn::Warning => Severity::Warning,
        FailOn::Info => Severity::Info,
        FailOn::Never => return Ok(false),
    };
    Ok(report.worst().is_some_and(|worst| worst >= least))
}

fn options(args: &LintArgs) -> Result<Options, Failure> {
    let mut options = Options { minor: args.kube_version, ..palisade_profiles::lint::options() };
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

/// Lints all objects of all files.
fn judged(paths: &[String], options: &Options) -> Result<Report, Failure> {
    let mut sources = Vec::new();
    let mut bad = Vec::new();
    for path in files::expand(paths)? {
        let (source, problem) = files::read(&path)?;
        bad.extend(problem.and_then(|problem| unreadable(&source, &problem, options)));
        sources.push(source);
    }
    let mut all = Vec::new();
    for source in &sources {
        match objects(source) {
            Ok(found) => all.extend(found),
            Err(problem) => {
                let template = source.text().contains("{{") && source.text().contains("}}");
                let problem = if template {
                    let help = "this is a template of Helm, not YAML; render it: helm template . | palisade lint -";
                    problem.help(help)
                } else {
                    problem
                };
                bad.extend(unreadable(source, &problem, options));
            }
        }
    }
    let mut report = lint(&all, options);
    report.findings.extend(bad);
    // Stable: of one file, the findings are in order already.
    report.findings.sort_by(|a, b| a.source.name().cmp(b.source.name()));
    Ok(report)
}
