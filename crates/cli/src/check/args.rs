//! The command line of `palisade check`.

use clap::ValueEnum;
use palisade_cel::Minor;

use crate::{
    cluster::ClusterArgs,
    findings::Output,
    input::UnevaluatedArgs,
    options::{INPUT, OUTPUT, kube_version_help},
    parameters::ParamArgs,
};

const EXAMPLES: &str = "\
Examples:
  palisade check --profile profiles/ --namespace tool-a --param uid=50001 manifests/
  palisade check --profile profiles/ --namespaces namespace.yaml --explain pod.yaml
  helm template . | palisade check --profile profile.yaml --namespaces namespace.yaml -
  kustomize build . | palisade check --live -
  palisade check -o human -o sarif=check.sarif deployment.yaml

Defaults for these options come from the file .palisade.yaml in the working directory:
  profiles: [profiles/]
  namespace: tool-a
  parameters: {uid: 50001}
  kubeVersion: 1.36
  output: [human, github]
  failOn: warning

Exit codes: 0 no violation, 1 a violation at or above --fail-on, 2 could not run, or an object could not be \
evaluated; all other results are printed.";

/// The arguments of `palisade check`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    /// Manifests: YAML or JSON files; directories, of which all *.yaml, *.yml and *.json are read; or - for standard
    /// input.
    #[arg(value_name = "FILE|DIR", required = true)]
    pub files: Vec<String>,
    /// File or directory with profiles. Repeatable.
    #[arg(short = 'p', long = "profile", value_name = "FILE|DIR", help_heading = INPUT)]
    pub profiles: Vec<String>,
    /// Use the profiles, namespaces and approved exceptions of the cluster. Requires permission to read them.
    #[arg(long, help_heading = INPUT, conflicts_with_all = ["profiles", "dump"])]
    pub live: bool,
    /// Use the profiles, namespaces and approved exceptions in a directory from palisade dump. Profiles of --profile
    /// replace those of the dump.
    #[arg(long, value_name = "DIR", help_heading = INPUT)]
    pub dump: Option<String>,
    /// Namespace of objects that do not specify one. With --live, the default is the namespace of the context.
    #[arg(short, long, value_name = "NAME", help_heading = INPUT)]
    pub namespace: Option<String>,
    /// File with Namespaces. Their labels and annotations determine the profiles that select them, and the parameters.
    /// Namespaces among the manifests are used too. A namespace that is not found is treated as if each profile
    /// selected it.
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub namespaces: Option<String>,
    #[command(flatten)]
    pub params: ParamArgs,
    /// File with defaults for these options, instead of .palisade.yaml.
    #[arg(long, value_name = "FILE")]
    pub config: Option<String>,
    #[arg(
        long,
        value_name = "VERSION",
        help = format!("{}; with --live, the default is the version of the cluster, otherwise {}", kube_version_help(), Minor::DEFAULT)
    )]
    pub kube_version: Option<Minor>,
    /// Output format: human (the default), json, sarif, junit or github. Append =FILE to write to a file. Repeatable.
    #[arg(short, long, value_name = "FORMAT[=FILE]", help_heading = OUTPUT)]
    pub output: Vec<Output>,
    /// Lowest severity for which the exit code is 1; the default is error. An error is a violation that is denied. A
    /// warning is a violation of a profile at the stage Warn or Audit.
    #[arg(long, value_name = "SEVERITY", help_heading = OUTPUT)]
    pub fail_on: Option<FailOn>,
    /// For each object, also print the profiles that select it and the fields that they set. Admitted objects are
    /// printed, too.
    #[arg(long, help_heading = OUTPUT)]
    pub explain: bool,
    #[command(flatten)]
    pub unevaluated: UnevaluatedArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The lowest severity of a violation for which the exit code is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Violations that the API server denies.
    Error,
    /// Also violations that the API server only reports.
    Warning,
    /// None.
    Never,
}
