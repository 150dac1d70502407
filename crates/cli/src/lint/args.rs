//! The command line of `palisade lint`.

use clap::ValueEnum;
use palisade_cel::Minor;

use crate::{
    findings::Output,
    input::UnevaluatedArgs,
    options::{OUTPUT, kube_version_help},
};

/// Heading of options about rules.
const RULES: &str = "Rules";

const EXAMPLES: &str = "\
Examples:
  palisade lint policies/
  helm template . | palisade lint -
  kustomize build . | palisade lint --kube-version 1.33 --fail-on warning -
  palisade lint -o human -o sarif=lint.sarif policies/
  palisade lint --allow blocks-finalizers --deny type-check policies/
  palisade lint --explain blocks-finalizers

Defaults for these options come from the file .palisade.yaml in the working directory:
  kubeVersion: 1.36
  output: [human, github]
  lint:
    allow: [policy-without-binding]
    deny: [type-check]
    failOn: warning

The annotation toolsecurity.dev/lint-ignore: \"id, id\" of an object disables these rules for that object.

Exit codes: 0 no finding, 1 a finding at or above --fail-on, 2 could not run, or a document is not a Kubernetes \
object.";

/// The arguments of `palisade lint`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct LintArgs {
    /// Policies: YAML or JSON files; directories, of which all *.yaml, *.yml and *.json are read; or - for standard
    /// input.
    #[arg(value_name = "FILE|DIR", required_unless_present_any = ["list", "explain"])]
    pub files: Vec<String>,
    #[arg(long, value_name = "VERSION", help = format!("{}; the default is {}", kube_version_help(), Minor::DEFAULT))]
    pub kube_version: Option<Minor>,
    /// Output format: human (the default), json, sarif, junit or github. Append =FILE to write to a file. Repeatable.
    #[arg(short, long, value_name = "FORMAT[=FILE]", help_heading = OUTPUT)]
    pub output: Vec<Output>,
    /// Lowest severity for which the exit code is 1; the default is error.
    #[arg(long, value_name = "SEVERITY", help_heading = OUTPUT)]
    pub fail_on: Option<FailOn>,
    /// File with defaults for these options, instead of .palisade.yaml.
    #[arg(long, value_name = "FILE")]
    pub config: Option<String>,
    /// Rules to disable, separated by commas.
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = RULES)]
    pub allow: Vec<String>,
    /// Rules whose findings become warnings, separated by commas.
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = RULES)]
    pub warn: Vec<String>,
    /// Rules whose findings become errors, separated by commas.
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = RULES)]
    pub deny: Vec<String>,
    #[command(flatten)]
    pub unevaluated: UnevaluatedArgs,
    /// List all rules.
    #[arg(long, help_heading = RULES)]
    pub list: bool,
    /// Explain a rule, with an example.
    #[arg(long, value_name = "ID", help_heading = RULES)]
    pub explain: Option<String>,
}

/// The lowest severity of a finding for which the exit code is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Objects that the API server rejects, or that lock a cluster.
    Error,
    /// Also findings that need attention.
    Warning,
    /// Any finding.
    Info,
    /// No finding.
    Never,
}
