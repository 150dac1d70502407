//! The command line of `palisade suggest`.

use clap::ValueEnum;
use k8s_openapi::jiff::Timestamp;

use crate::{ground::GroundArgs, options};

const EXAMPLES: &str = "\
Examples:
  palisade suggest --live
  palisade suggest --live --profile next.yaml        # a profile that is not in the cluster yet
  palisade suggest --dump cluster/ -o json
  palisade suggest -f objects.yaml --namespaces namespaces.yaml --profile profile.yaml
  palisade suggest --live -o yaml > next.yaml        # the changed profiles
  palisade diff next.yaml --live                     # and what these would do

It reads; it changes nothing. --live needs the rights to list profiles, namespaces, exceptions, pods and workloads.

Exit codes: 0 done, also if nothing is proposed, 2 could not run.";

/// The arguments of `palisade suggest`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("namespaces", |arg| arg.requires("files")))]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(false).args(["live", "dump", "files"]))]
pub struct SuggestArgs {
    /// Files, directories, or - for standard input, with the objects of a cluster: pods, workloads, Namespaces,
    /// ToolSecurityExceptions and profiles; may be given several times.
    #[arg(short, long = "file", id = "files", value_name = "FILE|DIR")]
    pub files: Vec<String>,
    /// A file with profiles, or a directory of such files, to judge by in place of those of the cluster or of the files;
    /// may be given several times.
    #[arg(long = "profile", value_name = "FILE|DIR")]
    pub profiles: Vec<String>,
    /// The time to judge by, as 2026-11-25T08:00:00Z: exceptions that end before it count no longer. By default now.
    #[arg(long, value_name = "TIME", value_parser = options::time)]
    pub time: Option<Timestamp>,
    /// How many suggestions are made, and how many workloads are named for each.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub top: usize,
    /// The output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub output: SuggestFormat,
    #[command(flatten)]
    pub ground: GroundArgs,
}

/// How suggestions are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SuggestFormat {
    /// Text.
    Human,
    /// One object, for programs: everything, with a merge patch for each profile.
    Json,
    /// The profiles with all changes that have no caution and are for several namespaces.
    Yaml,
}
