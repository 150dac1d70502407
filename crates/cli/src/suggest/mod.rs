//! `palisade suggest`: the smallest profile changes that admit existing workloads.

mod args;
mod data;
mod human;

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use palisade_api::ToolSecurityProfile;

pub use args::SuggestArgs;
use args::SuggestFormat;
use data::{About, Suggested};

use crate::{
    cluster::could_not_run,
    evaluation_inputs::EvaluationInputs,
    evaluator::ProfileEvaluator,
    output::{self, could_not_print},
    profiles::{self, Accepted},
    progress::Progress,
    proposal::{self, Owned, Step, Suggestions, Trial},
    report::{self, Failure},
};

/// Runs the command.
pub fn run(args: &SuggestArgs) -> Result<(), Failure> {
    let paths = args.files.iter().chain(&args.profiles).chain(&args.source.namespaces);
    if paths.filter(|path| *path == "-").count() > 1 {
        return Err(could_not_run("only one FILE can be standard input"));
    }
    let now = args.time.unwrap_or_else(Timestamp::now);
    // An invalid profile is not a finding about the cluster.
    let mut progress = Progress::new();
    let inputs = EvaluationInputs::open(&args.source, &args.files, &args.profiles, &args.params, &mut progress)
        .map_err(Failure::fatal)?;
    let EvaluationInputs { accepted, tenants, version, objects, problems, .. } = inputs;
    let denying = accepted.iter().map(|one| profiles::in_deny(&one.profile)).collect::<Result<Vec<_>, _>>();
    let judge = ProfileEvaluator::new(&denying.map_err(Failure::CouldNotRun)?, &tenants, version, now)?;
    let (found, unknown) = proposal::evaluated(objects, &judge, &tenants, &mut progress)?;
    let trial = Trial::new(&accepted, &tenants, version, now);
    let suggestions = proposal::search(&trial, &judge, &found, args.top, &mut progress);
    drop(progress);
    let about = About { time: now.to_string(), server: version.to_string(), unknown };
    let text = match args.output {
        SuggestFormat::Human => human::text(&Suggested::new(about, &found, &suggestions, &accepted), args.top),
        SuggestFormat::Json => {
            let all = Suggested::new(about, &found, &suggestions, &accepted);
            serde_json::to_string_pretty(&all).map(|text| text + "\n").map_err(|error| could_not_print(&error))?
        }
        SuggestFormat::Yaml => yaml(&accepted, &suggestions)?,
    };
    output::print(&text)?;
    args.source.unevaluated.settle(problems)
}

/// The changes of some steps, by profile.
fn by_profile<'a>(steps: impl Iterator<Item = &'a Step>) -> BTreeMap<&'a str, Vec<&'a Owned>> {
    let mut changes = BTreeMap::<_, Vec<_>>::new();
    for one in steps.flat_map(|step| &step.changes) {
        changes.entry(one.profile.as_str()).or_default().push(one);
    }
    changes
}

/// The profiles that are changed, with their changes.
fn changed<'a>(
    accepted: &'a [Accepted],
    changes: &BTreeMap<&str, Vec<&Owned>>,
) -> Vec<(&'a Accepted, ToolSecurityProfile)> {
    let changed = |one: &'a Accepted| {
        let changes = changes.get(one.checked.profile.as_str())?;
        let after = proposal::applied(&one.profile, changes.iter().map(|one| &one.change))?;
        Some((one, after))
    };
    accepted.iter().filter_map(changed).collect()
}

/// The changed profiles, with comments about the changes.
fn yaml(accepted: &[Accepted], suggestions: &Suggestions) -> Result<String, Failure> {
    let changes = by_profile(suggestions.steps.iter().filter(|step| !step.is_careful()));
    let mut text = String::new();
    if changes.is_empty() {
        text.push_str("# No change without a caution is proposed for several namespaces.\n");
    }
    for (index, (one, profile)) in changed(accepted, &changes).into_iter().enumerate() {
        if index > 0 {
            text.push_str("---\n");
        }
        for change in changes.get(one.checked.profile.as_str()).into_iter().flatten() {
            text.push_str(&report::one_line(&format!("# {}: {}", change.change, change.change.allows)));
            text.push('\n');
        }
        text.push_str(&output::yaml(&[profiles::written(&profile)]).map_err(|error| could_not_print(&error))?);
    }
    Ok(text)
}
