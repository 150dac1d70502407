//! The command line of `palisade diff`.

use crate::{changes_output::ChangesArgs, evaluation_inputs::SourceArgs, options::INPUT, place::Place};

const EXAMPLES: &str = "\
Examples:
  palisade diff toolforge@3 toolforge@5       # compare the specs of two revisions
  palisade diff toolforge@3                   # compare a revision with the current spec
  palisade diff profile.yaml                  # show the changes of generated objects
  palisade diff profile.yaml --live           # also show what is newly denied or admitted
  palisade diff profile.yaml --dump cluster/  # the same with a directory from palisade dump
  palisade diff git:main:profiles profiles/ --manifests m/ --namespaces ns.yaml -o markdown

Objects are evaluated as if they were created now, after mutation: each pod, and each workload with the pods of its \
template. A Deployment and its pods are one line.

Exit codes: with files, --live, --dump or --manifests: 0 no object is newly denied, 1 an object is newly denied, 2 could not \
run. With revisions in the cluster only, like diff: 0 no differences, 1 differences, 2 could not run.";

/// The arguments of `palisade diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("namespaces", |arg| arg.requires("files")))]
pub struct DiffArgs {
    /// Profiles before the change: the current spec of a profile in the cluster, a revision of it as PROFILE@REVISION,
    /// a file or directory (its path has a / or a file extension), or a file or directory in a commit as git:REF:PATH.
    /// A file alone is compared with the profiles in the cluster, or in the dump of --dump.
    #[arg(value_name = "PROFILE[@REVISION]|FILE|DIR|git:REF:PATH")]
    pub before: Place,
    /// Profiles after the change. The default for a profile in the cluster is its current spec.
    #[arg(value_name = "PROFILE[@REVISION]|FILE|DIR|git:REF:PATH")]
    pub after: Option<Place>,
    /// Evaluate the pods and workloads in these manifests: a file, a directory, or - for standard input. Repeatable.
    #[arg(
        long = "manifests",
        id = "files",
        value_name = "FILE|DIR",
        help_heading = INPUT,
        conflicts_with_all = ["live", "dump"]
    )]
    pub files: Vec<String>,
    /// Namespace of manifests that do not specify one.
    #[arg(short, long, value_name = "NAME", help_heading = INPUT, requires = "files")]
    pub namespace: Option<String>,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub shown: ChangesArgs,
}
