//! The command line of `palisade test`.

use std::{path::PathBuf, str::FromStr};

use palisade_cel::Minor;
use palisade_policy_test::report::Format;

use crate::options::{OUTPUT, PluginArgs, kube_version_help};

/// Heading of options that measure suites.
const COVERAGE: &str = "Coverage and mutation testing";

const EXAMPLES: &str = "\
Examples:
  palisade test                                  run all suites below this directory
  palisade test policies/ --filter replicas      run cases whose suite or name contains this
  palisade test --coverage --min-coverage 90     report coverage; fail below 90 %
  palisade test --mutate                         find errors in policies that no case detects
  palisade test --fail-on-survivors=all          fail on survivors, also of messages
  palisade test -o human -o junit=report.xml     write several reports
  palisade test --watch
  palisade test --init policy.yaml               writes policy.test.yaml

Suites are files named palisade-test.yaml or *.test.yaml. kaptest.yaml and kyverno-test.yaml are read as well. A file \
on the command line may have any name. docs/testing-policies.md documents the format, and \
docs/policy-test.schema.json is its schema.

Exit codes: 0 all cases passed, 1 a case failed (or the coverage is below --min-coverage, or with \
--fail-on-survivors a mutant survived), 2 could not run, for example because no suite was found or a suite has an \
error.

The API server's admission plugins run as in palisade eval. See palisade eval --help for the list.";

/// The arguments of `palisade test`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[command(after_help = EXAMPLES)]
pub struct TestArgs {
    /// Suite files, and directories to search for suites.
    #[arg(value_name = "FILE|DIR", default_value = ".")]
    pub paths: Vec<PathBuf>,
    /// Run only cases whose suite, file or name contains this text.
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Run again when a file changes, until Ctrl-C.
    #[arg(short, long, conflicts_with = "init")]
    pub watch: bool,
    /// Output format: human, json, junit or tap. Append =FILE to write to a file. Repeatable.
    #[arg(short, long, value_name = "FORMAT[=FILE]", default_value = "human", help_heading = OUTPUT)]
    pub output: Vec<Output>,
    /// Report validations, mutations, checks of profiles, branches, operands and match rules that no case exercised.
    #[arg(long, help_heading = COVERAGE)]
    pub coverage: bool,
    /// Fail if the coverage of policies and profiles is lower, in percent. Implies --coverage.
    #[arg(long, value_name = "PERCENT", value_parser = percent, help_heading = COVERAGE)]
    pub min_coverage: Option<f64>,
    /// Mutation testing: make small changes to the expressions of policies and custom checks, and report the changes
    /// that no case detects. Changes of messages and reasons are counted separately.
    #[arg(long, help_heading = COVERAGE)]
    pub mutate: bool,
    /// Fail if a mutant of an expression survives; with =all, also if a mutant of a message survives. Implies --mutate.
    #[arg(
    long,
    value_name = "WHICH",
    num_args = 0..=1,
    require_equals = true,
    default_missing_value = "expressions",
    help_heading = COVERAGE
    )]
    pub fail_on_survivors: Option<Survivors>,
    #[arg(
        long,
        value_name = "VERSION",
        default_value_t = Minor::DEFAULT,
        help = format!("{}, for suites that do not specify one", kube_version_help())
    )]
    pub kube_version: Minor,
    #[command(flatten)]
    pub plugins: PluginArgs,
    /// Also list passing cases.
    #[arg(short, long, help_heading = OUTPUT)]
    pub verbose: bool,
    /// Number of threads. The default is the number of processors.
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<std::num::NonZeroUsize>,
    /// Write an initial suite for the policies or profiles in a file, next to that file.
    #[arg(long, value_name = "POLICY", conflicts_with_all = ["filter", "coverage", "mutate", "paths"])]
    pub init: Option<PathBuf>,
}

/// The survivors for which the exit code is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Survivors {
    /// Mutants of expressions that decide about admission or mutate objects.
    Expressions,
    /// Also mutants of messages and reasons.
    All,
}

/// A report and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// How it is written.
    pub format: Format,
    /// The file, or standard output.
    pub file: Option<PathBuf>,
}

impl FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = match text.split_once('=') {
            Some((format, file)) if !file.is_empty() => (format, Some(PathBuf::from(file))),
            Some(_) => return Err("missing file name after `=`".to_owned()),
            None => (text, None),
        };
        let format = match format {
            "human" => Format::Human,
            "json" => Format::Json,
            "junit" => Format::Junit,
            "tap" => Format::Tap,
            _ => return Err("must be human, json, junit or tap".to_owned()),
        };
        Ok(Self { format, file })
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text.trim_end_matches('%').parse().map_err(|_| "must be a number".to_owned())?;
    if (0.0..=100.0).contains(&percent) { Ok(percent) } else { Err("must be between 0 and 100".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_option_takes_a_format_and_an_optional_file() {
        let output = |format, file: Option<&str>| Ok(Output { format, file: file.map(PathBuf::from) });
        assert_eq!("human".parse::<Output>(), output(Format::Human, None));
        assert_eq!("junit=a=b.xml".parse::<Output>(), output(Format::Junit, Some("a=b.xml")));
        for text in ["", "xml", "junit=", "=x"] {
            assert!(text.parse::<Output>().is_err(), "{text}");
        }
    }

    #[test]
    fn percentages_are_between_0_and_100() {
        assert_eq!(percent("99.5%"), Ok(99.5));
        for text in ["", "x", "-1", "101", "NaN"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
