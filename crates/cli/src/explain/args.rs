//! The command line of `palisade explain`.

use clap::ValueEnum;

use crate::options::{INPUT, OUTPUT};

const EXAMPLES: &str = "\
Examples:
  palisade explain pod.yaml --profile profile.yaml
  kubectl get ns tool-a -o yaml | palisade explain pod.yaml --profile profile.yaml --namespaces -

Exit codes: 0 each pod is admitted, 1 a pod is denied or a profile is rejected, 2 could not run.";

/// The arguments of `palisade explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ExplainArgs {
    /// Pods: YAML or JSON files, directories of such files, or - for standard input.
    #[arg(value_name = "FILE|DIR", required = true)]
    pub files: Vec<String>,
    /// File or directory with profiles. Repeatable.
    #[arg(short = 'p', long = "profile", value_name = "FILE|DIR", required = true, help_heading = INPUT)]
    pub profiles: Vec<String>,
    /// YAML or JSON file with the Namespace of the pod and its ToolSecurityExceptions; - is standard input. The
    /// Namespace determines the profiles that select the pod, and the values of parameters. Without it, all profiles
    /// select the pod.
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub namespaces: Option<String>,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "human", help_heading = OUTPUT)]
    pub output: ExplainFormat,
}

/// The format of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// Text.
    Human,
    /// One document for each pod.
    Yaml,
    /// One object with a list of pods.
    Json,
}
