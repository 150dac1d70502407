//! The command line of `palisade test`.

use std::{path::PathBuf, str::FromStr};

use palisade_cel::Minor;
use palisade_suite::report::Format;

use crate::options::{PluginArgs, kube_version_help};

const EXAMPLES: &str = "\
Examples:
  palisade test                                  every suite below this directory
  palisade test policies/ --filter replicas      only cases whose suite or name has this in it
  palisade test --coverage --min-coverage 90     what no case exercises; fail below 90 %
  palisade test --mutate                         mistakes in the policies that no case would notice
  palisade test --fail-on-survivors=all          fail on each, also on an unexpected message
  palisade test -o human -o junit=report.xml     several reports at once
  palisade test --watch
  palisade test --init policy.yaml               writes policy.test.yaml

Suites are files named palisade-test.yaml or *.test.yaml; kaptest.yaml and kyverno-test.yaml are read as well. A file \
that is named on the command line may have any name. docs/testing-policies.md describes the format, and \
docs/policy-test.schema.json is its schema.

Exit codes: 0 all cases passed, 1 a case failed (or the coverage is below --min-coverage, or with --fail-on-survivors a \
mutant survived), 2 could not run: there is no suite, or one has a mistake.

The API server's admission plugins run as in palisade eval, whose help lists them.";

/// The arguments of `palisade test`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[command(after_help = EXAMPLES)]
pub struct TestArgs {
    /// Files with suites, and directories to search for them.
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub paths: Vec<PathBuf>,
    /// Run only cases with this text in the name of their suite, its file, or their own.
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Run again whenever a file changes, until Ctrl-C.
    #[arg(long, conflicts_with = "init")]
    pub watch: bool,
    /// The output format: human, json, junit or tap; with =FILE written to a file. May be given several times.
    #[arg(short, long, value_name = "FORMAT[=FILE]", default_value = "human")]
    pub output: Vec<Output>,
    /// Report which validations, mutations, checks of profiles, branches, operands and match rules no case exercised.
    #[arg(long)]
    pub coverage: bool,
    /// Fail if less of the policies and profiles is exercised, in percent. Implies --coverage.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub min_coverage: Option<f64>,
    /// Mutation testing: change the expressions of policies and custom checks a little, and report the changes that no
    /// case notices; the same for messages and reasons, counted apart.
    #[arg(long)]
    pub mutate: bool,
    /// Fail if a mutant of an expression survives; with =all also if one of a message does. Implies --mutate.
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "expressions")]
    pub fail_on_survivors: Option<Survivors>,
    #[arg(long, value_name = "VERSION", default_value_t = Minor::DEFAULT, help = format!("{}, where a suite names none", kube_version_help()))]
    pub kube_version: Minor,
    #[command(flatten)]
    pub plugins: PluginArgs,
    /// List passing cases, too.
    #[arg(short, long)]
    pub verbose: bool,
    /// How many threads to use; by default as many as there are processors.
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<std::num::NonZeroUsize>,
    /// Write a suite for the policies or profiles in a file beside it, to begin with.
    #[arg(long, value_name = "POLICY", conflicts_with_all = ["filter", "coverage", "mutate", "paths"])]
    pub init: Option<PathBuf>,
}

/// Which survivors are a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Survivors {
    /// Mutants of expressions that decide who is admitted, or that mutate objects.
    Expressions,
    /// Also mutants of messages and reasons.
    All,
}

/// A report and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// How it is written.
    pub format: Format,
    /// The file; standard output if there is none.
    pub file: Option<PathBuf>,
}

impl FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = match text.split_once('=') {
            Some((format, file)) if !file.is_empty() => (format, Some(PathBuf::from(file))),
            Some(_) => return Err("there is no file behind the =".to_owned()),
            None => (text, None),
        };
        let format = match format {
            "human" => Format::Human,
            "json" => Format::Json,
            "junit" => Format::Junit,
            "tap" => Format::Tap,
            _ => return Err("known are human, json, junit and tap".to_owned()),
        };
        Ok(Self { format, file })
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text.trim_end_matches('%').parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=100.0).contains(&percent) { Ok(percent) } else { Err("not between 0 and 100".to_owned()) }
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
