//! Palisade's webhook in the offline API server: how it mutates pods if the API server does not support mutation
//! policies (`crates/webhook`). Each profile is one entry of its registration.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::MatchResources;
use palisade_admission::requests::{Cluster, Operation, Request, Webhook, WebhookAnswer};
use palisade_api::{ToolSecurityParamsSpec, names};
use palisade_compiler::Mutation;
use palisade_mutation::{MutationRequest, Patch, Plan, PodOperation};
use serde_json::Value as Json;

/// Registers Palisade's webhook for a profile: it mutates pods as a MutatingAdmissionPolicy would.
pub fn register(cluster: &mut Cluster, mutation: Mutation) {
    cluster.register(mutation.profile.clone(), webhook(mutation));
}

/// Palisade's webhook, as it answers for a profile.
pub fn webhook(mutation: Mutation) -> Arc<dyn Webhook> {
    Arc::new(Entry::new(mutation))
}

/// The webhook's entry for a profile.
#[derive(Debug)]
struct Entry {
    mutation: Mutation,
    constraints: MatchResources,
}

impl Entry {
    fn new(mutation: Mutation) -> Self {
        Self { constraints: mutation.match_constraints(), mutation }
    }

    fn patch(&self, request: &Request, cluster: &Cluster) -> Patch {
        let operation = match request.operation {
            Operation::Create => PodOperation::Create,
            _ => PodOperation::Update,
        };
        let params = names::params(&self.mutation.profile);
        let params = cluster
            .object(names::GROUP, "ToolSecurityParams", &request.namespace, &params)
            .and_then(|object| serde_json::from_value::<ToolSecurityParamsSpec>(object["spec"].clone()).ok());
        Plan::new([(&self.mutation, params.as_ref())]).patch(&MutationRequest {
            namespace: &request.namespace,
            operation,
            subresource: &request.subresource,
            user: &request.user.name,
            groups: &request.user.groups,
            pod: request.object.as_ref().unwrap_or(&Json::Null),
            old_pod: request.old_object.as_ref().unwrap_or(&Json::Null),
        })
    }
}

impl Webhook for Entry {
    fn constraints(&self) -> &MatchResources {
        &self.constraints
    }

    fn answer(&self, request: &Request, cluster: &Cluster) -> WebhookAnswer {
        let patch = self.patch(request, cluster);
        let object = request.object.clone().filter(|_| !patch.is_empty());
        let patched = object.map(|mut object| patch.apply(&mut object).map(|()| object));
        WebhookAnswer { object: patched.transpose(), warnings: patch.warning().into_iter().collect() }
    }
}
