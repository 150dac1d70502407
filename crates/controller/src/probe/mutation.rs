//! Probe of mutation: detects the engine that mutates pods as specified in a profile: a policy of the API server, the
//! webhook, or none.

use std::sync::Arc;

use futures::future::join_all;
use palisade_api::names::{self, Shape};
use palisade_kube_json::json::Change as _;
use palisade_mutation::{MutationRequest, Plan};
use serde_json::{Value as Json, json};

use super::{
    enforcement::LabelPropagation,
    namespace::{ATTEMPT_BACKOFF, ProbeNamespace},
    queue::ProbeLease,
    results::Question,
    servers::Server,
};
use crate::{
    generations::accepted::AcceptedProfile,
    metrics::{Metrics, MutationResult},
};

/// Why an API server gave no answer to the question.
const UNREAD: &str = "it does not evaluate the profile's policy in namespace palisade-probe yet";

/// The engines that were observed mutating a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedMutators {
    /// The API server.
    pub native: bool,
    /// The webhook, also if it would have mutated the pod but found it complete.
    pub webhook: bool,
}

/// The results for all API servers.
#[derive(Clone, Debug, PartialEq)]
pub struct MutationAnswer {
    /// Results by address.
    servers: Vec<(String, Result<ObservedMutators, String>)>,
}

impl MutationAnswer {
    /// Combines the results of all addresses.
    pub fn new(servers: Vec<(String, Result<ObservedMutators, String>)>) -> Self {
        Self { servers }
    }

    /// The engines that were observed at every API server that answered; `None` if none answered.
    pub fn everywhere(&self) -> Option<ObservedMutators> {
        let seen = self.servers.iter().filter_map(|(_, seen)| seen.as_ref().ok());
        seen.copied().reduce(|one, other| ObservedMutators {
            native: one.native && other.native,
            webhook: one.webhook && other.webhook,
        })
    }

    /// The API servers where no engine was observed.
    pub fn unmutated(&self) -> Vec<&str> {
        let is_unmutated = |seen: &Result<ObservedMutators, String>| {
            seen.as_ref().is_ok_and(|seen| *seen == ObservedMutators::default())
        };
        self.servers.iter().filter(|(_, seen)| is_unmutated(seen)).map(|(address, _)| address.as_str()).collect()
    }

    /// The API servers that gave no answer, and why.
    pub fn failed(&self) -> Vec<String> {
        let failed = self.servers.iter().filter_map(|(address, seen)| Some((address, seen.as_ref().err()?)));
        failed
            .map(|(address, why)| if address.is_empty() { why.clone() } else { format!("{address}: {why}") })
            .collect()
    }
}

/// Asks which engine mutates pods.
pub struct MutationProbe {
    namespace: Arc<ProbeNamespace>,
    metrics: Arc<Metrics>,
    accepted: Arc<AcceptedProfile>,
    /// A pod without the fields that the profile's mutation sets.
    bare: Json,
    /// A mutating policy does not identify its profile, unlike the webhook. Immediately after a probe of another
    /// profile, the mutation may be caused by that one.
    propagation: Option<LabelPropagation>,
    /// True if the API server must mutate pods.
    native: bool,
}

impl MutationProbe {
    /// To ask about this profile; `None` if it mutates no pod that complies with it.
    pub fn new(
        namespace: Arc<ProbeNamespace>,
        metrics: Arc<Metrics>,
        accepted: Arc<AcceptedProfile>,
        native: bool,
    ) -> Option<Self> {
        let (bare, propagation) = (bare(&accepted)?, LabelPropagation::of(&accepted));
        Some(Self { namespace, metrics, accepted, bare, propagation, native })
    }

    async fn of_server(&self, server: &Server, plan: &Plan<'_>, turn: &ProbeLease) -> Result<ObservedMutators, String> {
        let (mut pause, mut read) = (ATTEMPT_BACKOFF.0, false);
        loop {
            let labels = if read { Ok(true) } else { self.has_read_labels(server).await };
            read = labels == Ok(true);
            let seen = match labels {
                Ok(true) => self.attempt(server, plan).await,
                Ok(false) => Err(UNREAD.to_owned()),
                Err(why) => Err(why),
            };
            let right = seen.as_ref().is_ok_and(|seen| self.is_wanted(*seen));
            if right || turn.is_over() || server.silent().is_some() {
                return seen;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(ATTEMPT_BACKOFF.1);
        }
    }

    async fn has_read_labels(&self, server: &Server) -> Result<bool, String> {
        match &self.propagation {
            Some(propagation) => propagation.is_shown(&self.namespace, server).await,
            None => Ok(true),
        }
    }

    fn is_wanted(&self, seen: ObservedMutators) -> bool {
        seen.native || (seen.webhook && !self.native)
    }

    async fn attempt(&self, server: &Server, plan: &Plan<'_>) -> Result<ObservedMutators, String> {
        let profile = &self.accepted.compiled.profile;
        let path = format!("/api/v1/namespaces/{}/pods", names::PROBE_NAMESPACE);
        let reply = self.namespace.ask(server, &path, &self.bare).await?;
        let said = |text: &str| reply.warnings.iter().any(|warning| warning.contains(text));
        let webhook_found_nothing = said(&names::probe_complete_warning(profile));
        let webhook_mutated = said(&format!("mutated by ToolSecurityProfile {profile}: "));
        let admitted = reply.status.is_success();
        // The profile may deny a pod because no engine has mutated it.
        let ours = || {
            let policy = names::policy(profile, Shape::Pods);
            reply.text().contains(&format!("ValidatingAdmissionPolicy '{policy}'"))
        };
        if !admitted && !ours() {
            return Err(reply.text().chars().take(500).collect());
        }
        let mutated = admitted
            && serde_json::from_slice(&reply.body)
                .is_ok_and(|pod: Json| plan.patch(&MutationRequest::create(names::PROBE_NAMESPACE, &pod)).is_empty());
        Ok(ObservedMutators { native: mutated && !webhook_mutated, webhook: webhook_mutated || webhook_found_nothing })
    }
}

impl Question for MutationProbe {
    type Answer = MutationAnswer;

    fn profile(&self) -> &str {
        &self.accepted.compiled.profile
    }

    async fn ask(&self, turn: &ProbeLease) -> MutationAnswer {
        let compiled = &self.accepted.compiled;
        let (Some(labels), Some(mutation)) = (compiled.probe_labels(), &compiled.mutation) else {
            return self.failed("no labels make the profile select the probe namespace".to_owned());
        };
        if let Err(why) = self.namespace.label(&labels).await {
            return self.failed(why);
        }
        let plan = Plan::new([(mutation, compiled.probes.params.as_ref())]);
        let set = self.namespace.servers.current().await;
        let asked =
            set.servers.iter().map(|one| async { (one.address.clone(), self.of_server(one, &plan, turn).await) });
        MutationAnswer::new(join_all(asked).await)
    }

    fn is_right(&self, answer: &MutationAnswer) -> bool {
        answer.servers.iter().all(|(_, seen)| seen.as_ref().is_ok_and(|seen| self.is_wanted(*seen)))
    }

    fn failed(&self, why: String) -> MutationAnswer {
        MutationAnswer::new(vec![(String::new(), Err(why))])
    }

    fn concluded(&self, answer: &MutationAnswer) {
        let result = match answer.everywhere() {
            Some(_) if !answer.unmutated().is_empty() => MutationResult::NoEngine,
            Some(ObservedMutators { native: true, .. }) => MutationResult::Native,
            // All of them mutate pods, by one engine or the other.
            Some(_) => MutationResult::Webhook,
            None => MutationResult::Failed,
        };
        tracing::info!(profile = self.profile(), result = result.label(), failed = ?answer.failed(), "probed which engine mutates pods");
        self.metrics.probes.mutation_ended(self.profile(), result);
    }
}

/// The complying pod of the probe, without the fields that the profile's mutation sets; `None` if it sets none.
fn bare(accepted: &AcceptedProfile) -> Option<Json> {
    let mutation = accepted.compiled.mutation.as_ref()?;
    let mut pod = accepted.compiled.probes.compliant.pod.clone();
    *pod.at_mut(&["metadata", "name"]) = "palisade-probe-bare".into();
    *pod.at_mut(&["metadata", "annotations"]) = json!({names::PROBE_MUTATION_ANNOTATION: ""});
    let unset = |object: &mut Json, path: &[String]| {
        let (last, before) = path.split_last()?;
        let parent = before.iter().try_fold(object, |object, key| object.get_mut(key))?;
        parent.as_object_mut()?.remove(last)
    };
    for (_, default) in &mutation.defaults {
        unset(pod.at_mut(&["spec"]), &default.path);
        for list in ["containers", "initContainers"] {
            for container in pod.at_mut(&["spec"]).get_mut(list).and_then(Json::as_array_mut).into_iter().flatten() {
                unset(container, &default.path);
            }
        }
    }
    if mutation.defaults.is_empty() && mutation.redirect.is_none() {
        // Then only additions show who mutates pods, and not all of them are for every pod.
        (0..mutation.injections.entries.len()).find(|entry| mutation.injections.select(*entry, &mut pod))?;
    }
    let plan = Plan::new([(mutation, accepted.compiled.probes.params.as_ref())]);
    let would = plan.patch(&MutationRequest::create(names::PROBE_NAMESPACE, &pod));
    (!would.is_empty()).then_some(pod)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NATIVE: ObservedMutators = ObservedMutators { native: true, webhook: false };
    const WEBHOOK: ObservedMutators = ObservedMutators { native: false, webhook: true };

    fn of(servers: &[Result<ObservedMutators, &str>]) -> MutationAnswer {
        let named = servers.iter().enumerate();
        MutationAnswer::new(named.map(|(i, seen)| (format!("s{i}"), seen.map_err(str::to_owned))).collect())
    }

    #[test]
    fn engine_must_be_observed_at_every_answering_api_server() {
        assert_eq!(of(&[Ok(NATIVE), Ok(NATIVE)]).everywhere(), Some(NATIVE));
        assert_eq!(of(&[Ok(NATIVE), Ok(WEBHOOK)]).everywhere(), Some(ObservedMutators::default()));
        assert!(of(&[Ok(NATIVE), Ok(WEBHOOK)]).unmutated().is_empty());
        assert_eq!(of(&[Ok(NATIVE), Ok(ObservedMutators::default())]).unmutated(), ["s1"]);
        let one_is_down = of(&[Ok(NATIVE), Err("no answer")]);
        assert_eq!((one_is_down.everywhere(), one_is_down.failed()), (Some(NATIVE), vec!["s1: no answer".to_owned()]));
        assert_eq!(of(&[Err("no answer")]).everywhere(), None);
    }
}
