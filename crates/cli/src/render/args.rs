//! The command line of `palisade render`.

use clap::ValueEnum;
use palisade_cel::Minor;

use crate::{options::kube_version_help, parameters::ParamArgs};

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
    /// YAML or JSON file with Namespaces, such as the output of kubectl get namespaces -o yaml; - is standard input.
    /// The parameters and the generated objects of each namespace that the profile selects are printed, too.
    #[arg(long, value_name = "FILE")]
    pub namespaces: Option<String>,
    #[command(flatten)]
    pub params: ParamArgs,
    /// Print the mutated Pods of this file or directory instead, with the changes as comments; - is standard input. A
    /// pod is in its own namespace, otherwise in the only namespace of --namespaces. Without --namespaces, all profiles
    /// select it, with sample values of parameters.
    #[arg(long, value_name = "FILE|DIR")]
    pub pod: Option<String>,
    /// Print policies and bindings as static manifests, which an API server reads from a separate directory
    /// (staticManifestsDir). Requires Kubernetes 1.36. They are active without a controller, and cannot be changed
    /// through the API. The profile must have neither parameters nor exceptions.
    #[arg(long = "static", conflicts_with_all = ["namespaces", "pod"])]
    pub fixed: bool,
    #[arg(long, value_name = "VERSION", default_value_t = Minor::DEFAULT, help = kube_version_help())]
    pub kube_version: Minor,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml")]
    pub output: RenderFormat,
}

/// The format of generated objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RenderFormat {
    /// Documents separated by ---.
    Yaml,
    /// One List, for kubectl and jq.
    Json,
    /// With --pod: only the changes, like kubectl diff.
    Diff,
}
