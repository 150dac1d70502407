//! The command line of `palisade render`.

use clap::ValueEnum;
use palisade_cel::Minor;

use crate::options::kube_version_help;

const EXAMPLES: &str = "\
Examples:
  palisade render profile.yaml
  palisade render profile.yaml --namespaces namespaces.yaml
  kubectl get namespaces -o yaml | palisade render profile.yaml --namespaces -
  palisade render profile.yaml | kubectl diff -f -
  palisade render profile.yaml --pod pod.yaml --namespaces namespace.yaml -o diff
  palisade render profile.yaml --static > /etc/kubernetes/admission/profile.yaml

Exit codes: 0 success, 1 a profile was rejected, 2 could not run.";

/// The arguments of `palisade render`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RenderArgs {
    /// YAML or JSON file with one or more profiles, or a directory of such files; - is standard input.
    #[arg(value_name = "PROFILE")]
    pub profile: String,
    /// YAML or JSON file with Namespaces, as kubectl get namespaces -o yaml prints them; - is standard input. For each one
    /// that the profile selects, its parameters are printed too.
    #[arg(long, value_name = "FILE")]
    pub namespaces: Option<String>,
    /// Print instead the Pods in this file or directory as the profiles mutate them, with the differences as comments; - is standard
    /// input. A pod is in the namespace that it names, or else in the only one of --namespaces. Without --namespaces
    /// all profiles select it, with made-up values for their parameters.
    #[arg(long, value_name = "FILE|DIR")]
    pub pod: Option<String>,
    /// Print the policies and bindings as an API server reads them from a directory of its own (staticManifestsDir), from
    /// Kubernetes 1.36 on. They are in force without a controller, and nobody can change them through the API. The
    /// profile may have neither parameters nor exceptions.
    #[arg(long = "static", conflicts_with_all = ["namespaces", "pod"])]
    pub fixed: bool,
    #[arg(long, value_name = "VERSION", default_value_t = Minor::DEFAULT, help = kube_version_help())]
    pub kube_version: Minor,
    /// The output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml")]
    pub output: RenderFormat,
}

/// How what a profile becomes is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RenderFormat {
    /// Documents separated by ---.
    Yaml,
    /// One List, which kubectl and jq both read.
    Json,
    /// With --pod: the difference only, as kubectl diff shows it.
    Diff,
}
