//! The generations of a profile that took effect, each in a `ControllerRevision`. After a restart, the controller
//! enforces the last one if the profile itself is not accepted; the webhook mutates pods by it.

use k8s_openapi::{api::apps::v1::ControllerRevision, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use palisade_api::{
    names,
    revision::{KEPT, Revision, by_age},
};
use palisade_compiler::owner_reference;
use palisade_runtime::lists;

use crate::{
    api_request::{ApiError, call, gone},
    generations::accepted::AcceptedProfile,
};

fn api(client: &Client) -> Api<ControllerRevision> {
    Api::namespaced(client.clone(), names::OPERATOR_NAMESPACE)
}

/// All revisions of a profile, the newest first, including the one that earlier versions of Palisade wrote under
/// another name.
async fn all(client: &Client, profile: &str) -> Result<Vec<ControllerRevision>, ApiError> {
    let of_profile = ListParams::default().labels(&format!("{}={profile}", names::PROFILE_LABEL));
    let mut found = call(lists::all(&api(client), &of_profile)).await?;
    found.sort_by(|one, other| by_age(other, one));
    Ok(found)
}

/// The newest revision of this profile, and not of an earlier one with its name.
pub async fn load(client: &Client, profile: &ObjectMeta) -> Result<Option<Revision>, ApiError> {
    let found = all(client, profile.name.as_deref().unwrap_or_default()).await?;
    Ok(found.iter().find_map(|object| of_uid(object, profile.uid.as_deref())))
}

fn of_uid(object: &ControllerRevision, uid: Option<&str>) -> Option<Revision> {
    Revision::read(object).ok().filter(|revision| Some(revision.uid.as_str()) == uid)
}

/// Writes the revision of the generation in effect if it is missing, then deletes revisions that are too old.
pub async fn save(client: &Client, accepted: &AcceptedProfile) -> Result<(), ApiError> {
    let meta = &accepted.profile.metadata;
    let profile = meta.name.as_deref().unwrap_or_default();
    let revision = Revision::of(&accepted.profile);
    let mut found = all(client, profile).await?;
    let name = |object: &ControllerRevision| object.metadata.name.clone().unwrap_or_default();
    if !found.iter().any(|object| Revision::read(object).as_ref() == Ok(&revision)) {
        let object = revision.object(profile, owner_reference(&accepted.profile));
        // A different object with this name is damaged, or belongs to a profile that is gone.
        if found.iter().any(|other| name(other) == name(&object)) {
            gone(api(client).delete(&name(&object), &DeleteParams::default())).await?;
            found.retain(|other| name(other) != name(&object));
        }
        let manager =
            PostParams { field_manager: Some(names::field_manager::REVISION.to_owned()), ..PostParams::default() };
        found.insert(0, call(api(client).create(&manager, &object)).await?);
    }
    // Readers take the newest revision, so it must be the one in force. Revisions of an earlier profile with this name
    // are of no use.
    let in_force = |object: &&ControllerRevision| {
        of_uid(object, meta.uid.as_deref()).is_some_and(|one| one.generation <= revision.generation)
    };
    let (own, others): (Vec<_>, Vec<_>) = found.iter().partition(in_force);
    for object in own.into_iter().skip(KEPT).chain(others) {
        gone(api(client).delete(&name(object), &DeleteParams::default())).await?;
    }
    Ok(())
}

/// Removes all of them.
pub async fn delete(client: &Client, profile: &str) -> Result<(), ApiError> {
    for object in all(client, profile).await? {
        let name = object.metadata.name.unwrap_or_default();
        gone(api(client).delete(&name, &DeleteParams::default())).await?;
    }
    Ok(())
}
