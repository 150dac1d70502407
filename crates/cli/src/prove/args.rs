//! The command line of `palisade prove`.

use std::str::FromStr;

use crate::{output::FormatArgs, profile_place::Place};

const EXAMPLES: &str = "\
Examples:
  palisade prove old.yaml new.yaml
  palisade prove git:main:profiles profiles/          # the change of a branch
  palisade prove --implies restricted profile.yaml    # is it at least as strict as this level?
  palisade prove --implies baseline@v1.36 profile.yaml -o json

An example is the smallest pod that was found. The offline evaluation of both profiles confirms each example. The proofs \
cover new pods of any size, as policies see them: after mutation.

Exit codes: 0 proved that NEW admits no pod that OLD (or the level) denies, 1 it admits such a pod, 2 could not run, or \
neither a proof nor an example was found.";

/// The arguments of `palisade prove`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ProveArgs {
    /// OLD and NEW: profiles before and after a change, in a file, a directory, or a commit as git:REF:PATH. With
    /// --implies only NEW. If each side has several profiles, those with the same name are compared.
    #[arg(value_name = "FILE|DIR|git:REF:PATH", required = true, num_args = 1..=2)]
    pub profiles: Vec<Place>,
    /// Level of the Pod Security Standards that NEW must imply: restricted or baseline, with or without a version.
    #[arg(long, value_name = "LEVEL[@VERSION]")]
    pub implies: Option<Level>,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// A level of the Pod Security Standards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// `Restricted` or `Baseline`.
    pub level: &'static str,
    /// Such as `v1.36`; `None` for the newest version.
    pub version: Option<String>,
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (level, version) = text.split_once('@').map_or((text, None), |(level, version)| (level, Some(version)));
        let level = match level {
            "restricted" => "Restricted",
            "baseline" => "Baseline",
            _ => return Err("must be restricted or baseline, for example restricted@v1.36".to_owned()),
        };
        Ok(Self { level, version: version.map(str::to_owned) })
    }
}
