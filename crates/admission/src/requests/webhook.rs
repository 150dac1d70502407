//! Mutating webhooks with answers that the caller knows, and how kube-apiserver applies them
//! (`k8s.io/apiserver/pkg/admission/plugin/webhook/mutating`).
//!
//! Each is assumed to have `reinvocationPolicy: IfNeeded` and no match conditions, and to answer in time. They run in
//! the order of their names.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::{
    Cluster, Request, WebhookAnswer, matching,
    refusal::{MatchError, Stop, internal},
};
use crate::objects::Submission;

/// Asks the webhooks, and again if something changed the object since.
#[derive(Default)]
pub(crate) struct Webhooks {
    /// Those that were asked since something changed.
    invoked: BTreeSet<String>,
    /// Those to ask again.
    again: BTreeSet<String>,
    /// The object after all had been called.
    last: Option<Json>,
}

impl Webhooks {
    /// Calls them for the object of a request, all of them or those to call `again`. Returns whether one changed it.
    /// Adds the client's warnings.
    pub fn pass(
        &mut self,
        cluster: &Cluster,
        request: &mut Request,
        sent: Submission<'_>,
        again: bool,
        warnings: &mut Vec<String>,
    ) -> Result<bool, Stop> {
        if again && request.object != self.last {
            self.again.append(&mut self.invoked);
        }
        let mut changed = false;
        for (name, webhook) in cluster.webhooks() {
            match matching::matches(Some(webhook.constraints()), request, cluster) {
                Ok(Some(_)) if !again || self.again.contains(name) => {}
                Ok(_) => continue,
                Err(MatchError::NoVerdict(why) | MatchError::Configuration(why)) => {
                    return Err(Stop::NoVerdict(format!("webhook {name:?}: {why}")));
                }
            }
            let WebhookAnswer { object, warnings: said } = webhook.answer(request, cluster);
            warnings.extend(said);
            let refused = |text: &str| Stop::Denied(vec![internal(text)]);
            if let Some(patched) = object.map_err(|error| refused(&error))? {
                // What the types do not have is dropped without a word.
                let decoded = cluster.kinds().decode(Submission { object: &patched, ..sent });
                let decoded = decoded.map_err(|error| refused(&error.to_string()))?.object;
                if request.object.as_ref() != Some(&decoded) {
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
