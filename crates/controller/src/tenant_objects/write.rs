//! Writes and deletes generated objects.
//!
//! Objects are written by server-side apply with a separate field manager. Fields that another client has changed with
//! an update are taken back. Fields that another manager has applied, and objects of other owners, remain unchanged
//! unless the template adopts them.

use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions},
    core::{ObjectMeta, PartialObjectMeta},
};
use palisade_api::names;
use palisade_compiler::{GeneratedObject, ObjectType};
use palisade_kube_json::json::set;
use serde_json::{Value as Json, json};

use crate::{
    api_request::{ApiError, call, gone},
    context::Context,
    object_plan::plan::{ObjectAction, is_as_desired},
    watch::object_store::{ObjectInNamespace, observed},
};

/// Why an object could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("{0}")]
    Kind(String),
    #[error("it exists and belongs to {0}; delete it, rename the template's object, or set adopt: true")]
    Foreign(String),
    #[error("{managers} applied some of its fields: {error}; remove the fields from one of them, or set adopt: true")]
    Conflict { managers: String, error: ApiError },
    #[error(transparent)]
    Api(#[from] ApiError),
}

impl WriteError {
    /// The namespace is being deleted, or does not exist.
    pub fn is_without_namespace(&self) -> bool {
        matches!(self, Self::Api(error) if error.is_without_namespace())
    }
}

/// The result of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Applied,
    Removed,
}

/// The objects of a kind in a namespace, as metadata.
struct Objects<'a> {
    cx: &'a Context,
    object_type: &'a ObjectType,
    api: Api<PartialObjectMeta<DynamicObject>>,
}

/// Performs an action.
pub async fn perform(
    cx: &Context,
    profile: &str,
    namespace: &str,
    action: &ObjectAction,
) -> Result<Written, WriteError> {
    let object_type = action.object_type();
    let resource: ApiResource = cx.store.objects.kind(object_type).map_err(WriteError::Kind)?.api_resource();
    let api = Api::namespaced_with(cx.client.clone(), namespace, &resource);
    let objects = Objects { cx, object_type, api };
    match action {
        ObjectAction::Apply { object, observed } => {
            objects.apply(profile, object, observed.is_some()).await.map(|()| Written::Applied)
        }
        ObjectAction::Remove(object) => objects.remove(namespace, object).await.map(|()| Written::Removed),
    }
}

impl Objects<'_> {
    async fn apply(&self, profile: &str, object: &GeneratedObject, is_known: bool) -> Result<(), WriteError> {
        if !is_known && let Some(found) = call(self.api.get_metadata_opt(&object.name)).await? {
            let owner = observed(&found.metadata);
            if !owner.profile.is_empty() && owner.profile != profile {
                return Err(WriteError::Foreign(format!("profile {}", owner.profile)));
            }
            // Its labels may be gone. Then the applied fields show that it was generated.
            let is_own = (owner.profile == profile && !owner.template.is_empty()) || owner.fields.is_some();
            if !is_own && !object.adopt {
                let managers = managers(&found.metadata, |_| true);
                let managers = if managers.is_empty() { "another owner".to_owned() } else { managers };
                return Err(WriteError::Foreign(managers));
            }
            if !is_own {
                return self.force(object, &found.metadata).await;
            }
        }
        let apply = PatchParams::apply(names::field_manager::GENERATE);
        match call(self.api.patch(&object.name, &apply, &Patch::Apply(&object.object))).await {
            Ok(written) => self.wrote(object, &written.metadata),
            Err(error) if error.is_conflict() => {
                let Some(found) = call(self.api.get_metadata_opt(&object.name)).await? else {
                    return Err(error.into());
                };
                let managers = managers(&found.metadata, |operation| operation == "Apply");
                if !managers.is_empty() && !object.adopt {
                    return Err(WriteError::Conflict { managers, error });
                }
                self.force(object, &found.metadata).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes over the fields, if the object is still the one that was read.
    async fn force(&self, object: &GeneratedObject, found: &ObjectMeta) -> Result<(), WriteError> {
        let mut body = object.object.clone();
        set(&mut body, &["metadata", "uid"], found.uid.clone());
        set(&mut body, &["metadata", "resourceVersion"], found.resource_version.clone());
        let apply = PatchParams::apply(names::field_manager::GENERATE).force();
        let written = call(self.api.patch(&object.name, &apply, &Patch::Apply(&body))).await?;
        self.wrote(object, &written.metadata)
    }

    fn wrote(&self, object: &GeneratedObject, written: &ObjectMeta) -> Result<(), WriteError> {
        self.cx.metrics.writes.wrote("GeneratedObject", "apply");
        let now = self.cx.store.objects.wrote(self.object_type, written);
        if is_as_desired(object, &now) {
            return Ok(());
        }
        let kind = self.object_type.kind.clone();
        Err(ApiError::Differs { kind, name: object.name.clone() }.into())
    }

    async fn remove(&self, namespace: &str, object: &ObjectInNamespace) -> Result<(), WriteError> {
        let ObjectInNamespace { name, observed, .. } = object;
        if observed.is_orphaned {
            let patch = Patch::Merge(orphaned(&observed.uid));
            let manager = PatchParams {
                field_manager: Some(names::field_manager::GENERATE.to_owned()),
                ..PatchParams::default()
            };
            gone(self.api.patch(name, &manager, &patch)).await?;
            self.cx.metrics.writes.wrote("GeneratedObject", "patch");
        } else {
            let preconditions = Preconditions { uid: Some(observed.uid.clone()), resource_version: None };
            let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
            gone(self.api.delete(name, &parameters)).await?;
            self.cx.metrics.writes.wrote("GeneratedObject", "delete");
        }
        tracing::info!(
            namespace,
            kind = self.object_type.kind,
            name,
            orphaned = observed.is_orphaned,
            "removed a generated object"
        );
        Ok(())
    }
}

/// The patch that removes what marks an object as generated. The uid keeps it from changing another object.
fn orphaned(uid: &str) -> Json {
    json!({"metadata": {
        "uid": uid,
        "labels": {names::MANAGED_BY_LABEL: null, names::PROFILE_LABEL: null, names::TEMPLATE_LABEL: null},
        "annotations": {names::DIGEST_ANNOTATION: null, names::DELETION_POLICY_ANNOTATION: null},
    }})
}

/// The other field managers of an object, by operation. Those of subresources such as the status do not count.
fn managers(meta: &ObjectMeta, operation: impl Fn(&str) -> bool) -> String {
    let others = meta.managed_fields.iter().flatten().filter(|entry| {
        entry.manager.as_deref() != Some(names::field_manager::GENERATE)
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
            && operation(entry.operation.as_deref().unwrap_or_default())
    });
    let mut names: Vec<_> = others.filter_map(|entry| entry.manager.as_deref()).collect();
    names.dedup();
    names.join(", ")
}
