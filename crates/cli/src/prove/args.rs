//! The command line of `palisade prove`.

use clap::ValueEnum;
use palisade_cel::Minor;

use crate::{
    options::{OUTPUT, kube_version_help},
    place::Place,
};

const EXAMPLES: &str = "\
Examples:
  palisade prove old.yaml new.yaml
  palisade prove git:main:profiles/tools.yaml profiles/tools.yaml   # in CI: exit 1 for a loosening
  palisade prove old.yaml new.yaml -o json

Exit codes: 0 proved that no pod is newly admitted, 1 a pod is newly admitted, 2 not decided, or could not run.";

/// The arguments of `palisade prove`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ProveArgs {
    /// Profile before the change: a file, or a file in a commit as git:REF:PATH.
    #[arg(value_name = "FILE|git:REF:PATH")]
    pub before: Place,
    /// Profile after the change.
    #[arg(value_name = "FILE|git:REF:PATH")]
    pub after: Place,
    #[arg(long, value_name = "VERSION", help = format!("{}; the default is {}", kube_version_help(), Minor::DEFAULT))]
    pub kube_version: Option<Minor>,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "human", help_heading = OUTPUT)]
    pub output: ProveFormat,
}

/// The format of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProveFormat {
    /// Text.
    Human,
    /// One object with everything, for programs.
    Json,
}
