//! The command line of `palisade prove`.

use std::{fmt, str::FromStr};

use clap::ValueEnum;
use palisade_api::{Level, settings::standard::Version};
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
  palisade prove git:main:profiles profiles/
  palisade prove profile.yaml --implies restricted@v1.36
  palisade prove profile.yaml --never 'has(variables.spec.hostname)'

Exit codes: 0 proved that no pod is newly admitted, or that the statement holds, 1 a pod refutes it, 2 not decided, or could \
not run.";

/// The arguments of `palisade prove`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ProveArgs {
    /// Profiles before the change: a file or directory, or one in a commit as git:REF:PATH.
    #[arg(value_name = "FILE|DIR|git:REF:PATH")]
    pub before: Place,
    /// Profiles after the change. Those with the same name are compared.
    #[arg(value_name = "FILE|DIR|git:REF:PATH", required_unless_present_any = ["implies", "never"])]
    pub after: Option<Place>,
    /// Prove that each profile admits only pods that this level of the Pod Security Standards admits: baseline or restricted,
    /// also with a version (restricted@v1.36).
    #[arg(long, value_name = "LEVEL", conflicts_with_all = ["after", "never"])]
    pub implies: Option<StandardsLevel>,
    /// Prove that no profile ever admits a pod for which this CEL expression is true. It can read what a custom check with
    /// the target Pod can read.
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "after")]
    pub never: Option<String>,
    #[arg(long, value_name = "VERSION", help = format!("{}; the default is {}", kube_version_help(), Minor::DEFAULT))]
    pub kube_version: Option<Minor>,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "human", help_heading = OUTPUT)]
    pub output: ProveFormat,
}

/// A level of the Pod Security Standards, and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandardsLevel {
    /// The level.
    pub level: Level,
    /// The version.
    pub version: Version,
}

impl FromStr for StandardsLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (level, version) = text.split_once('@').unwrap_or((text, "latest"));
        let level = match level.to_ascii_lowercase().as_str() {
            "baseline" => Level::Baseline,
            "restricted" => Level::Restricted,
            _ => return Err("must be baseline or restricted, for example restricted@v1.36".to_owned()),
        };
        Ok(Self { level, version: version.parse()? })
    }
}

impl fmt::Display for StandardsLevel {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}@{}", self.level, self.version)
    }
}

/// The format of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProveFormat {
    /// Text.
    Human,
    /// An object for each profile, for programs.
    Json,
}
