//! From a profile's mutation and a call to the reply.

use palisade_api::{ToolSecurityParamsSpec, names};
use palisade_compiler::Mutation;

use crate::{
    MutationRequest, Plan, PodOperation,
    review::{Call, Reply},
};

/// The reply to a call.
#[derive(Debug)]
pub enum Mutated {
    /// The pod needs no change.
    Complete {
        /// For the controller: this webhook was called after another engine had mutated the pod. For the author of the
        /// pod: what is not added.
        warning: Option<String>,
    },
    /// The namespace has no parameters yet. Validation denies every pod there, with this reason.
    NoParameters,
    /// The pod needs this patch.
    Patch {
        /// RFC 6902.
        patch: Vec<u8>,
        /// A description of the changes.
        warning: Option<String>,
    },
}

impl From<Mutated> for Reply {
    fn from(mutated: Mutated) -> Self {
        match mutated {
            Mutated::Complete { warning } => Self { patch: None, warning },
            Mutated::NoParameters => Self::default(),
            Mutated::Patch { patch, warning } => Self { patch: Some(patch), warning },
        }
    }
}

/// How a profile mutates the pod of a call, with the parameters of the pod's namespace.
pub fn mutate(mutation: &Mutation, call: &Call, params: Option<&ToolSecurityParamsSpec>) -> Mutated {
    if mutation.parameterized && params.is_none() {
        return Mutated::NoParameters;
    }
    let operation = match call.operation.as_str() {
        "CREATE" => PodOperation::Create,
        _ => PodOperation::Update,
    };
    let patch = Plan::new([(mutation, params)]).patch(&MutationRequest {
        namespace: &call.namespace,
        operation,
        subresource: &call.subresource,
        user: &call.user.username,
        groups: &call.user.groups,
        pod: &call.pod,
        old_pod: &call.old_pod,
    });
    match serde_json::to_vec(&patch.operations) {
        Ok(operations) if !patch.is_empty() => Mutated::Patch { patch: operations, warning: patch.warning() },
        _ => Mutated::Complete { warning: asked(mutation, call).or_else(|| patch.warning()) },
    }
}

/// For the controller's probe: if the pod was complete when it came here, a policy has completed it.
fn asked(mutation: &Mutation, call: &Call) -> Option<String> {
    let annotations = call.pod.get("metadata")?.get("annotations")?;
    let probe = call.namespace == names::PROBE_NAMESPACE && annotations.get(names::PROBE_MUTATION_ANNOTATION).is_some();
    probe.then(|| names::probe_complete_warning(&mutation.profile))
}

#[cfg(test)]
mod tests {
    use palisade_api::ToolSecurityProfile;
    use palisade_compiler::compile;
    use proptest::prelude::*;
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::review::User;

    fn mutation() -> Mutation {
        let spec = json!({
            "namespaceSelector": {"matchLabels": {"a": "b"}},
            "parameters": [{"name": "uid", "type": "Integer", "default": 1000}],
            "users": {"runAsUser": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]}},
            "mutation": {"defaults": "Secure"},
        });
        let profile: ToolSecurityProfile = serde_json::from_value(json!({
            "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": "x"}, "spec": spec,
        }))
        .unwrap();
        compile(&profile).unwrap().mutation.unwrap()
    }

    fn call(pod: Json) -> Call {
        Call {
            namespace: "n".into(),
            operation: "CREATE".into(),
            subresource: String::new(),
            pod,
            old_pod: Json::Null,
            user: User::default(),
        }
    }

    fn params() -> ToolSecurityParamsSpec {
        let mut params = ToolSecurityParamsSpec::default();
        params.integers.insert("uid".into(), 1000);
        params
    }

    /// A value of any type.
    fn anything() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            "[a-z/:@.]{0,12}".prop_map(Json::from),
        ];
        let names = prop::sample::select(vec![
            "spec",
            "containers",
            "initContainers",
            "ephemeralContainers",
            "securityContext",
            "capabilities",
            "drop",
            "name",
            "image",
            "os",
            "metadata",
            "annotations",
            "runAsUser",
            "volumes",
            "seccompProfile",
            "x/y~z",
        ]);
        leaf.prop_recursive(6, 64, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                prop::collection::vec((names.clone(), inner), 0..5)
                    .prop_map(|fields| Json::Object(fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
            ]
        })
    }

    #[test]
    fn pod_is_not_mutated_without_parameters() {
        let mutation = mutation();
        let pod = json!({"spec": {"containers": [{"name": "a"}]}});
        assert!(matches!(mutate(&mutation, &call(pod.clone()), None), Mutated::NoParameters));
        assert!(matches!(mutate(&mutation, &call(pod), Some(&params())), Mutated::Patch { .. }));
    }

    proptest! {
        #[test]
        fn patch_of_any_pod_applies_and_is_idempotent(spec in anything(), top in anything()) {
            let mutation = mutation();
            for mut pod in [json!({"spec": spec}), top] {
                if let Mutated::Patch { patch, .. } = mutate(&mutation, &call(pod.clone()), Some(&params())) {
                    let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
                    json_patch::patch(&mut pod, &patch).unwrap();
                    let again = mutate(&mutation, &call(pod.clone()), Some(&params()));
                    prop_assert!(matches!(again, Mutated::Complete { .. }), "{pod}: {again:?}");
                }
            }
        }
    }
}
