//! A namespace that its label keeps in Deny, while its profile and the stages of others change.

use std::{ffi::OsString, io::Write as _};

use palisade_api::names;
use palisade_cli::CommandOutput;
use palisade_tests::Cluster;
use serde_json::{Value as Json, json};

use crate::{
    Result,
    arena::Arena,
    pods::{UID, with},
    profiles::{mistakes, rejected},
    sieges::Siege,
    table::Tally,
};

const STAGES: [&str; 3] = ["Audit", "Warn", "Deny"];

fn enforcement(stage: &str) -> Json {
    json!({"pods": stage, "workloads": stage, "namespaceStages": "ByLabel"})
}

fn at(test: &str, stage: &str) -> Result<Json> {
    let mut profile = Cluster::toolforge_profile(test)?;
    profile["spec"]["enforcement"] = enforcement(stage);
    Ok(profile)
}

/// Puts an earlier generation back by the command line, which takes it from the history of the profile. There is none
/// before a second one was in force.
async fn roll_back(arena: &Arena, profile: &str) -> Result<CommandOutput> {
    let mut kubeconfig = tempfile::NamedTempFile::new()?;
    kubeconfig.write_all(arena.cluster.control_plane.kubeconfig().as_bytes())?;
    let mut all: Vec<OsString> = ["palisade", "rollback", profile, "--kubeconfig"].map(Into::into).into();
    all.push(kubeconfig.path().into());
    // It has a runtime of its own, on a thread of its own.
    Ok(tokio::task::spawn_blocking(move || palisade_cli::captured(all)).await?)
}

/// Bad edits of the profile at each of its stages, each taken back by another stage of the profile or by a rollback to
/// what its history has; and each time another namespace changes its stage.
pub(crate) async fn edits_around_a_namespace_in_deny(arena: &mut Arena) -> Result<Tally> {
    let (test, other) = ("red-stages", "red-stages-other");
    let label = names::stage_label(test);
    let set = |stage: &str| json!({"metadata": {"labels": {&label: stage}}});
    let namespace = arena.stage(test, |spec| spec["enforcement"] = enforcement("Deny")).await?;
    arena.cluster.patch_namespace(&namespace, &set("Deny")).await?;
    arena.cluster.create_tool(test, other, UID).await?;
    let siege = Siege::start(arena.admin(), &namespace);
    let mut edits = Tally::default();
    let (mut rollbacks, mut said) = (0, String::new());
    for (index, (name, field, value)) in mistakes().into_iter().step_by(arena.extent.pick(4, 1)).enumerate() {
        let stage = |offset: usize| STAGES[(index + offset) % 3];
        edits.tried += 1;
        match rejected(arena, &with(at(test, stage(0))?, &[(&format!("spec.{field}"), Some(value))])).await? {
            Ok(_) => edits.refused += 1,
            Err(why) => edits.holes.push(format!("a profile with {name}: {why}")),
        }
        arena.cluster.patch_namespace(other, &set(stage(1))).await?;
        if index % 2 == 1 {
            let outcome = roll_back(arena, test).await?;
            if outcome.code == 0 {
                rollbacks += 1;
                continue;
            }
            said = outcome.err;
        }
        let mut profile = at(test, stage(2))?;
        // Checks in Deny go to a policy of their own, and come back.
        if index % 4 < 2 {
            profile["spec"]["enforcement"]["checks"] = json!({"imageRegistries": "Deny", "hostNamespaces": "Deny"});
        }
        arena.cluster.apply_profile(&profile).await?;
    }
    if rollbacks == 0 {
        edits.holes.push(format!("no rollback succeeded: {said}"));
    }
    arena.enforce(&at(test, "Deny")?).await?;
    let mut tally = siege.end().await;
    tally.add(edits);
    arena.delete_profile(test).await?;
    Ok(tally)
}
