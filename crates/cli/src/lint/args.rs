//! The command line of `palisade lint`.

use clap::ValueEnum;
use palisade_cel::Minor;

use crate::{findings::Output, options::kube_version_help};

const EXAMPLES: &str = "\
Examples:
  palisade lint policies/
  helm template . | palisade lint -
  kustomize build . | palisade lint --kube-version 1.33 --fail-on warning -
  palisade lint -o human -o sarif=lint.sarif policies/
  palisade lint --allow blocks-finalizers --deny type-check policies/
  palisade lint --explain blocks-finalizers

The file .palisade.yaml of the working directory has defaults for these options:
  kubeVersion: 1.36
  output: [human, github]
  lint:
    allow: [policy-without-binding]
    deny: [type-check]
    failOn: warning

The annotation toolsecurity.dev/lint-ignore: \"id, id\" of an object turns rules off for that object.

Exit codes: 0 no finding, 1 a finding at or above --fail-on, 2 could not run.";

/// The arguments of `palisade lint`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct LintArgs {
    /// YAML or JSON files; directories, of which lint reads all *.yaml, *.yml and *.json; or - for standard input.
    #[arg(value_name = "FILE|DIR", required_unless_present_any = ["list", "explain"])]
    pub files: Vec<String>,
    #[arg(long, value_name = "VERSION", help = format!("{}; by default {}", kube_version_help(), Minor::DEFAULT))]
    pub kube_version: Option<Minor>,
    /// The output format: human (the default), json, sarif, junit or github; with =FILE written to a file. May be given
    /// several times.
    #[arg(short, long, value_name = "FORMAT[=FILE]")]
    pub output: Vec<Output>,
    /// The lowest severity for which the exit code is 1; by default error.
    #[arg(long, value_name = "SEVERITY")]
    pub fail_on: Option<FailOn>,
    /// The file with defaults for these options, in place of .palisade.yaml.
    #[arg(long, value_name = "FILE")]
    pub config: Option<String>,
    /// Rules to turn off, separated by commas.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// Rules whose findings become warnings.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub warn: Vec<String>,
    /// Rules whose findings become errors.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub deny: Vec<String>,
    /// Print all rules.
    #[arg(long)]
    pub list: bool,
    /// Explain a rule, with an example.
    #[arg(long, value_name = "ID")]
    pub explain: Option<String>,
}

/// From which severity on findings are a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// The API server rejects it, or it locks a cluster.
    Error,
    /// Also what somebody should look at.
    Warning,
    /// Any finding.
    Info,
    /// The exit code is 1 for no finding.
    Never,
}
