//! Owners that an object names twice (`dedupOwnerReferencesAndAddWarning` in apiserver `pkg/endpoints/handlers/rest.go`).

use serde_json::Value as Json;

/// Leaves each owner once. Returns the client's warning, if one was there twice.
pub(super) fn once(object: &mut Json, after_mutation: bool) -> Option<String> {
    let owners = object.pointer_mut("/metadata/ownerReferences")?.as_array_mut()?;
    let (mut kept, mut repeated) = (Vec::new(), Vec::new());
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            repeated.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    let when = if after_mutation { " after mutating admission happens" } else { "" };
    (!repeated.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_owner_counts_once_if_it_is_the_same_in_all() {
        let owner = |uid: &str, controller: bool| json!({"kind": "Pod", "uid": uid, "controller": controller});
        let (one, other, again) = (owner("a", true), owner("b", false), owner("a", false));
        let mut object = json!({"metadata": {"ownerReferences": [one, other, one, again, other]}});
        let warning = once(&mut object, true).unwrap_or_default();
        assert!(
            warning.contains("after mutating admission happens; ") && warning.ends_with("observed: a, b"),
            "{warning}"
        );
        assert_eq!(object["metadata"]["ownerReferences"], json!([one, other, again]));
        assert_eq!(once(&mut object, false), None);
    }
}
