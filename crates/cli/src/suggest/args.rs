//! The command line of `palisade suggest`.

use clap::ValueEnum;
use k8s_openapi::jiff::Timestamp;

use crate::{
    evaluation_inputs::SourceArgs,
    options::{self, INPUT, OUTPUT},
    parameters::ParamArgs,
};

const EXAMPLES: &str = "\
Examples:
  palisade suggest --live
  palisade suggest --live --profile next.yaml        # for a profile that is not in the cluster
  palisade suggest --dump cluster/ -o json
  palisade suggest objects.yaml --namespaces namespaces.yaml --profile profile.yaml
  palisade suggest --live -o yaml > next.yaml        # print the changed profiles
  palisade diff next.yaml --live                     # preview their effect

It is read-only. --live requires permission to list profiles, namespaces, exceptions, pods, workloads and the other \
kinds that the profiles evaluate.

Exit codes: 0 success, also without a proposal, 2 could not run.";

/// The arguments of `palisade suggest`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("namespaces", |arg| arg.requires("files")))]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(false).args(["live", "dump", "files"]))]
pub struct SuggestArgs {
    /// Files, directories, or - for standard input, with cluster objects: pods, workloads, other evaluated objects,
    /// Namespaces, ToolSecurityExceptions and profiles.
    #[arg(id = "files", value_name = "FILE|DIR")]
    pub files: Vec<String>,
    /// File or directory with profiles that replace those of the cluster or of the files. Repeatable.
    #[arg(short = 'p', long = "profile", value_name = "FILE|DIR", help_heading = INPUT)]
    pub profiles: Vec<String>,
    #[command(flatten)]
    pub params: ParamArgs,
    /// Time of the evaluation, for example 2026-11-25T08:00:00Z. Exceptions that end before it are not applied. The
    /// default is now.
    #[arg(long, value_name = "TIME", value_parser = options::time)]
    pub time: Option<Timestamp>,
    /// Maximum number of suggestions, and of workloads listed for each.
    #[arg(long, value_name = "COUNT", default_value_t = 10, help_heading = OUTPUT)]
    pub top: usize,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "human", help_heading = OUTPUT)]
    pub output: SuggestFormat,
    #[command(flatten)]
    pub source: SourceArgs,
}

/// The format of suggestions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SuggestFormat {
    /// Text.
    Human,
    /// One object with everything, for programs, and a merge patch for each profile.
    Json,
    /// The profiles with all changes that have no caution and help several namespaces.
    Yaml,
}
