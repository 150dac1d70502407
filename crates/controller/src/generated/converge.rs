//! Writes an object until the cluster has its desired state.

use std::fmt::Debug;

use kube::{
    Api, Resource,
    api::{Patch, PatchParams},
};
use palisade_kube_json::json::set;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value as Json, json};

use crate::api_request::{ApiError, call};

/// How an object was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// By server-side apply.
    Apply,
    /// By a merge patch, which removes fields of another writer, too.
    Patch,
}

impl Verb {
    /// As a label of metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Patch => "patch",
        }
    }
}

/// Writes an object until the cluster has its desired state. Additions of other clients to its spec are removed: a
/// foreign match condition could disable a policy. `observed` is the object from a watch, if it exists.
///
/// # Errors
///
/// Also if the object still differs, because another component changes it on each write.
pub async fn converge<K>(
    api: &Api<K>,
    desired: &K,
    observed: Option<&K>,
    manager: &str,
    same: impl Fn(&K) -> bool,
) -> Result<(K, Verb), ApiError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let mut found = observed.cloned();
    let mut again = 3;
    loop {
        again -= 1;
        match send(api, desired, found.as_ref(), manager, DryRun(false)).await {
            Ok((written, verb)) if same(&written) => return Ok((written, verb)),
            // Something of others is in it.
            Ok((written, _)) if again > 0 => found = Some(written),
            Ok(_) => {
                let name = desired.meta().name.clone().unwrap_or_default();
                return Err(ApiError::Differs { kind: K::kind(&()).into_owned(), name });
            }
            Err(error) if error.is_conflict() && again > 0 => {}
            Err(error) => return Err(error),
        }
    }
}

/// True for a dry run, which stores nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DryRun(pub bool);

/// Sends one request: server-side apply for a new object, and a merge patch with the differences for an existing
/// object.
///
/// Server-side apply is not used for both, because it keeps additions of other managers: elements of maps, of keyed
/// lists and of sets. A policy would need two writes, for each of which the API server compiles all expressions. A
/// binding whose action was edited could not be restored, because sets are merged to values that the API server rejects
/// (`Deny` beside `Warn`).
///
/// # Errors
///
/// Those of any request.
pub async fn send<K>(
    api: &Api<K>,
    desired: &K,
    found: Option<&K>,
    manager: &str,
    dry_run: DryRun,
) -> Result<(K, Verb), ApiError>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let name = desired.meta().name.as_deref().unwrap_or_default();
    if let Some(found) = found {
        let manager = Some(manager.to_owned());
        let params = PatchParams { field_manager: manager, dry_run: dry_run.0, ..PatchParams::default() };
        let unreadable = |error| ApiError::Unreachable(kube::Error::SerdeError(error));
        let patch = change(desired, found).map_err(unreadable)?;
        match call(api.patch(name, &params, &Patch::Merge(patch))).await {
            // Another client has deleted it.
            Err(error) if error.is_not_found() => {}
            written => return Ok((written?, Verb::Patch)),
        }
    }
    let apply = PatchParams::apply(manager).force();
    let apply = if dry_run.0 { apply.dry_run() } else { apply };
    Ok((call(api.patch(name, &apply, &Patch::Apply(desired))).await?, Verb::Apply))
}

/// Applies an object that cannot keep anything of others, because server-side apply treats the compared part as one
/// atomic field. It needs no permission to update.
///
/// # Errors
/// Also if the object does not become equal: then something changes it on each write.
pub async fn apply<K>(api: &Api<K>, desired: &K, manager: &str, same: impl Fn(&K) -> bool) -> Result<K, ApiError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let name = desired.meta().name.clone().unwrap_or_default();
    let manager = PatchParams::apply(manager).force();
    let applied = call(api.patch(&name, &manager, &Patch::Apply(desired))).await?;
    if same(&applied) { Ok(applied) } else { Err(ApiError::Differs { kind: K::kind(&()).into_owned(), name }) }
}

/// The merge patch from the current content to the desired content: all fields except metadata and status. Labels,
/// annotations and owners of other clients are kept: they do not affect verdicts.
fn change<K: Resource + Serialize>(desired: &K, found: &K) -> serde_json::Result<Json> {
    let meta = desired.meta();
    let mut metadata = Map::new();
    for (field, map) in [("labels", &meta.labels), ("annotations", &meta.annotations)] {
        if let Some(map) = map {
            metadata.insert(field.to_owned(), json!(map));
        }
    }
    let mut owners = found.meta().owner_references.clone().unwrap_or_default();
    let ours = meta.owner_references.as_deref().unwrap_or_default();
    if !ours.iter().all(|owner| owners.contains(owner)) {
        owners.retain(|found| ours.iter().all(|owner| owner.uid != found.uid));
        owners.extend(ours.iter().cloned());
        metadata.insert("ownerReferences".to_owned(), json!(owners));
    }
    let mut patch = difference(&content(found)?, &content(desired)?);
    set(&mut patch, &["metadata"], Json::Object(metadata));
    Ok(patch)
}

/// The content of an object without its identity and its observed state.
fn content<K: Serialize>(of: &K) -> serde_json::Result<Json> {
    let mut content = serde_json::to_value(of)?;
    if let Json::Object(fields) = &mut content {
        fields.retain(|field, _| !matches!(field.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
    }
    Ok(content)
}

/// The merge patch (RFC 7396) that makes `desired` of `found`.
fn difference(found: &Json, desired: &Json) -> Json {
    let (Json::Object(found), Json::Object(desired)) = (found, desired) else { return desired.clone() };
    let removed = found.keys().filter(|key| !desired.contains_key(*key)).map(|key| (key.clone(), Json::Null));
    let changed = desired.iter().filter(|(key, value)| found.get(*key) != Some(value));
    let changed = changed.map(|(key, value)| (key.clone(), difference(found.get(key).unwrap_or(&Json::Null), value)));
    Json::Object(removed.chain(changed).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn foreign_metadata_is_kept_and_ours_is_restored() {
        let object = |metadata: Json| -> ConfigMap { serde_json::from_value(json!({"metadata": metadata})).unwrap() };
        let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "Node", "name": "x", "uid": uid});
        let desired = object(json!({"labels": {"ours": "1"}, "ownerReferences": [owner("a")]}));
        let found = object(json!({
            "labels": {"ours": "0", "theirs": "1"}, "finalizers": ["x"], "ownerReferences": [owner("b")],
        }));
        let metadata = json!({"labels": {"ours": "1"}, "ownerReferences": [owner("b"), owner("a")]});
        assert_eq!(change(&desired, &found).unwrap()["metadata"], metadata);
        assert_eq!(change(&desired, &desired).unwrap(), json!({"metadata": {"labels": {"ours": "1"}}}));
    }

    #[test]
    fn content_outside_of_the_spec_becomes_what_is_desired() {
        let object = |content: Json| -> ConfigMap { serde_json::from_value(content).unwrap() };
        let found = object(json!({"data": {"a": "1", "b": "1"}, "immutable": true}));
        let desired = object(json!({"data": {"a": "2"}}));
        let patch = json!({"data": {"a": "2", "b": null}, "immutable": null, "metadata": {}});
        assert_eq!(change(&desired, &found).unwrap(), patch);
    }

    #[test]
    fn patch_restores_what_others_changed_and_sends_nothing_else() {
        let desired = json!({"a": [{"x": 1}], "b": {"c": 1, "d": 2}, "e": {}});
        for (found, patch) in [
            (desired.clone(), json!({})),
            (json!({"a": [{"x": 1}, {"y": 2}], "b": {"c": 1, "d": 2}, "e": {}}), json!({"a": [{"x": 1}]})),
            (
                json!({"a": [{"x": 1}], "b": {"c": 1, "x": 3}, "e": {"f": 0}, "g": []}),
                json!({"b": {"d": 2, "x": null}, "e": {"f": null}, "g": null}),
            ),
            (json!({"b": 7}), desired.clone()),
        ] {
            assert_eq!(difference(&found, &desired), patch, "{found}");
        }
    }
}
