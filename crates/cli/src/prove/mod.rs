//! `palisade prove`: proves that a change of a profile admits no more pods, or shows the smallest pods that it newly admits
//! and newly denies.

mod args;
mod shown;

pub use args::ProveArgs;
use args::Level;
use palisade_api::ToolSecurityProfile;
use palisade_gate::comparison::{self, Profile, Rows, Verdict};
use palisade_runtime::on_large_stack;
use serde_json::json;

use crate::{
    cluster::could_not_run,
    output,
    profile_place::Place,
    profiles::{self, Accepted},
    report::{Failure, Problem},
};

/// The comparison of two profiles.
struct Compared {
    /// The names of both.
    names: [String; 2],
    /// The verdict on each check of OLD, about the pods that NEW admits.
    newly_admitted: Rows,
    /// The verdict on each check of NEW, about the pods that OLD admits; `None` for a level.
    newly_denied: Option<Rows>,
}

/// Runs the command.
pub fn run(args: &ProveArgs) -> Result<(), Failure> {
    let compared = match (&args.implies, args.profiles.as_slice()) {
        (Some(level), [new]) => {
            let old = level_profile(level)?;
            read(new)?.iter().map(|new| compare(&old, new, false)).collect::<Result<Vec<_>, _>>()?
        }
        (None, [old, new]) => {
            let [old, new] = [read(old)?, read(new)?];
            pairs(&old, &new)?.into_iter().map(|(old, new)| compare(old, new, true)).collect::<Result<Vec<_>, _>>()?
        }
        (Some(_), _) => return Err(could_not_run("--implies takes one FILE, DIR or git:REF:PATH")),
        (None, _) => return Err(could_not_run("OLD and NEW are required, or --implies")),
    };
    output::print(&args.format.text(|| shown::text(&compared), || shown::json(&compared))?)?;
    let all = || compared.iter().flat_map(|one| &one.newly_admitted).map(|(_, verdict)| verdict);
    if all().any(|verdict| matches!(verdict, Verdict::Differs(_))) {
        return Err(Failure::Wrong(Vec::new()));
    }
    let undecided: Vec<_> = compared.iter().flat_map(undecided).collect();
    if undecided.is_empty() { Ok(()) } else { Err(Failure::CouldNotRun(undecided)) }
}

/// The checks of OLD on which there is no answer.
fn undecided(of: &Compared) -> Vec<Problem> {
    let unknown = |(check, verdict): &(String, Verdict)| match verdict {
        Verdict::Unknown(why) => Some(Problem::new(format!("{}: {check}: not decided: {why}", of.names[1]))),
        _ => None,
    };
    of.newly_admitted.iter().filter_map(unknown).collect()
}

fn read(place: &Place) -> Result<Vec<Accepted>, Failure> {
    let found = place.in_files().unwrap_or_else(|| Err(could_not_run(format!("{place} must be a file or directory"))));
    let accepted = found?;
    accepted.iter().map(|one| profiles::in_deny(&one.profile).map_err(Failure::CouldNotRun)).collect()
}

/// The profiles of the same name, or the only ones.
fn pairs<'a>(old: &'a [Accepted], new: &'a [Accepted]) -> Result<Vec<(&'a Accepted, &'a Accepted)>, Failure> {
    if let ([old], [new]) = (old, new) {
        return Ok(vec![(old, new)]);
    }
    let name = |one: &Accepted| one.checked.profile.clone();
    let mut problems = Vec::new();
    let mut found = Vec::new();
    for one in old {
        match new.iter().find(|other| name(other) == name(one)) {
            Some(other) => found.push((one, other)),
            None => problems.push(Problem::new(format!("profile {}: is only in OLD", name(one)))),
        }
    }
    for one in new.iter().filter(|one| old.iter().all(|other| name(other) != name(one))) {
        problems.push(Problem::new(format!("profile {}: is only in NEW", name(one))));
    }
    if problems.is_empty() { Ok(found) } else { Err(Failure::CouldNotRun(problems)) }
}

/// A profile with the settings of a level.
fn level_profile(level: &Level) -> Result<Accepted, Failure> {
    let mut profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile",
        "metadata": {"name": level.level.to_lowercase()},
        "spec": {"namespaceSelector": {"matchLabels": {"example.com/any": "true"}}, "baseline": level.level},
    });
    if let Some(version) = &level.version {
        palisade_kube_json::json::set(&mut profile, &["spec", "baselineVersion"], json!(version));
    }
    let profile: ToolSecurityProfile =
        serde_json::from_value(profile).map_err(|error| could_not_run(format!("--implies: {error}")))?;
    profiles::accept_live(profile).map_err(Failure::CouldNotRun)
}

fn compare(old: &Accepted, new: &Accepted, both: bool) -> Result<Compared, Failure> {
    let of = |one: &'_ Accepted| one.checked.profile.clone();
    let rows = |admitting: &Accepted, denying: &Accepted| {
        let [one, other] = [admitting, denying].map(|one| Profile { spec: &one.profile.spec, checked: &one.checked });
        on_large_stack(|| comparison::admitted_by(one, other)).map_err(|error| could_not_run(error.to_string()))
    };
    let mut newly_admitted = rows(new, old)?;
    if !both {
        // A level has no limits of its own.
        newly_admitted.retain(|(check, _)| check != comparison::BOUNDS);
    }
    let newly_denied = if both { Some(rows(old, new)?) } else { None };
    Ok(Compared { names: [of(old), of(new)], newly_admitted, newly_denied })
}
