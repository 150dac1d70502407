//! Writes an object until the cluster has what is desired, and nothing else.

use std::fmt::Debug;

use kube::{
    Api, Resource,
    api::{Patch, PatchParams},
};
use palisade_objects::json::Change as _;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value as Json, json};

use crate::{
    call::{ApiError, call},
    compare::same_meta,
};

/// How an object was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// By server-side apply.
    Apply,
    /// By a merge patch of the spec, which removes fields of another writer, too.
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

/// Applies an object, and removes what others have added to its spec: server-side apply leaves their elements of maps and
/// keyed lists alone, and a foreign match condition could turn a policy off.
///
/// `observed` is the object as a watch has shown it. If others have changed its spec alone, one patch restores it: the API
/// server compiles all expressions of a policy for each write.
///
/// # Errors
/// Also if the object does not become equal: then something changes it on each write.
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
    if let Some(observed) = observed.filter(|observed| same_meta(desired.meta(), observed.meta())) {
        match patch_spec(api, desired, observed, manager).await {
            Ok(restored) if same(&restored) => return Ok((restored, Verb::Patch)),
            // It is not as it was observed any more.
            Ok(_) => {}
            Err(error) if error.is_not_found() || error.is_refusal() || error.is_conflict() => {}
            Err(error) => return Err(error),
        }
    }
    let mut again = 3;
    loop {
        again -= 1;
        match once(api, desired, manager, &same).await {
            Err(error) if error.is_conflict() && again > 0 => {}
            other => return other,
        }
    }
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

async fn once<K>(api: &Api<K>, desired: &K, manager: &str, same: impl Fn(&K) -> bool) -> Result<(K, Verb), ApiError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let name = desired.meta().name.clone().unwrap_or_default();
    let apply = PatchParams::apply(manager).force();
    let applied = call(api.patch(&name, &apply, &Patch::Apply(desired))).await?;
    if same(&applied) {
        return Ok((applied, Verb::Apply));
    }
    let patched = patch_spec(api, desired, &applied, manager).await?;
    if same(&patched) {
        return Ok((patched, Verb::Patch));
    }
    Err(ApiError::Differs { kind: K::kind(&()).into_owned(), name })
}

/// Changes the spec from what was found to what is desired. What does not differ is not sent.
async fn patch_spec<K>(api: &Api<K>, desired: &K, found: &K, manager: &str) -> Result<K, ApiError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let spec = |of: &K| serde_json::to_value(of).map(|mut of| of.at_mut(&["spec"]).take());
    let unreadable = |error| ApiError::Unreachable(kube::Error::SerdeError(error));
    let patch = difference(&spec(found).map_err(unreadable)?, &spec(desired).map_err(unreadable)?);
    let params = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    let name = desired.meta().name.as_deref().unwrap_or_default();
    call(api.patch(name, &params, &Patch::Merge(json!({"spec": patch})))).await
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
    use super::*;

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
