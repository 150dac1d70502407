//! `palisade rollout`: shows and controls the rollout of a profile.

use std::fmt::Write as _;

use clap::Subcommand;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, Patch, PatchParams},
    core::ObjectMeta,
};
use palisade_api::{HELD_BY_VIOLATIONS, RolloutPhase, RolloutStatus, Stage, ToolSecurityProfile, names};
use palisade_runtime::lists;
use serde_json::{Value as Json, json};

use crate::{
    cluster::{ClusterArgs, could_not_run, failed},
    output::{self, FormatArgs},
    report::{self, Failure, Problem},
};

const EXAMPLES: &str = "\
Examples:
  palisade rollout status toolforge
  palisade rollout pause toolforge
  palisade rollout retry toolforge tool-a tool-b
  palisade rollout promote toolforge tool-c --stage Warn

Exit codes: 0 success, 2 could not run.";

/// The field manager of changes.
const MANAGER: &str = "palisade-rollout";
/// Width of the bar in characters.
const BAR: usize = 40;

/// Commands for a rollout.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum RolloutCommand {
    /// Show the wave, the promoted namespaces, and the held namespaces with the reason.
    Status(StatusArgs),
    /// Pause the promotion of namespaces: sets spec.rollout.pause.
    Pause(ProfileArgs),
    /// Resume a paused rollout.
    Resume(ProfileArgs),
    /// Evaluate held namespaces again now, instead of within five minutes.
    ///
    /// Removes the annotation that holds them. Without names, it applies to all namespaces that the controller holds. A
    /// hold that another user or program set is removed only from the namespaces in the command.
    Retry(RetryArgs),
    /// Set the stage of namespaces now, ignoring existing violations.
    Promote(PromoteArgs),
}

/// A profile.
#[derive(Debug, clap::Args)]
pub struct ProfileArgs {
    /// Name of a ToolSecurityProfile in the cluster.
    #[arg(value_name = "PROFILE")]
    pub profile: String,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The arguments of `palisade rollout status`.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    #[command(flatten)]
    pub of: ProfileArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// The arguments of `palisade rollout retry`.
#[derive(Debug, clap::Args)]
pub struct RetryArgs {
    #[command(flatten)]
    pub of: ProfileArgs,
    /// Namespaces. The default is all that the controller holds.
    #[arg(value_name = "NAMESPACE")]
    pub namespaces: Vec<String>,
}

/// The arguments of `palisade rollout promote`.
#[derive(Debug, clap::Args)]
pub struct PromoteArgs {
    #[command(flatten)]
    pub of: ProfileArgs,
    /// Namespaces.
    #[arg(value_name = "NAMESPACE", required = true)]
    pub namespaces: Vec<String>,
    /// Stage of the namespaces: Deny, Warn or Audit.
    #[arg(long, value_name = "STAGE", default_value = "Deny", value_parser = stage)]
    pub stage: Stage,
}

fn stage(text: &str) -> Result<Stage, String> {
    let found = Stage::ALL.into_iter().find(|stage| stage.to_string().eq_ignore_ascii_case(text));
    found.ok_or_else(|| "must be Deny, Warn or Audit".to_owned())
}

/// Runs the command.
pub fn run(command: &RolloutCommand) -> Result<(), Failure> {
    match command {
        RolloutCommand::Status(args) => {
            let (profile, status) = args.of.cluster.ask(async |client| read(&client, &args.of.profile).await)?;
            output::print(&args.format.text(|| table(&profile.name_any(), &status), || json!(status))?)
        }
        RolloutCommand::Pause(args) => args.cluster.ask(async |client| pause(&client, &args.profile, true).await),
        RolloutCommand::Resume(args) => args.cluster.ask(async |client| pause(&client, &args.profile, false).await),
        RolloutCommand::Retry(args) => args.of.cluster.ask(async |client| retry(&client, args).await),
        RolloutCommand::Promote(args) => args.of.cluster.ask(async |client| promote(&client, args).await),
    }
}

async fn read(client: &Client, name: &str) -> Result<(ToolSecurityProfile, RolloutStatus), Failure> {
    let profiles = Api::<ToolSecurityProfile>::all(client.clone());
    let profile = profiles.get(name).await.map_err(|error| failed("cannot read the profile", &error))?;
    if profile.spec.rollout.is_none() {
        let problem = Problem::new(format!("profile {name} has no spec.rollout"));
        return Err(Failure::CouldNotRun(vec![problem.help("add spec.rollout to the profile, see docs/rollout.md")]));
    }
    let status = profile.status.as_ref().and_then(|status| status.rollout.clone());
    let status =
        status.ok_or_else(|| could_not_run(format!("the controller has not started the rollout of {name} yet")))?;
    Ok((profile, status))
}

fn table(profile: &str, status: &RolloutStatus) -> String {
    let total = status.promoted + status.pending + status.held;
    let share = |width: i64| (status.promoted * width).checked_div(total).unwrap_or(width);
    let done = usize::try_from(share(i64::try_from(BAR).unwrap_or(0))).unwrap_or(0).min(BAR);
    let mut text = format!(
        "{profile}: {}{}, wave {} of {}\n[{}{}] {} % of {total} namespaces: {} promoted, {} pending, {} held\n",
        status.phase,
        if status.phase == RolloutPhase::Complete && status.held > 0 { " except held namespaces" } else { "" },
        status.wave,
        status.waves,
        "#".repeat(done),
        "-".repeat(BAR - done),
        share(100),
        status.promoted,
        status.pending,
        status.held,
    );
    if !status.message.is_empty() {
        let _ = writeln!(text, "{}", status.message);
    }
    let width = status.held_namespaces.iter().map(|held| held.name.len()).max().unwrap_or(0).max("HELD".len()) + 3;
    if !status.held_namespaces.is_empty() {
        let _ = writeln!(text, "\n{:width$}REASON", "HELD");
    }
    for held in &status.held_namespaces {
        let _ = writeln!(text, "{:width$}{}", held.name, held.message);
    }
    let more = status.held - i64::try_from(status.held_namespaces.len()).unwrap_or(0);
    if more > 0 {
        let _ =
            writeln!(text, "and {more} more: their annotation {} has the reason", names::rollout_annotation(profile));
    }
    text
}

fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

async fn pause(client: &Client, name: &str, pause: bool) -> Result<(), Failure> {
    let profiles = Api::<ToolSecurityProfile>::all(client.clone());
    let profile = profiles.get(name).await.map_err(|error| failed("cannot read the profile", &error))?;
    let Some(rollout) = &profile.spec.rollout else {
        return Err(could_not_run(format!("profile {name} has no spec.rollout")));
    };
    let state = if pause { "paused" } else { "resumed" };
    if rollout.pause == pause {
        return output::print(&format!("profile {name} unchanged: its rollout is already {state}\n"));
    }
    let patch = json!({"spec": {"rollout": {"pause": pause.then_some(true)}}});
    let written = profiles.patch(name, &patch_params(), &Patch::Merge(&patch)).await;
    written.map_err(|error| failed("cannot write the profile", &error))?;
    output::print(&format!("rollout of profile {name} {state}\n"))?;
    report::note(
        "note: if GitOps applies the profile, change spec.rollout.pause in Git: otherwise the next sync reverts this",
    );
    Ok(())
}

async fn retry(client: &Client, args: &RetryArgs) -> Result<(), Failure> {
    let profile = &args.of.profile;
    read(client, profile).await?;
    let (api, key) = (Api::<Namespace>::all(client.clone()), names::rollout_annotation(profile));
    let names = if args.namespaces.is_empty() {
        let list = lists::all_metadata(&api, &ListParams::default()).await;
        let list = list.map_err(|error| failed("cannot list namespaces", &error))?;
        let held = |one: ObjectMeta| {
            let annotation = one.annotations?.remove(&key)?;
            annotation.starts_with(HELD_BY_VIOLATIONS).then_some(one.name).flatten()
        };
        list.into_iter().filter_map(held).collect()
    } else {
        args.namespaces.clone()
    };
    if names.is_empty() {
        return output::print(&format!("the rollout of profile {profile} holds no namespace\n"));
    }
    change(&api, &names, &json!({"metadata": {"annotations": {key: null}}}), "will be evaluated again").await
}

async fn promote(client: &Client, args: &PromoteArgs) -> Result<(), Failure> {
    let profile = &args.of.profile;
    read(client, profile).await?;
    let patch = json!({"metadata": {
        "labels": {names::stage_label(profile): args.stage.to_string()},
        "annotations": {names::rollout_annotation(profile): null},
    }});
    let api = Api::<Namespace>::all(client.clone());
    change(&api, &args.namespaces, &patch, &format!("is at stage {}", args.stage)).await
}

/// Patches namespaces, and prints the result for each.
async fn change(api: &Api<Namespace>, names: &[String], patch: &Json, done: &str) -> Result<(), Failure> {
    let mut problems = Vec::new();
    for name in names {
        match api.patch_metadata(name, &patch_params(), &Patch::Merge(patch)).await {
            Ok(_) => output::print(&format!("namespace {name} {done}\n"))?,
            Err(kube::Error::Api(status)) => {
                problems.push(Problem::new(format!("namespace {name}: {}", status.message)));
            }
            Err(error) => return Err(failed(&format!("cannot change namespace {name}"), &error)),
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure::CouldNotRun(problems)) }
}

#[cfg(test)]
mod tests {
    use palisade_api::{HeldNamespace, RolloutPhase};

    use super::*;

    #[test]
    fn status_shows_the_wave_and_who_is_held() {
        let held = HeldNamespace { name: "tool-a".into(), message: "Violations: 1 object violates the profile".into() };
        let status = RolloutStatus {
            phase: RolloutPhase::Soaking,
            wave: 2,
            waves: 3,
            promoted: 25,
            pending: 73,
            held: 2,
            held_namespaces: vec![held],
            message: "wave 2 soaks until 2026-01-01T00:00:00Z".into(),
            ..RolloutStatus::default()
        };
        let expected = "\
tools: Soaking, wave 2 of 3
[##########------------------------------] 25 % of 100 namespaces: 25 promoted, 73 pending, 2 held
wave 2 soaks until 2026-01-01T00:00:00Z

HELD     REASON
tool-a   Violations: 1 object violates the profile
and 1 more: their annotation rollout.toolsecurity.dev/tools has the reason
";
        assert_eq!(table("tools", &status), expected);
        let none = table("tools", &RolloutStatus::default());
        assert!(none.contains("100 % of 0 namespaces"), "{none}");
    }
}
