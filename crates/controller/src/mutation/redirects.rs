//! Profiles that redirect each other's images where both select a namespace: the status of both reports it.

use palisade_api::{MutationStatus, ToolSecurityProfile};
use palisade_compiler::{redirect_each_other, selects};

use crate::watch::store::Store;

/// Adds such profiles to the mutation status. Each of the two reports it at its next reconcile.
pub fn add_conflicts(store: &Store, profile: &ToolSecurityProfile, mut status: MutationStatus) -> MutationStatus {
    let name = profile.metadata.name.as_deref().unwrap_or_default();
    for (other, of_other) in store.others_in_force(name) {
        if !redirect_each_other(&profile.spec, &of_other.spec) {
            continue;
        }
        let tenants = store.tenants(name);
        let both = |spec| tenants.namespaces.iter().filter(move |one| selects(spec, &one.namespace.get()));
        let mut shared = both(&profile.spec).filter(|one| selects(&of_other.spec, &one.namespace.get()));
        let Some(first) = shared.next() else { continue };
        let text = format!(
            "{}; images are redirected twice, because profile {other} also redirects them, in {} namespaces, first \
             {}: redirect images in one profile only, or let each profile skip the target of the other",
            status.message,
            shared.count() + 1,
            first.namespace.get().name,
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
    fn redirect_conflict_is_reported_by_both_profiles() {
        let store = Store::default();
        for name in ["tool-a", "tool-b"] {
            let meta = json!({"metadata": {"name": name, "labels": {"tenancy": "tool"}}});
            let namespace: PartialObjectMeta<Namespace> = serde_json::from_value(meta).unwrap();
            store.observe_namespace(Event::Apply(namespace));
        }
        let [one, other] = [profile("one", "tool", "a.example"), profile("other", "tool", "b.example")];
        let (elsewhere, same) = (profile("elsewhere", "job", "c.example"), profile("same", "tool", "a.example"));
        for profile in [&one, &other, &elsewhere, &same] {
            store.set_in_force(profile);
        }
        let message = |profile| {
            add_conflicts(&store, profile, MutationStatus { engine: EngineInForce::None, message: "m".into() }).message
        };
        let expected = "m; images are redirected twice, because profile other also redirects them, in 2 \
                        namespaces, first tool-a: ";
        assert!(message(&one).starts_with(expected), "{}", message(&one));
        assert!(
            !message(&one).contains("profile same") && !message(&one).contains("profile elsewhere"),
            "{}",
            message(&one)
        );
        assert!(
            message(&other).contains("profile one") && message(&other).contains("profile same"),
            "{}",
            message(&other)
        );
        assert_eq!(message(&elsewhere), "m");
    }
}
