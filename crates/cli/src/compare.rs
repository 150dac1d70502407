//! `palisade diff`: shows how the spec of a profile differs between two revisions.

use std::str::FromStr;

use serde_json::Value as Json;

use crate::{
    cluster::{ClusterArgs, could_not_run},
    diff::{self, CONTEXT},
    output,
    report::Failure,
    revisions::{self, History},
};

const EXAMPLES: &str = "\
Examples:
  palisade diff toolforge@3 toolforge@5
  palisade diff toolforge@3               # and the spec now
  palisade diff toolforge@3 other         # with another profile

Exit codes: 0 no differences, 1 differences, 2 could not run.";

/// The arguments of `palisade diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct DiffArgs {
    /// A profile in the cluster (its spec now), or a revision of it as PROFILE@REVISION. `palisade history` lists those.
    #[arg(value_name = "PROFILE[@REVISION]")]
    pub before: Place,
    /// What to compare it with; by default the same profile's spec now.
    #[arg(value_name = "PROFILE[@REVISION]")]
    pub after: Option<Place>,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// A profile, and which of its specs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    profile: String,
    /// The revision; without one, the spec now.
    revision: Option<i64>,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((profile, revision)) = text.split_once('@') else {
            return Ok(Self { profile: text.to_owned(), revision: None });
        };
        match revision.parse() {
            Ok(number) if number > 0 && !profile.is_empty() => {
                Ok(Self { profile: profile.to_owned(), revision: Some(number) })
            }
            _ => Err("it is PROFILE, or PROFILE@REVISION with a number, as toolforge@3".to_owned()),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.revision {
            Some(revision) => write!(f, "{}@{revision}", self.profile),
            None => f.write_str(&self.profile),
        }
    }
}

/// Runs the command.
pub fn run(args: &DiffArgs) -> Result<(), Failure> {
    let after = args.after.clone().unwrap_or_else(|| Place { revision: None, ..args.before.clone() });
    if args.before == after {
        return Err(could_not_run(format!("{after} is compared with itself: name a revision, as {}@1", after.profile)));
    }
    let [before_spec, after_spec] = args.cluster.ask(async |client| {
        let before = History::read(&client, &args.before.profile).await?;
        let other = if after.profile == args.before.profile {
            before.clone()
        } else {
            History::read(&client, &after.profile).await?
        };
        Ok([spec(&before, args.before.revision)?, spec(&other, after.revision)?])
    })?;
    let text = diff::between((&args.before.to_string(), &before_spec), (&after.to_string(), &after_spec), CONTEXT)?;
    output::print(&text)?;
    // As diff and kubectl diff do it.
    if text.is_empty() { Ok(()) } else { Err(Failure::Wrong(Vec::new())) }
}

fn spec(history: &History, revision: Option<i64>) -> Result<Json, Failure> {
    Ok(match revision {
        Some(number) => revisions::json(&history.get(number)?.revision.spec),
        None => revisions::json(&history.profile.spec),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revision_follows_the_profile_after_an_at_sign() {
        let place = |profile: &str, revision| Ok(Place { profile: profile.to_owned(), revision });
        assert_eq!("toolforge".parse::<Place>(), place("toolforge", None));
        assert_eq!("toolforge@12".parse::<Place>(), place("toolforge", Some(12)));
        for wrong in ["toolforge@", "toolforge@x", "toolforge@0", "@3", "toolforge@3@4"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
        assert_eq!("toolforge@12".parse::<Place>().unwrap().to_string(), "toolforge@12");
    }
}
