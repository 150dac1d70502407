//! The command line of `palisade explain`.

use clap::ValueEnum;

const EXAMPLES: &str = "\
Examples:
  palisade explain --pod pod.yaml --profile profile.yaml
  kubectl get namespace tool-a -o yaml | palisade explain --pod pod.yaml --profile profile.yaml --namespace -

Exit codes: 0 each pod is admitted, 1 one is refused or a profile is wrong, 2 could not run.";

/// The arguments of `palisade explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ExplainArgs {
    /// YAML or JSON file with one or more Pods; - is standard input.
    #[arg(long, value_name = "FILE")]
    pub pod: String,
    /// File with the profiles.
    #[arg(long, value_name = "FILE")]
    pub profile: String,
    /// File with the pod's Namespace, which decides which profiles the pod meets and what their parameters are. Without
    /// it the pod meets all of them.
    #[arg(long, value_name = "FILE")]
    pub namespace: Option<String>,
    /// How to print.
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub output: ExplainFormat,
}

/// How an explanation is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// Text.
    Human,
    /// A document for each pod.
    Yaml,
    /// One object with a list of pods.
    Json,
}
