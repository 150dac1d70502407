//! Palisade's webhook: what it fills into pods where the API server does not do it by itself (`crates/webhook`), and
//! what kube-apiserver makes of its answers (`k8s.io/apiserver/pkg/admission/plugin/webhook/mutating`).
//!
//! Each profile is one entry of its registration, with `reinvocationPolicy: IfNeeded`; they are asked in the order of
//! their names. It is taken to answer, and in time.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::MatchResources;
use palisade_api::{ToolSecurityParamsSpec, names};
use palisade_compiler::Mutation;
use palisade_mutation::{self as mutation, Patch, Plan};
use serde_json::Value as Json;

use super::{
    Cluster, Operation, Request,
    matching::{self, Trouble},
    mutating::{Stop, internal},
};
use crate::objects::Sent;

/// A profile about whose pods the webhook is asked.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    mutation: Mutation,
    constraints: MatchResources,
}

impl Entry {
    pub fn new(mutation: Mutation) -> Self {
        Self { constraints: mutation.match_constraints(), mutation }
    }

    fn patch(&self, request: &Request, cluster: &Cluster) -> Patch {
        let operation = match request.operation {
            Operation::Create => mutation::Operation::Create,
            _ => mutation::Operation::Update,
        };
        let params = names::params(&self.mutation.profile);
        let params = cluster
            .stored(names::GROUP, "ToolSecurityParams")
            .find(|stored| stored.namespace == request.namespace && stored.name == params)
            .and_then(|stored| serde_json::from_value::<ToolSecurityParamsSpec>(stored.object["spec"].clone()).ok());
        Plan::new([(&self.mutation, params.as_ref())]).patch(&mutation::Request {
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

/// Asks the webhook, and again if something changed the object since.
#[derive(Default)]
pub(crate) struct Webhooks {
    /// The profiles that were asked since something changed.
    invoked: BTreeSet<String>,
    /// Those to ask again.
    again: BTreeSet<String>,
    /// What the object was when all had been asked.
    last: Option<Json>,
}

impl Webhooks {
    /// Asks about the object of a request, all profiles or those to ask `again`; whether something was changed. Adds what
    /// the client is warned of.
    pub fn pass(
        &mut self,
        cluster: &Cluster,
        request: &mut Request,
        sent: Sent<'_>,
        again: bool,
        warnings: &mut Vec<String>,
    ) -> Result<bool, Stop> {
        if again && request.object != self.last {
            self.again.append(&mut self.invoked);
        }
        let mut changed = false;
        for (name, entry) in cluster.webhooks() {
            match matching::matches(Some(&entry.constraints), request, cluster) {
                Ok(Some(_)) if !again || self.again.contains(name) => {}
                Ok(_) => continue,
                Err(Trouble::NoVerdict(why) | Trouble::Configuration(why)) => {
                    return Err(Stop::NoVerdict(format!("webhook of profile {name:?}: {why}")));
                }
            }
            let patch = entry.patch(request, cluster);
            warnings.extend(patch.warning());
            if let Some(object) = request.object.as_ref().filter(|_| !patch.is_empty()) {
                let refused = |text: &str| Stop::Denied(vec![internal(text)]);
                let mut patched = object.clone();
                patch.apply(&mut patched).map_err(|error| refused(&error))?;
                // What the types do not have is dropped without a word.
                let decoded = cluster.kinds().decode(Sent { object: &patched, ..sent });
                let decoded = decoded.map_err(|error| refused(&error.to_string()))?.object;
                if decoded != *object {
                    self.again.append(&mut self.invoked);
                    changed = true;
                }
                request.object = Some(decoded);
            }
            self.invoked.insert(name.clone());
        }
        self.last.clone_from(&request.object);
        Ok(changed)
    }
}
