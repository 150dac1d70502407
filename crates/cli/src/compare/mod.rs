//! `palisade diff`: compares two revisions of the spec of a profile, or previews the effect of a profile change on
//! generated objects, and on pods and workloads.

mod args;
mod generated;
mod tenant_objects;
#[cfg(test)]
mod tests;

pub use args::DiffArgs;
use k8s_openapi::jiff::Timestamp;
use kube::{Client, ResourceExt as _};
use palisade_api::ToolSecurityProfile;
use palisade_cel::Minor;
use palisade_kube_json::owners::Owners;
use serde_json::json;

use self::generated::Difference;
use crate::{
    admission_changes::AdmissionChanges,
    changes_output::{self, About, ChangesFormat},
    cluster::could_not_run,
    diff::{self, CONTEXT},
    dump_files::Dump,
    evaluation_inputs::{Manifests, Objects, Reading},
    evaluator::ProfileEvaluator,
    live,
    namespaces::Tenant,
    object_comparison::ObjectComparison,
    object_kinds::ObjectKinds,
    output,
    place::Place,
    profiles::{self, Accepted},
    progress::Progress,
    prove,
    report::{Failure, Problem},
    revisions::{self, History},
};

/// Runs the command.
pub fn run(args: &DiffArgs) -> Result<(), Failure> {
    let in_cluster = |place: &Place| matches!(place, Place::Cluster { .. });
    let all_in_cluster = in_cluster(&args.before) && args.after.as_ref().is_none_or(in_cluster);
    let judges = args.source.live || args.source.dump.is_some() || !args.files.is_empty();
    if all_in_cluster && !judges && args.shown.output == ChangesFormat::Human {
        return of_revisions(args);
    }
    let stdin = [Some(&args.before), args.after.as_ref()].into_iter().flatten();
    let stdin = stdin.filter(|place| **place == Place::Path("-".to_owned())).count()
        + args.files.iter().chain(&args.source.namespaces).filter(|path| *path == "-").count();
    if stdin > 1 {
        return Err(could_not_run("only one FILE can be standard input"));
    }
    let mut inputs = DiffInputs::read(args)?;
    let mut problems = std::mem::take(&mut inputs.problems);
    let (before, mut after) = sides(args, &inputs)?;
    // What is in effect was accepted by the cluster.
    after.profiles = profiles::on(after.profiles, inputs.version).map_err(Failure::fatal)?;
    let difference = Difference::new(&before.profiles, &after.profiles, &inputs.tenants, inputs.version)?;
    let mut about = about(&before, &after, &difference, &inputs);
    let answers = if difference.changes_answers(inputs.is_whole) {
        prove::of_edit(&before.profiles, &after.profiles, inputs.version)?
    } else {
        Vec::new()
    };
    about.proofs = answers.iter().map(prove::Answer::summary).collect();
    let proofs = answers.iter().map(|answer| answer.json(inputs.version)).collect();
    about.json.insert("anyPod".to_owned(), proofs);
    if difference.changes_answers(inputs.is_whole) && judges {
        let changes = judged(inputs, &before.profiles, &after.profiles)?;
        output::print(&changes_output::text(&args.shown, &about, Some(&changes)))?;
        if changes.judged == 0 && problems.is_empty() && !args.files.is_empty() {
            problems.push(Problem::new("no object was evaluated: no profile selects a pod or workload in the files"));
        }
        args.source.unevaluated.settle(problems)?;
        return if changes.denies() { Err(Failure::Wrong(Vec::new())) } else { Ok(()) };
    }
    output::print(&changes_output::text(&args.shown, &about, None))?;
    args.source.unevaluated.settle(problems)
}

/// Compares the specs of revisions.
fn of_revisions(args: &DiffArgs) -> Result<(), Failure> {
    let after = args.after.clone().unwrap_or_else(|| now(&args.before));
    if args.before == after {
        return Err(could_not_run(format!("{after} must be compared with a revision, for example {after}@1")));
    }
    let [before_spec, after_spec] = args.source.cluster.ask(async |client| {
        let before = accepted_or_not(&client, &args.before).await?;
        let after = accepted_or_not(&client, &after).await?;
        Ok([revisions::json(&before.spec), revisions::json(&after.spec)])
    })?;
    let text = diff::between((&args.before.to_string(), &before_spec), (&after.to_string(), &after_spec), CONTEXT)?;
    output::print(&text)?;
    // Like diff and kubectl diff.
    if text.is_empty() { Ok(()) } else { Err(Failure::Wrong(Vec::new())) }
}

fn now(place: &Place) -> Place {
    match place {
        Place::Cluster { profile, .. } => Place::Cluster { profile: profile.clone(), revision: None },
        other => other.clone(),
    }
}

/// A profile of the cluster at a place.
async fn accepted_or_not(client: &Client, place: &Place) -> Result<ToolSecurityProfile, Failure> {
    let Place::Cluster { profile, revision } = place else {
        return Err(could_not_run(format!("{place} not found in the cluster")));
    };
    let history = History::read(client, profile).await?;
    let mut found = history.profile.clone();
    if let Some(number) = revision {
        found.spec = history.get(*number)?.revision.spec.clone();
    }
    Ok(found)
}

/// The profiles, except those that are compared.
struct DiffInputs<'a> {
    /// The active profiles, if they were read.
    in_force: Vec<Accepted>,
    /// The profiles of the places in the cluster: before and after.
    places: [Option<Box<Accepted>>; 2],
    tenants: Vec<Tenant>,
    /// Whether these are all namespaces.
    is_whole: bool,
    version: Minor,
    objects: Objects<'a>,
    /// Objects in the manifests that cannot be evaluated.
    problems: Vec<Problem>,
}

impl<'a> DiffInputs<'a> {
    fn read(args: &'a DiffArgs) -> Result<Self, Failure> {
        let DiffArgs { source: of, .. } = args;
        let mut dump = of.dump.as_deref().map(Dump::open).transpose()?;
        let after = match (&args.before, &args.after) {
            (_, Some(after)) => Some(after.clone()),
            (Place::Cluster { .. }, None) => Some(now(&args.before)),
            (_, None) => None,
        };
        // A file alone is compared with the active profiles.
        let needs_in_force = after.is_none();
        let mut inputs = Self {
            in_force: dump.as_mut().map(|dump| std::mem::take(&mut dump.profiles)).unwrap_or_default(),
            places: [None, None],
            tenants: dump.as_mut().map(|dump| std::mem::take(&mut dump.tenants)).unwrap_or_default(),
            is_whole: of.live || dump.is_some(),
            version: dump.as_ref().map_or(Minor::DEFAULT, |dump| dump.version),
            objects: if of.live {
                Objects::Cluster(&of.cluster, ObjectKinds::default())
            } else {
                Objects::Files(Vec::new())
            },
            problems: Vec::new(),
        };
        let places =
            [Some(&args.before), after.as_ref()].map(|place| place.filter(|it| matches!(it, Place::Cluster { .. })));
        if of.live || places.iter().any(Option::is_some) || (needs_in_force && dump.is_none()) {
            of.cluster.ask(async |client| {
                if of.live {
                    let rights = live::judged().chain([live::NAMESPACES, live::EXCEPTIONS]);
                    live::permitted(&client, rights.chain(needs_in_force.then_some(live::PROFILES))).await?;
                }
                for (place, into) in places.into_iter().zip(&mut inputs.places) {
                    if let Some(place) = place {
                        let profile = accepted_or_not(&client, place).await?;
                        *into = Some(Box::new(profiles::accept_live(profile).map_err(Failure::CouldNotRun)?));
                    }
                }
                if dump.is_none() {
                    inputs.version = live::version(&client).await?;
                    if needs_in_force {
                        let found = live::profiles(&client).await?.into_iter();
                        let named = |one: ToolSecurityProfile| (one.name_any(), profiles::accept_live(one));
                        inputs.in_force = profiles::known(found.map(named));
                    }
                }
                if of.live {
                    inputs.tenants = live::all_tenants(&client, &mut Progress::new()).await?;
                }
                Ok(())
            })?;
        }
        if let Some(dump) = dump {
            inputs.objects = Objects::Dump(dump);
        }
        if !args.files.is_empty() {
            let (namespaces, namespace) = (of.namespaces.as_deref(), args.namespace.as_deref());
            let found = Manifests::read(&args.files, Reading { namespaces, namespace, known: true, profiles: false })?;
            (inputs.tenants, inputs.objects, inputs.problems) =
                (found.tenants, Objects::Files(found.objects), found.problems);
        }
        inputs.version = of.kube_version.unwrap_or(inputs.version);
        Ok(inputs)
    }
}

/// The active profiles before or after the change.
struct ComparedProfiles {
    name: String,
    profiles: Vec<Accepted>,
}

fn sides(args: &DiffArgs, inputs: &DiffInputs<'_>) -> Result<(ComparedProfiles, ComparedProfiles), Failure> {
    let [first, second] = &inputs.places;
    let read = |place: &Place, of_cluster: &Option<Box<Accepted>>| match place.in_files() {
        Some(found) => found,
        None => Ok(of_cluster.iter().map(|one| (**one).clone()).collect()),
    };
    let before = ComparedProfiles { name: args.before.to_string(), profiles: read(&args.before, first)? };
    if let Some(place) = &args.after {
        return Ok((before, ComparedProfiles { name: place.to_string(), profiles: read(place, second)? }));
    }
    if let Some(now) = second {
        return Ok((before, ComparedProfiles { name: now.checked.profile.clone(), profiles: vec![(**now).clone()] }));
    }
    // The file has the new profiles. Active profiles that are not in the file remain.
    let named = |profile: &Accepted| before.profiles.iter().find(|one| one.checked.profile == profile.checked.profile);
    let mut after: Vec<_> = inputs.in_force.iter().map(|profile| named(profile).unwrap_or(profile).clone()).collect();
    let is_new = |one: &&Accepted| inputs.in_force.iter().all(|known| known.checked.profile != one.checked.profile);
    after.extend(before.profiles.iter().filter(is_new).cloned());
    let name = args.source.dump.clone().unwrap_or_else(|| "the cluster".to_owned());
    Ok((ComparedProfiles { name, profiles: inputs.in_force.clone() }, ComparedProfiles { profiles: after, ..before }))
}

fn about(
    before: &ComparedProfiles,
    after: &ComparedProfiles,
    difference: &Difference,
    inputs: &DiffInputs<'_>,
) -> About {
    let mut json = serde_json::Map::new();
    json.insert("before".to_owned(), json!(before.name));
    json.insert("after".to_owned(), json!(after.name));
    json.insert("kubeVersion".to_owned(), json!(inputs.version.to_string()));
    json.extend(difference.json(inputs.is_whole));
    About {
        what: "objects",
        head: format!("{} -> {}: {}", before.name, after.name, difference.sentence(inputs.is_whole)),
        diffs: difference.diffs(),
        json,
        ..About::default()
    }
}

/// Evaluates existing objects before and after the change.
fn judged(mut inputs: DiffInputs<'_>, before: &[Accepted], after: &[Accepted]) -> Result<AdmissionChanges, Failure> {
    if let Objects::Cluster(_, kinds) = &mut inputs.objects {
        *kinds = ObjectKinds::of(before.iter().chain(after));
    }
    let judges = [before, after]
        .map(|profiles| ProfileEvaluator::new(profiles, &inputs.tenants, inputs.version, Timestamp::now()));
    let [before, after] = judges;
    let (before, after) = (before?, after?);
    let mut comparison = ObjectComparison::new(&before, &after, Owners::default());
    inputs.objects.each(&mut Progress::new(), |objects| comparison.add(objects))?;
    if comparison.changes.judged == 0 && !comparison.changes.no_verdict.is_empty() {
        let mut why = comparison.changes.no_verdict.iter();
        let first = why.next().map(|(why, one)| format!("{why}: {}", one.first)).unwrap_or_default();
        return Err(Failure::CouldNotRun(vec![Problem::new(format!("no object could be evaluated: {first}"))]));
    }
    Ok(comparison.changes)
}
