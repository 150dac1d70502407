//! A namespace that its label keeps in Deny, while its profile and the stages of others change.

use palisade_api::names;
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

/// Bad edits of the profile at each of its stages, each taken back by another stage of the profile; and each time
/// another namespace changes its stage.
pub(crate) async fn edits_around_a_namespace_in_deny(arena: &mut Arena) -> Result<Tally> {
    let (test, other) = ("red-stages", "red-stages-other");
    let label = names::stage_label(test);
    let set = |stage: &str| json!({"metadata": {"labels": {&label: stage}}});
    let namespace = arena.stage(test, |spec| spec["enforcement"] = enforcement("Deny")).await?;
    arena.cluster.patch_namespace(&namespace, &set("Deny")).await?;
    arena.cluster.create_tool(test, other, UID).await?;
    let siege = Siege::start(arena.admin(), &namespace);
    let mut edits = Tally::default();
    for (index, (name, field, value)) in mistakes().into_iter().step_by(arena.extent.pick(4, 1)).enumerate() {
        let stage = |offset: usize| STAGES[(index + offset) % 3];
        edits.tried += 1;
        match rejected(arena, &with(at(test, stage(0))?, &[(&format!("spec.{field}"), Some(value))])).await? {
            Ok(_) => edits.refused += 1,
            Err(said) => edits.holes.push(format!("a profile with {name}: {said}")),
        }
        arena.cluster.patch_namespace(other, &set(stage(1))).await?;
        arena.cluster.apply_profile(&at(test, stage(2))?).await?;
    }
    arena.enforce(&at(test, "Deny")?).await?;
    let mut tally = siege.end().await;
    tally.add(edits);
    arena.delete_profile(test).await?;
    Ok(tally)
}
