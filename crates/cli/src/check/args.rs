//! The command line of `palisade check`.

use clap::ValueEnum;
use palisade_cel::Minor;

use crate::{cluster::ClusterArgs, findings::Output, options::kube_version_help};

const EXAMPLES: &str = "\
Examples:
  palisade check --profile profiles/ --namespace tool-a --param uid=50001 manifests/
  helm template . | palisade check --profile profile.yaml --namespaces namespace.yaml -
  kustomize build . | palisade check --live -
  palisade check -o human -o sarif=check.sarif deployment.yaml

The file .palisade.yaml of the working directory has defaults for these options:
  profiles: [profiles/]
  namespace: tool-a
  parameters: {uid: 50001}
  kubeVersion: 1.36
  output: [human, github]
  failOn: warning

Exit codes: 0 all pass, 1 a violation at or above --fail-on, 2 could not run.";

/// The arguments of `palisade check`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    /// YAML or JSON files; directories, of which check reads all *.yaml, *.yml and *.json; or - for standard input.
    #[arg(value_name = "FILE|DIR", required = true)]
    pub files: Vec<String>,
    /// A file with profiles, or a directory of such files; may be given several times.
    #[arg(long = "profile", value_name = "FILE|DIR")]
    pub profiles: Vec<String>,
    /// Take the profiles, namespaces and approved exceptions of the cluster of the kubeconfig. It takes the rights to read them.
    #[arg(long, conflicts_with = "profiles")]
    pub live: bool,
    /// The namespace of objects that do not name one; with --live by default that of the context.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// A file with Namespaces, whose labels and annotations decide which profiles select them, and their parameters. Those
    /// among the manifests count as well. A namespace that is nowhere counts as one that each profile selects.
    #[arg(long, value_name = "FILE")]
    pub namespaces: Option<String>,
    /// The value of a parameter of the profiles, in all namespaces; may be given several times.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// The file with defaults for these options, in place of .palisade.yaml.
    #[arg(long, value_name = "FILE")]
    pub config: Option<String>,
    #[arg(long, value_name = "VERSION", help = format!("{}; with --live by default that of the cluster, or else {}", kube_version_help(), Minor::DEFAULT))]
    pub kube_version: Option<Minor>,
    /// The output format: human (the default), json, sarif, junit or github; with =FILE written to a file. May be given
    /// several times.
    #[arg(short, long, value_name = "FORMAT[=FILE]")]
    pub output: Vec<Output>,
    /// The lowest severity for which the exit code is 1 (by default error): an error is denied, a warning is a violation
    /// where the profile is at the stage Warn or Audit.
    #[arg(long, value_name = "SEVERITY")]
    pub fail_on: Option<FailOn>,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// From which severity on violations are a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// The API server denies it.
    Error,
    /// Also what it only warns of.
    Warning,
    /// The exit code is 1 for no violation.
    Never,
}
