//! Writes an object until the cluster has what is desired, and nothing else.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Resource,
    api::{Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::call::{ApiError, call};

/// How an object was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// By server-side apply.
    Apply,
    /// By server-side apply, which left fields of another writer in it, and then as a whole.
    Replace,
}

impl Verb {
    /// As a label of metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Replace => "replace",
        }
    }
}

/// Applies an object, and removes what others have added to it: server-side apply leaves their elements of maps and
/// keyed lists alone, and a foreign match condition could turn a policy off.
///
/// # Errors
/// Also if the object does not become equal: then something changes it on each write.
pub async fn converge<K>(
    api: &Api<K>,
    desired: &K,
    manager: &str,
    same: impl Fn(&K) -> bool,
) -> Result<(K, Verb), ApiError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let name = desired.meta().name.clone().unwrap_or_default();
    let mut again = 3;
    loop {
        again -= 1;
        match once(api, &name, desired, manager, &same).await {
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

async fn once<K>(
    api: &Api<K>,
    name: &str,
    desired: &K,
    manager: &str,
    same: impl Fn(&K) -> bool,
) -> Result<(K, Verb), ApiError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let apply = PatchParams::apply(manager).force();
    let applied = call(api.patch(name, &apply, &Patch::Apply(desired))).await?;
    if same(&applied) {
        return Ok((applied, Verb::Apply));
    }
    let mut exact = desired.clone();
    *exact.meta_mut() = with_foreign_metadata(desired.meta(), applied.meta());
    let manager = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
    let replaced = call(api.replace(name, &manager, &exact)).await?;
    if same(&replaced) {
        return Ok((replaced, Verb::Replace));
    }
    Err(ApiError::Differs { kind: K::kind(&()).into_owned(), name: name.to_owned() })
}

/// The desired metadata with labels, annotations, owners and finalizers of others: they change no verdict.
fn with_foreign_metadata(desired: &ObjectMeta, found: &ObjectMeta) -> ObjectMeta {
    let mut meta = found.clone();
    meta.managed_fields = None;
    meta.labels.get_or_insert_default().extend(desired.labels.clone().unwrap_or_default());
    meta.annotations.get_or_insert_default().extend(desired.annotations.clone().unwrap_or_default());
    let owners = meta.owner_references.get_or_insert_default();
    for owner in desired.owner_references.iter().flatten() {
        owners.retain(|found| found.uid != owner.uid);
        owners.push(owner.clone());
    }
    meta
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::same_meta;

    #[test]
    fn foreign_metadata_is_kept_and_ours_is_restored() {
        let map = |all: &[(&str, &str)]| Some(all.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect());
        let desired =
            ObjectMeta { labels: map(&[("ours", "1")]), annotations: map(&[("gen", "2")]), ..ObjectMeta::default() };
        let found = ObjectMeta {
            labels: map(&[("ours", "0"), ("theirs", "1")]),
            finalizers: Some(vec!["x".into()]),
            resource_version: Some("5".into()),
            ..ObjectMeta::default()
        };
        assert!(!same_meta(&desired, &found));
        let meta = with_foreign_metadata(&desired, &found);
        assert!(same_meta(&desired, &meta));
        assert_eq!(meta.labels, map(&[("ours", "1"), ("theirs", "1")]));
        assert_eq!((meta.finalizers, meta.resource_version), (found.finalizers, found.resource_version));
    }
}
