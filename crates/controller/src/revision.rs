//! The last good spec of a profile, in a `ControllerRevision`: what stays in force when the profile is edited into
//! something that is not acceptable and the controller is restarted then.

use k8s_openapi::{
    api::apps::v1::ControllerRevision,
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, runtime::RawExtension},
};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
};
use palisade_api::{ToolSecurityProfileSpec, names};
use palisade_compiler::owner_reference;
use serde::{Deserialize, Serialize};

use crate::{
    call::{ApiError, call, gone},
    compile::Good,
};

/// What is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// The uid of the profile: another one of the same name is another one.
    pub uid: String,
    /// The generation of the spec.
    pub generation: i64,
    /// The spec.
    pub spec: ToolSecurityProfileSpec,
}

fn api(client: &Client) -> Api<ControllerRevision> {
    Api::namespaced(client.clone(), names::OPERATOR_NAMESPACE)
}

/// Reads it.
pub async fn load(client: &Client, profile: &ObjectMeta) -> Result<Option<Saved>, ApiError> {
    let name = names::revision(profile.name.as_deref().unwrap_or_default());
    let data = call(api(client).get_opt(&name)).await?.and_then(|revision| revision.data);
    let saved: Option<Saved> = data.and_then(|data| serde_json::from_value(data.0).ok());
    Ok(saved.filter(|saved| Some(&saved.uid) == profile.uid.as_ref()))
}

/// Writes it, if it is not there already.
pub async fn save(client: &Client, good: &Good) -> Result<(), ApiError> {
    let meta = &good.profile.metadata;
    let saved = Saved {
        uid: meta.uid.clone().unwrap_or_default(),
        generation: good.generation(),
        spec: good.profile.spec.clone(),
    };
    if load(client, meta).await?.as_ref() == Some(&saved) {
        return Ok(());
    }
    let profile = meta.name.as_deref().unwrap_or_default();
    let labels = [(names::MANAGED_BY_LABEL, names::MANAGED_BY), (names::PROFILE_LABEL, profile)];
    let revision = ControllerRevision {
        metadata: ObjectMeta {
            name: Some(names::revision(profile)),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            owner_references: owner_reference(&good.profile).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: serde_json::to_value(&saved).ok().map(RawExtension),
        revision: saved.generation,
    };
    // The data of a revision cannot be changed. In the moment between, what is lost is only what to do if the
    // controller stops right here and the profile becomes invalid before it is back.
    delete(client, profile).await?;
    let manager =
        PostParams { field_manager: Some(names::field_manager::REVISION.to_owned()), ..PostParams::default() };
    call(api(client).create(&manager, &revision)).await.map(drop)
}

/// Removes it.
pub async fn delete(client: &Client, profile: &str) -> Result<(), ApiError> {
    gone(api(client).delete(&names::revision(profile), &DeleteParams::default())).await.map(drop)
}
