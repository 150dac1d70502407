//! The command line of `palisade explain`.

use clap::ValueEnum;

const EXAMPLES: &str = "\
Examples:
  palisade explain --pod pod.yaml --profile profile.yaml
  kubectl get ns tool-a -o yaml | palisade explain --pod pod.yaml --profile p.yaml --namespace -

Exit codes: 0 each pod is admitted, 1 a pod is denied or a profile is rejected, 2 could not run.";

/// The arguments of `palisade explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ExplainArgs {
    /// YAML or JSON file with one or more Pods, or a directory of such files; - is standard input.
    #[arg(long, value_name = "FILE|DIR")]
    pub pod: String,
    /// YAML or JSON file with one or more profiles, or a directory of such files; - is standard input.
    #[arg(long, value_name = "FILE|DIR")]
    pub profile: String,
    /// YAML or JSON file with the pod's Namespace, which decides which profiles select the pod and which values their
    /// parameters have, and with the ToolSecurityExceptions that are asked for there; - is standard input. Without it, all
    /// profiles select the pod.
    #[arg(long, value_name = "FILE")]
    pub namespace: Option<String>,
    /// The output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub output: ExplainFormat,
}

/// The format of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// For people.
    Human,
    /// A document for each pod.
    Yaml,
    /// One object with a list of pods.
    Json,
}
