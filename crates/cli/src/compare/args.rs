//! The command line of `palisade diff`.

use super::place::Place;
use crate::{ground::GroundArgs, impact::ImpactArgs};

const EXAMPLES: &str = "\
Examples:
  palisade diff toolforge@3 toolforge@5       # two revisions in the cluster: how the spec differs
  palisade diff toolforge@3                   # a revision, and the spec now
  palisade diff profile.yaml                  # what of the generated objects it changes
  palisade diff profile.yaml --live           # and of what exists, what is newly denied or admitted
  palisade diff profile.yaml --dump cluster/  # the same with what palisade dump wrote
  palisade diff git:main:profiles profiles/ -f manifests/ --namespaces namespaces.yaml -o markdown

A profile is judged against objects as if they were created now, after mutation: each pod, and each workload with the pods \
that it makes. A Deployment and its pods are one line.

Exit codes: with files, --live, --dump or -f: 0 nobody is newly denied, 1 somebody is, 2 could not run. Of revisions in the \
cluster alone, as diff does it: 0 no differences, 1 differences, 2 could not run.";

/// The arguments of `palisade diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("namespaces", |arg| arg.requires("files")))]
pub struct DiffArgs {
    /// A profile in the cluster (its spec now), or a revision of it as PROFILE@REVISION; a file with profiles or a directory of
    /// such files, named with a / or its ending; or those of a commit as git:REF:PATH. A file alone is compared with what is
    /// live, or with what --dump has.
    #[arg(value_name = "PROFILE[@REVISION]|FILE|DIR|git:REF:PATH")]
    pub before: Place,
    /// What to compare it with; of a profile in the cluster by default its spec now.
    #[arg(value_name = "PROFILE[@REVISION]|FILE|DIR|git:REF:PATH")]
    pub after: Option<Place>,
    /// Judge the pods and workloads in manifests: files, directories, or - for standard input.
    #[arg(short = 'f', long = "file", value_name = "FILE|DIR", num_args = 1.., conflicts_with_all = ["live", "dump"])]
    pub files: Vec<String>,
    /// The namespace of manifests that do not name one.
    #[arg(short, long, value_name = "NAME", requires = "files")]
    pub namespace: Option<String>,
    #[command(flatten)]
    pub ground: GroundArgs,
    #[command(flatten)]
    pub shown: ImpactArgs,
}
