//! Stage probe: asks each API server by dry runs in the probe namespace if it enforces a profile. Its policy must deny
//! a violating object and admit a compliant one, and it must mutate a pod as specified in the profile.
//!
//! Questions run beside the reconciler ([`results`]), which never waits for one. They take turns ([`queue`]), because
//! the namespace has the labels for one profile at a time.

mod denials;
mod discover;
mod enforcement;
mod labels;
mod mutation;
mod namespace;
mod outcome;
mod queue;
mod results;
mod servers;
#[cfg(test)]
mod tests;
mod wait;

use std::{fmt::Write as _, sync::Arc, time::Duration};

use palisade_api::names::{self, Part};
use palisade_kube_json::selector::Labels;
use palisade_runtime::Supervisor;

pub use mutation::{MutationAnswer, ObservedMutators};
pub use outcome::EnforcementAnswer;
pub use servers::Servers;

use self::{
    enforcement::EnforcementProbe,
    mutation::MutationProbe,
    namespace::ProbeNamespace,
    queue::ProbeQueue,
    results::{Common, Key, Pace, ProbeResults},
};
use crate::{
    generated::mutating_policies::NativePolicies, generations::accepted::AcceptedProfile, metrics::Metrics,
    options::Options, queue::ProfileQueue, watch::store::Store,
};

/// How long a probe asks which engine mutates pods.
const MUTATION_PATIENCE: Duration = Duration::from_secs(5);
/// How often it is repeated, at least: a webhook can come and go.
const MUTATION_INTERVAL: Duration = Duration::from_secs(30);
/// The same, after a wrong answer.
const MUTATION_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// How often a probe of enforcement is repeated, at least, after a wrong answer.
const MAX_ENFORCEMENT_RETRY_INTERVAL: Duration = Duration::from_mins(1);

/// Asks, and remembers the answers.
pub struct Prober {
    namespace: Arc<ProbeNamespace>,
    native: Arc<NativePolicies>,
    metrics: Arc<Metrics>,
    turns: Arc<ProbeQueue>,
    enforcement: Arc<ProbeResults<EnforcementAnswer>>,
    mutation: Arc<ProbeResults<MutationAnswer>>,
}

impl Prober {
    /// Nothing was asked yet.
    pub fn new(
        servers: Arc<Servers>,
        store: Arc<Store>,
        native: Arc<NativePolicies>,
        queue: Arc<ProfileQueue>,
        metrics: Arc<Metrics>,
        options: &Options,
        supervisor: Supervisor,
    ) -> Self {
        let turns = Arc::new(ProbeQueue::default());
        let pacing = Arc::clone(&servers.pacing);
        let common = Arc::new(Common { turns: Arc::clone(&turns), pacing, queue, supervisor });
        let (patience, interval) = (options.probe_timeout, options.probe_interval);
        let of_policies = Pace { patience, interval, retry: MAX_ENFORCEMENT_RETRY_INTERVAL };
        let of_mutation = Pace {
            patience: MUTATION_PATIENCE.min(patience),
            interval: MUTATION_INTERVAL.min(interval),
            retry: MUTATION_RETRY_INTERVAL,
        };
        Self {
            namespace: Arc::new(ProbeNamespace { client: servers.client().clone(), store, servers }),
            native,
            metrics,
            turns,
            enforcement: Arc::new(ProbeResults::new(Arc::clone(&common), of_policies)),
            mutation: Arc::new(ProbeResults::new(common, of_mutation)),
        }
    }

    /// The enforcement of the profile in the cluster, if it is known, and the time of the next consultation.
    pub fn enforcement(&self, accepted: &Arc<AcceptedProfile>) -> (Option<EnforcementAnswer>, Option<Duration>) {
        let mut objects = accepted.generation().to_string();
        for part in Part::ALL.into_iter().filter(|part| part.shape().is_some()) {
            for meta in self.namespace.store.pair(&accepted.compiled.profile, part).metadata() {
                let uid = meta.uid.as_deref().unwrap_or_default();
                let _ = write!(objects, "/{uid}.{}", meta.generation.unwrap_or_default());
            }
        }
        let key = Key { objects, servers: self.namespace.servers.epoch() };
        let question =
            EnforcementProbe::new(Arc::clone(&self.namespace), Arc::clone(&self.metrics), Arc::clone(accepted));
        self.enforcement.consult(key, question)
    }

    /// Which engine mutates pods, if known, and when to consult again; `None` if the profile mutates no complying pod.
    /// `native` is the version of the policy in the cluster, if the API server shall mutate pods.
    pub fn mutation(
        &self,
        accepted: &Arc<AcceptedProfile>,
        native: Option<&str>,
    ) -> Option<(Option<MutationAnswer>, Option<Duration>)> {
        let (namespace, metrics) = (Arc::clone(&self.namespace), Arc::clone(&self.metrics));
        let question = MutationProbe::new(namespace, metrics, Arc::clone(accepted), native.is_some())?;
        let mut objects = format!("{}/{}", accepted.generation(), native.unwrap_or("-"));
        let _ = write!(objects, "/{}", self.native.identity(&names::mutation(&accepted.compiled.profile)));
        let key = Key { objects, servers: self.namespace.servers.epoch() };
        Some(self.mutation.consult(key, question))
    }

    /// The profile is gone.
    pub fn forget(&self, profile: &str) {
        self.enforcement.forget(profile);
        self.mutation.forget(profile);
    }

    /// True if an API server denies a violating pod by the profile's policy. `None` if that is unknown.
    pub async fn some_denies(&self, accepted: &AcceptedProfile) -> Option<bool> {
        // A removal waits for this, so it goes first.
        let _turn = self.turns.next(Duration::ZERO).await;
        denials::some_denies(&self.namespace, accepted).await
    }

    /// True if all API servers deny a violating object by this generation of the policy for a part. `None` if that
    /// cannot be determined.
    pub async fn all_deny(&self, accepted: &AcceptedProfile, part: Part) -> Option<bool> {
        // The write of a policy waits for this.
        let _turn = self.turns.next(Duration::ZERO).await;
        denials::all_deny(&self.namespace, accepted, part).await
    }

    /// Takes the labels away.
    ///
    /// # Errors
    /// Why that was not possible.
    pub async fn unlabel(&self) -> Result<(), String> {
        let _turn = self.turns.next(Duration::ZERO).await;
        self.namespace.label(&Labels::new()).await
    }
}
