//! Stage probe: asks the API server whether a profile is in force, by dry runs of two pods in a namespace of ours:
//! one that violates the profile and must be denied by its policy, one that complies and must be admitted.
//!
//! Probes run beside the reconciler, one profile at a time because the namespace's labels are the profile's. The
//! answer triggers a pass that reports it. With several API servers behind one address it is the answer of the
//! one that was asked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    client::Body,
    core::{PartialObjectMeta, Request},
};
use palisade_api::{
    names::{self, Shape},
    selector::Labels,
};
use palisade_compiler::Mutation;
use palisade_mutation::{Plan, Request as Asked};
use palisade_process::Supervisor;
use serde_json::{Value as Json, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    call::{ApiError, call},
    compile::Good,
    metrics::Metrics,
    mutate::Seen,
    queue::Queue,
    world::World,
};

/// How long between two questions.
const PAUSE: Duration = Duration::from_millis(200);

/// How long is asked who fills in a pod.
const MUTATED: Duration = Duration::from_secs(3);

/// What was found out.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The profile is in force.
    Passed,
    /// The violating pod was admitted. Which check it violates.
    ViolationAdmitted(&'static str),
    /// The compliant pod was denied by this profile. What the API server said.
    CompliantPodDenied(String),
    /// Nothing was found out. Why.
    Failed(String),
    /// The probe namespace cannot be selected by the profile.
    Impossible,
}

impl Outcome {
    /// All values of [`Outcome::result`].
    pub const RESULTS: [&'static str; 5] =
        ["passed", "violation_admitted", "compliant_pod_denied", "failed", "impossible"];

    /// For metrics.
    pub fn result(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::ViolationAdmitted(_) => "violation_admitted",
            Self::CompliantPodDenied(_) => "compliant_pod_denied",
            Self::Failed(_) => "failed",
            Self::Impossible => "impossible",
        }
    }
}

/// What the API server said about a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It would be admitted.
    Admitted,
    /// The profile's policy denies it.
    Denied(String),
    /// The profile's policy denies everything, because it lacks something.
    Broken(String),
    /// Something else was in the way.
    Other(String),
}

/// Asks.
#[derive(Debug)]
pub struct Prober {
    client: ClientHandle,
    world: Arc<World>,
    queue: Arc<Queue>,
    metrics: Arc<Metrics>,
    interval: Duration,
    timeout: Duration,
    /// Held while the namespace has the labels of one profile.
    exclusive: tokio::sync::Mutex<()>,
    records: Mutex<BTreeMap<String, Record>>,
    supervisor: Supervisor,
    stop: CancellationToken,
}

struct ClientHandle(Client);

impl std::fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

#[derive(Debug)]
struct Record {
    /// What was asked about.
    key: String,
    outcome: Option<Outcome>,
    /// When to ask again.
    due: Instant,
    failures: u32,
    /// Ends the question that is being asked.
    running: Option<CancellationToken>,
}

impl Prober {
    /// Nothing was asked yet.
    pub fn new(
        client: Client,
        world: Arc<World>,
        queue: Arc<Queue>,
        metrics: Arc<Metrics>,
        options: &crate::Options,
        supervisor: Supervisor,
        stop: CancellationToken,
    ) -> Self {
        Self {
            client: ClientHandle(client),
            world,
            queue,
            metrics,
            interval: options.probe_interval,
            timeout: options.probe_timeout,
            exclusive: tokio::sync::Mutex::new(()),
            records: Mutex::default(),
            supervisor,
            stop,
        }
    }

    /// What is known of the profile as it is in the cluster (`key`), and when to consult again. If nothing is, or
    /// it is old, asks; `wait` until the API server surely judges by it.
    pub fn consult(
        self: &Arc<Self>,
        key: String,
        good: &Arc<Good>,
        wait: Duration,
    ) -> (Option<Outcome>, Option<Duration>) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let profile = good.compiled.profile.clone();
        let record = records.entry(profile).or_insert_with(|| Record {
            key: key.clone(),
            outcome: None,
            due: now,
            failures: 0,
            running: None,
        });
        if record.key != key {
            // What was asked about is no more.
            if let Some(running) = record.running.take() {
                running.cancel();
            }
            (record.key, record.outcome, record.failures) = (key.clone(), None, 0);
        }
        let known = record.outcome.clone();
        if record.running.is_some() {
            return (known, None);
        }
        if known.is_some() && record.due > now {
            return (known, Some(record.due.duration_since(now)));
        }
        let stop = self.stop.child_token();
        record.running = Some(stop.clone());
        let (prober, good) = (Arc::clone(self), Arc::clone(good));
        let name = format!("probe of {}", good.compiled.profile);
        let asked = async move { stop.run_until_cancelled(prober.run(key, &good, wait)).await.unwrap_or_default() };
        self.supervisor.spawn_job(name, asked);
        (known, None)
    }

    /// The profile is gone.
    pub fn forget(&self, profile: &str) {
        let record = self.records.lock().unwrap_or_else(PoisonError::into_inner).remove(profile);
        if let Some(running) = record.and_then(|record| record.running) {
            running.cancel();
        }
    }

    async fn run(&self, key: String, good: &Good, wait: Duration) {
        let profile = &good.compiled.profile;
        tokio::time::sleep(wait).await;
        let outcome = self.ask(good).await;
        tracing::info!(profile, ?outcome, "asked the API server whether the profile is in force");
        self.metrics.probed(profile, outcome.result());
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = records.get_mut(profile).filter(|record| record.key == key) {
            record.failures = if outcome == Outcome::Passed { 0 } else { record.failures.saturating_add(1) };
            let backoff =
                palisade_process::delay(record.failures.saturating_add(3), Duration::from_mins(1)).min(self.interval);
            record.due = Instant::now() + if record.failures == 0 { self.interval } else { backoff };
            record.outcome = Some(outcome);
            record.running = None;
        }
        drop(records);
        self.queue.trigger([profile.clone()]);
    }

    async fn ask(&self, good: &Good) -> Outcome {
        let probes = &good.compiled.probes;
        let (Some(labels), Some(violating)) = (&probes.labels, &probes.violating) else { return Outcome::Impossible };
        if !self.world.has_namespace(names::PROBE_NAMESPACE) {
            return Outcome::Failed(format!("there is no namespace {}", names::PROBE_NAMESPACE));
        }
        let _exclusive = self.exclusive.lock().await;
        if let Err(error) = self.label(labels).await {
            return Outcome::Failed(format!("namespace {} could not be labelled: {error}", names::PROBE_NAMESPACE));
        }
        match self.until(good, &violating.pod, |answer| matches!(answer, Answer::Denied(_))).await {
            // A policy that denies for want of something denies the compliant pod too, which is said below.
            Answer::Denied(_) | Answer::Broken(_) => {}
            Answer::Admitted => return Outcome::ViolationAdmitted(violating.check.unwrap_or("?")),
            Answer::Other(message) => return Outcome::Failed(message),
        }
        match self.until(good, &probes.compliant.pod, |answer| *answer == Answer::Admitted).await {
            Answer::Admitted => Outcome::Passed,
            Answer::Denied(message) | Answer::Broken(message) => Outcome::CompliantPodDenied(message),
            Answer::Other(message) => Outcome::Failed(message),
        }
    }

    /// Asks until the answer is right or time is up.
    async fn until(&self, good: &Good, pod: &Json, right: impl Fn(&Answer) -> bool) -> Answer {
        let deadline = Instant::now() + self.timeout;
        loop {
            let answer = self.answer(&good.compiled.profile, pod).await;
            if right(&answer) || Instant::now() >= deadline {
                return answer;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// What the API server says about a pod in the probe namespace.
    async fn answer(&self, profile: &str, pod: &Json) -> Answer {
        let dry_run = PostParams { dry_run: true, field_manager: Some(names::field_manager::PROBE.to_owned()) };
        let request = Request::new(format!("/api/v1/namespaces/{}/pods", names::PROBE_NAMESPACE))
            .create(&dry_run, pod.to_string().into_bytes());
        match request {
            Ok(request) => classify(
                call(self.client.0.request::<PartialObjectMeta<Pod>>(request)).await,
                &names::policy(profile, Shape::Pods),
            ),
            Err(error) => Answer::Other(error.to_string()),
        }
    }

    /// Who fills in a pod that lacks what the profile fills in. Asks until the API server itself was seen to, if that
    /// is `expected`, or else until somebody was, or until it took too long.
    ///
    /// # Errors
    /// Nothing was found out. Why.
    pub async fn mutated(&self, good: &Good, mutation: &Mutation, pod: &Json, expected: bool) -> Result<Seen, String> {
        let labels =
            good.compiled.probes.labels.as_ref().ok_or("no labels make the profile select the probe namespace")?;
        if !self.world.has_namespace(names::PROBE_NAMESPACE) {
            return Err(format!("there is no namespace {}", names::PROBE_NAMESPACE));
        }
        let _exclusive = self.exclusive.lock().await;
        self.label(labels).await.map_err(|error| error.to_string())?;
        let plan = Plan::new([(mutation, good.compiled.probes.params.as_ref())]);
        let deadline = Instant::now() + MUTATED;
        loop {
            let seen = self.mutated_once(&good.compiled.profile, &plan, pod).await;
            let right = matches!(seen, Ok(seen) if seen.native || (seen.webhook && !expected));
            if right || Instant::now() >= deadline {
                return seen;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn mutated_once(&self, profile: &str, plan: &Plan<'_>, pod: &Json) -> Result<Seen, String> {
        let dry_run = PostParams { dry_run: true, field_manager: Some(names::field_manager::PROBE.to_owned()) };
        let request = Request::new(format!("/api/v1/namespaces/{}/pods", names::PROBE_NAMESPACE))
            .create(&dry_run, pod.to_string().into_bytes())
            .map_err(|error| error.to_string())?;
        let answer = call(self.client.0.send(request.map(Body::from))).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let warnings: Vec<_> =
            answer.headers().get_all("warning").iter().filter_map(|text| text.to_str().ok()).collect();
        let said = |text: &str| warnings.iter().any(|warning| warning.contains(text));
        let webhook_found_nothing = said(&names::probe_complete_warning(profile));
        let webhook_filled = said(&format!("filled in by ToolSecurityProfile {profile}: "));
        let body = answer.into_body().collect_bytes().await.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&body);
        // A pod that nobody has filled in may be denied because of that.
        let ours = text.contains(&format!("ValidatingAdmissionPolicy '{}'", names::policy(profile, Shape::Pods)));
        if !status.is_success() && !ours {
            return Err(text.chars().take(500).collect());
        }
        let filled = status.is_success()
            && serde_json::from_slice(&body)
                .is_ok_and(|pod: Json| plan.patch(&Asked::create(names::PROBE_NAMESPACE, &pod)).is_empty());
        Ok(Seen { native: filled && !webhook_filled, webhook: webhook_filled || webhook_found_nothing })
    }

    /// Whether the profile's policy would deny a violating pod. `None` if that cannot be known.
    pub async fn denies(&self, good: &Good) -> Option<bool> {
        let (labels, violating) = (good.compiled.probes.labels.as_ref()?, good.compiled.probes.violating.as_ref()?);
        let _exclusive = self.exclusive.lock().await;
        self.label(labels).await.ok()?;
        match self.answer(&good.compiled.profile, &violating.pod).await {
            Answer::Denied(_) | Answer::Broken(_) => Some(true),
            Answer::Admitted => Some(false),
            Answer::Other(_) => None,
        }
    }

    /// Takes the labels away.
    pub async fn unlabel(&self) -> Result<(), ApiError> {
        let _exclusive = self.exclusive.lock().await;
        self.label(&Labels::new()).await
    }

    /// Gives the namespace these labels, and takes away those that it was given before.
    async fn label(&self, labels: &Labels) -> Result<(), ApiError> {
        let api: Api<PartialObjectMeta<Namespace>> = Api::all(self.client.0.clone());
        let patch = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": names::PROBE_NAMESPACE, "labels": labels},
        });
        let apply = PatchParams::apply(names::field_manager::PROBE).force();
        call(api.patch(names::PROBE_NAMESPACE, &apply, &Patch::Apply(&patch))).await.map(drop)
    }
}

fn classify<T>(answer: Result<T, ApiError>, policy: &str) -> Answer {
    let Err(error) = answer else { return Answer::Admitted };
    let ours = matches!(&error, ApiError::Refused(status)
        if status.message.contains(&format!("ValidatingAdmissionPolicy '{policy}'")));
    let message = error.to_string();
    match ours {
        // It can find neither parameters nor their kind yet.
        true if message.contains("no params found") || message.contains("failed to configure") => {
            Answer::Broken(message)
        }
        true => Answer::Denied(message),
        false => Answer::Other(message),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::response::Status;

    use super::*;

    fn refused(message: &str) -> Result<(), ApiError> {
        Err(ApiError::Refused(Status::failure(message, "Invalid").with_code(422).boxed()))
    }

    #[test]
    fn only_a_violation_of_this_policy_is_a_denial() {
        let denied = "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'palisade-a-pods' with binding \
                      'palisade-a-pods' denied request: 1 violation";
        let broken = "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'palisade-a-pods' with binding \
                      'palisade-a-pods' denied request: failed to configure binding: no params found for policy \
                      binding with `Deny` parameterNotFoundAction";
        assert!(matches!(classify(refused(denied), "palisade-a-pods"), Answer::Denied(_)));
        assert!(matches!(classify(refused(denied), "palisade-a"), Answer::Other(_)));
        assert!(matches!(classify(refused(denied), "palisade-b-pods"), Answer::Other(_)));
        assert!(matches!(classify(refused(broken), "palisade-a-pods"), Answer::Broken(_)));
        assert!(matches!(classify(refused("exceeded quota"), "palisade-a-pods"), Answer::Other(_)));
        assert_eq!(classify(Ok(()), "palisade-a-pods"), Answer::Admitted);
    }
}
