//! The command line of `palisade infer`.

use clap::ValueEnum;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::LabelSelector, jiff::Timestamp};

use crate::{
    evaluation_inputs::SourceArgs,
    options::{self, INPUT, OUTPUT},
    selector,
};

const EXAMPLES: &str = "\
Examples:
  palisade infer --live -l tenancy=tool
  palisade infer --dump cluster/ -l tenancy=tool --outliers 15
  palisade infer objects.yaml --namespaces namespaces.yaml -l tenancy=tool -o yaml > profile.yaml
  palisade diff profile.yaml --live                 # preview the profile

It is read-only. --live requires permission to list namespaces, exceptions, pods and workloads.

Exit codes: 0 success, 2 could not run.";

/// The arguments of `palisade infer`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("namespaces", |arg| arg.requires("files")))]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(false).args(["live", "dump", "files"]))]
pub struct InferArgs {
    /// Files, directories, or - for standard input, with cluster objects: pods, workloads, and Namespaces.
    #[arg(id = "files", value_name = "FILE|DIR")]
    pub files: Vec<String>,
    /// Labels of the tenants' namespaces, like kubectl -l: tenancy=tool.
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = selector::parse, help_heading = INPUT)]
    pub selector: LabelSelector,
    /// Name of the profile.
    #[arg(long, value_name = "NAME", default_value = "tenants")]
    pub name: String,
    /// Number of workloads that may need an exception instead of a setting. Settings that the fewest workloads need are
    /// omitted first.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub outliers: usize,
    /// End of the exceptions, for example 2027-01-31T00:00:00Z. The default is in 90 days.
    #[arg(long, value_name = "TIME", value_parser = options::time)]
    pub expires: Option<Timestamp>,
    /// Time of the evaluation, for example 2026-11-25T08:00:00Z. The default is now.
    #[arg(long, value_name = "TIME", value_parser = options::time)]
    pub time: Option<Timestamp>,
    /// Maximum number of namespaces to list, and of workloads to list for each check.
    #[arg(long, value_name = "COUNT", default_value_t = 10, help_heading = OUTPUT)]
    pub top: usize,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "human", help_heading = OUTPUT)]
    pub output: InferFormat,
    #[command(flatten)]
    pub source: SourceArgs,
}

/// The format of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InferFormat {
    /// Text.
    Human,
    /// One object with everything, for programs.
    Json,
    /// The profile.
    Yaml,
}
