//! Attacks by single requests, as the tenant.

use serde_json::json;

use crate::{
    Result,
    arena::Arena,
    images,
    pods::{self, By},
    table::{Tally, make},
    volumes,
};

/// Each restricted field of pods against the example for tools.
pub(crate) async fn pods_of_tools(arena: &mut Arena) -> Result<Tally> {
    let namespace = arena.stage("red-pods", |_| ()).await?;
    let attacks = pods::attacks(By::Toolforge, &namespace, "target").into_iter();
    let tally = make(&arena.tenant, attacks.step_by(arena.extent.pick(2, 1)).collect()).await;
    arena.delete_profile("red-pods").await?;
    Ok(tally)
}

/// Each restricted field of pods against the Restricted level.
pub(crate) async fn pods_at_restricted(arena: &mut Arena) -> Result<Tally> {
    let namespace = restricted(arena, "red-restricted").await?;
    let attacks = pods::attacks(By::Restricted, &namespace, "target").into_iter();
    let tally = make(&arena.tenant, attacks.step_by(arena.extent.pick(5, 1)).collect()).await;
    arena.delete_profile("red-restricted").await?;
    Ok(tally)
}

/// A profile that says nothing, which is Restricted.
async fn restricted(arena: &Arena, test: &str) -> Result<String> {
    let kept = ["namespaceSelector", "enforcement"];
    arena
        .stage(test, |spec| {
            let fields = spec.as_object().cloned().unwrap_or_default();
            *spec = fields.into_iter().filter(|(key, _)| kept.contains(&key.as_str())).collect();
            spec["baseline"] = json!("Restricted");
        })
        .await
}

/// Each kind of volume against both.
pub(crate) async fn kinds_of_volumes(arena: &mut Arena) -> Result<Tally> {
    let namespace = arena.stage("red-volumes", |_| ()).await?;
    let mut tally = make(&arena.tenant, volumes::kinds_of_volumes(By::Toolforge, &namespace)).await;
    arena.delete_profile("red-volumes").await?;
    let namespace = restricted(arena, "red-volumes-2").await?;
    tally.add(make(&arena.tenant, volumes::kinds_of_volumes(By::Restricted, &namespace)).await);
    arena.delete_profile("red-volumes-2").await?;
    Ok(tally)
}

/// Paths of the node near those that tools may use.
pub(crate) async fn host_paths(arena: &mut Arena) -> Result<Tally> {
    let namespace = arena.stage("red-paths", |_| ()).await?;
    let tally = make(&arena.tenant, volumes::paths(&namespace)).await;
    arena.delete_profile("red-paths").await?;
    Ok(tally)
}

/// References of images near those that tools may use.
pub(crate) async fn image_references(arena: &mut Arena) -> Result<Tally> {
    let namespace = arena.stage("red-images", |_| ()).await?;
    let tally = make(&arena.tenant, images::attacks(&namespace, "target")).await;
    arena.delete_profile("red-images").await?;
    Ok(tally)
}
