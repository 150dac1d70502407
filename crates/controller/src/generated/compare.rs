//! Comparison of the cluster with the desired objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use palisade_api::names::Part;
use serde::Serialize;
use serde_json::Value as Json;

use crate::{
    generations::accepted::AcceptedProfile,
    watch::store::{Store, ValidatingObject},
};

/// True if the cluster has exactly the compiled policies and bindings.
pub fn is_bundle(store: &Store, profile: &str, accepted: &AcceptedProfile) -> bool {
    Part::ALL.into_iter().all(|part| is_part(store, profile, accepted, part))
}

/// The same of one part.
pub fn is_part(store: &Store, profile: &str, accepted: &AcceptedProfile, part: Part) -> bool {
    let found = store.pair(profile, part);
    match accepted.compiled.bundle.part(part) {
        Some(pair) => {
            found.policy.as_ref().is_some_and(|found| is_desired(&pair.policy, found))
                && found.bindings.len() == pair.bindings().count()
                && pair.bindings().all(|one| found.binding(one).is_some_and(|found| is_desired(one, found)))
        }
        None => found.metadata().next().is_none(),
    }
}

/// True if API servers compile a policy with variables when the compiled policies and bindings are written. They compile
/// a policy whose object changes, and one that gets its first binding ([`crate::pacing`]).
pub fn needs_compilation(store: &Store, profile: &str, accepted: &AcceptedProfile) -> bool {
    accepted.compiled.bundle.pairs().any(|(part, pair)| {
        let found = store.pair(profile, part);
        let variables = pair.policy.spec.as_ref().and_then(|spec| spec.variables.as_ref());
        let name = pair.policy.metadata.name.as_ref();
        let is_bound = found.bindings.values().any(|binding| Some(&binding.spec.policy_name) == name);
        let same = found.policy.is_some_and(|found| is_desired(&pair.policy, &found));
        variables.is_some_and(|variables| !variables.is_empty()) && !(is_bound && same)
    })
}

/// True if a policy or binding has its desired state.
pub fn is_desired<K: ValidatingObject>(desired: &K, found: &K) -> bool {
    same_meta(desired.meta(), found.meta()) && same_spec(desired.spec(), found.spec())
}

/// True if the metadata has all desired entries. Additional entries cause no harm.
pub fn same_meta(desired: &ObjectMeta, found: &ObjectMeta) -> bool {
    let has = |desired: &Option<_>, found: &Option<std::collections::BTreeMap<String, String>>| {
        let found = found.as_ref();
        let mut desired = desired.iter().flatten();
        desired.all(|(key, value): (&String, &String)| found.and_then(|found| found.get(key)) == Some(value))
    };
    let owners = found.owner_references.as_deref().unwrap_or_default();
    has(&desired.labels, &found.labels)
        && has(&desired.annotations, &found.annotations)
        && desired.owner_references.iter().flatten().all(|owner| owners.contains(owner))
}

/// True if two specs have the same meaning. The API server treats unset and empty fields of policies and bindings
/// alike.
pub fn same_spec<T: Serialize>(desired: &T, found: &T) -> bool {
    match (serde_json::to_value(desired), serde_json::to_value(found)) {
        (Ok(desired), Ok(found)) => normal(desired) == normal(found),
        _ => false,
    }
}

/// Without nulls, empty lists and empty maps.
fn normal(value: Json) -> Option<Json> {
    match value {
        Json::Null => None,
        Json::Array(items) => {
            // An element is never dropped: it is empty, not absent.
            let items: Vec<_> = items.into_iter().map(|item| normal(item).unwrap_or(Json::Null)).collect();
            (!items.is_empty()).then_some(Json::Array(items))
        }
        Json::Object(map) => {
            let map: serde_json::Map<_, _> =
                map.into_iter().filter_map(|(key, value)| Some((key, normal(value)?))).collect();
            (!map.is_empty()).then_some(Json::Object(map))
        }
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn specs_are_equal_up_to_absent_and_empty_fields() {
        let desired = json!({"a": 1, "selector": {}, "list": [], "rules": [{"x": ""}, {}]});
        for same in [
            json!({"a": 1, "rules": [{"x": ""}, {}]}),
            json!({"a": 1, "selector": {"matchLabels": {}}, "list": null, "rules": [{"x": "", "y": []}, {"z": {}}]}),
        ] {
            assert!(same_spec(&desired, &same), "{same}");
        }
        for other in [
            json!({"a": 2, "rules": [{"x": ""}, {}]}),
            json!({"a": 1, "rules": [{"x": ""}]}),
            json!({"a": 1, "rules": [{}, {}]}),
            json!({"a": 1, "rules": [{"x": ""}, {}], "matchConditions": [{"name": "foreign"}]}),
        ] {
            assert!(!same_spec(&desired, &other), "{other}");
        }
    }
}
