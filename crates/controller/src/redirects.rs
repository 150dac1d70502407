//! Profiles that redirect each other's images where both select a namespace: told in the status of both.

use palisade_api::{MutationStatus, ToolSecurityProfile};
use palisade_compiler::{redirect_each_other, selects};

use crate::store::Store;

/// Adds it to what is said of who changes pods. Seen at the next pass over each of the two.
pub fn told(store: &Store, profile: &ToolSecurityProfile, mut status: MutationStatus) -> MutationStatus {
    let name = profile.metadata.name.as_deref().unwrap_or_default();
    for (other, of_other) in store.effective_besides(name) {
        if !redirect_each_other(&profile.spec, &of_other.spec) {
            continue;
        }
        let tenants = store.tenants(name);
        let both = |spec| tenants.namespaces.iter().filter(move |one| selects(spec, &one.namespace));
        let mut shared = both(&profile.spec).filter(|one| selects(&of_other.spec, &one.namespace));
        let Some(first) = shared.next() else { continue };
        let text = format!(
            "{}; images are redirected by profile {other}, too, and then again, in {} namespaces, first {}: let one of \
             them redirect, or have each skip the other's target",
            status.message,
            shared.count() + 1,
            first.namespace.name,
        );
        status.message = text.chars().take(1000).collect();
    }
    status
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::Namespace;
    use kube::{core::PartialObjectMeta, runtime::watcher::Event};
    use palisade_api::EngineInForce;
    use serde_json::json;

    use super::*;

    fn profile(name: &str, tenancy: &str, target: &str) -> Arc<ToolSecurityProfile> {
        let spec = json!({
            "namespaceSelector": {"matchLabels": {"tenancy": tenancy}}, "images": {"redirect": {"target": target}},
        });
        let meta = json!({"name": name});
        let profile = json!({"apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": meta, "spec": spec});
        Arc::new(serde_json::from_value(profile).unwrap())
    }

    #[test]
    fn both_are_told_where_both_select() {
        let store = Store::default();
        for name in ["tool-a", "tool-b"] {
            let meta = json!({"metadata": {"name": name, "labels": {"tenancy": "tool"}}});
            let namespace: PartialObjectMeta<Namespace> = serde_json::from_value(meta).unwrap();
            store.see_namespace(Event::Apply(namespace));
        }
        let [one, other] = [profile("one", "tool", "a.example"), profile("other", "tool", "b.example")];
        let (elsewhere, same) = (profile("elsewhere", "job", "c.example"), profile("same", "tool", "a.example"));
        for profile in [&one, &other, &elsewhere, &same] {
            store.set_effective(profile);
        }
        let told = |profile| {
            told(&store, profile, MutationStatus { engine: EngineInForce::None, message: "m".into() }).message
        };
        let expected =
            "m; images are redirected by profile other, too, and then again, in 2 namespaces, first tool-a: ";
        assert!(told(&one).starts_with(expected), "{}", told(&one));
        assert!(!told(&one).contains("profile same") && !told(&one).contains("profile elsewhere"), "{}", told(&one));
        assert!(told(&other).contains("profile one") && told(&other).contains("profile same"), "{}", told(&other));
        assert_eq!(told(&elsewhere), "m");
    }
}
