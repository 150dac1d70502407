//! What must hold at each moment: requests for pods and workloads, again and again, and their answers.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject},
};
use palisade_tests::{bare_pod, hostile_pod, tool_pod};
use serde::Serialize;
use serde_json::{Value as Json, json};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    ask::{self, Answer},
    timeline::Timeline,
    users::UID,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum Sort {
    /// It violates the profile: it must never be admitted.
    Hostile,
    /// It complies as it is: no policy may ever deny it.
    Complying,
    /// It complies once defaults are set: it must never be admitted without them.
    Bare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Pod,
    Deployment,
}

#[derive(Clone, Debug)]
pub(crate) struct Prober {
    pub(crate) namespace: &'static str,
    pub(crate) sort: Sort,
    pub(crate) shape: Shape,
    /// Whether the profile reads parameters, of which somebody may delete the definition.
    pub(crate) parameters: bool,
}

/// What came of the requests of a sort.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Tally {
    pub(crate) sent: usize,
    /// Of these, not dry runs.
    pub(crate) for_real: usize,
    pub(crate) admitted: usize,
    pub(crate) denied: usize,
    /// Denied because the API server could not read what the policy needs.
    pub(crate) closed: usize,
    pub(crate) unanswered: usize,
    /// The longest time without an answer, in seconds.
    pub(crate) longest_without_answer: f64,
    /// Why there was no answer.
    pub(crate) reasons: BTreeMap<String, usize>,
}

/// Whether somebody has deleted the definition of parameters.
#[derive(Default)]
pub(crate) struct Definition(AtomicBool);

impl Definition {
    pub(crate) fn set_gone(&self, gone: bool) {
        self.0.store(gone, Ordering::SeqCst);
    }
}

/// Requests under way.
pub(crate) struct Watch {
    tallies: Arc<Mutex<BTreeMap<Sort, Tally>>>,
    stop: CancellationToken,
    workers: JoinSet<()>,
}

impl Watch {
    pub(crate) fn start(
        client: &Client,
        probers: &[Prober],
        definition: &Arc<Definition>,
        timeline: &Arc<Timeline>,
    ) -> Self {
        let mut watch = Self { tallies: Arc::default(), stop: CancellationToken::new(), workers: JoinSet::new() };
        for prober in probers {
            let worker = Worker {
                client: client.clone(),
                prober: prober.clone(),
                definition: Arc::clone(definition),
                timeline: Arc::clone(timeline),
                tallies: Arc::clone(&watch.tallies),
                answered: Instant::now(),
                reopening: false,
            };
            watch.workers.spawn(worker.run(watch.stop.clone()));
        }
        watch
    }

    /// Ends, when the last answer is there.
    pub(crate) async fn stop(mut self) -> BTreeMap<Sort, Tally> {
        self.stop.cancel();
        while self.workers.join_next().await.is_some() {}
        let tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        tallies.clone()
    }
}

struct Worker {
    client: Client,
    prober: Prober,
    definition: Arc<Definition>,
    timeline: Arc<Timeline>,
    tallies: Arc<Mutex<BTreeMap<Sort, Tally>>>,
    /// When the last answer came.
    answered: Instant,
    /// Whether the definition of parameters was deleted, and no answer since then shows that all is back.
    reopening: bool,
}

impl Worker {
    async fn run(mut self, stop: CancellationToken) {
        let Prober { namespace, sort, shape, .. } = self.prober.clone();
        let path = match shape {
            Shape::Pod => format!("/api/v1/namespaces/{namespace}/pods"),
            Shape::Deployment => format!("/apis/apps/v1/namespaces/{namespace}/deployments"),
        };
        let (pause, real_each) = if sort == Sort::Hostile { (100, 10) } else { (200, 25) };
        let mut turn = 0_usize;
        while !stop.is_cancelled() {
            turn += 1;
            let name = format!("{}-{turn}", format!("{sort:?}").to_lowercase());
            let pod = match sort {
                Sort::Hostile => hostile_pod(&name),
                Sort::Complying => tool_pod(&name, UID),
                Sort::Bare => bare_pod(&name),
            };
            let object = if shape == Shape::Pod { pod } else { ask::deployment(&name, &pod) };
            let real = turn.is_multiple_of(real_each) && sort != Sort::Bare;
            let gone = self.definition.0.load(Ordering::SeqCst);
            let query = if real { "" } else { "?dryRun=All" };
            let answer = ask::create(&self.client, &format!("{path}{query}"), &object).await;
            // It may have been deleted while the answer was under way.
            self.reopening |= self.prober.parameters && (gone || self.definition.0.load(Ordering::SeqCst));
            if real && matches!(answer, Answer::Admitted(_)) {
                self.remove(&object).await;
            }
            self.judge(&answer, real);
            sleep(Duration::from_millis(pause)).await;
        }
    }

    /// It has shown what it should: nothing is to pile up.
    async fn remove(&self, object: &Json) {
        let Ok(object) = serde_json::from_value::<DynamicObject>(object.clone()) else { return };
        let Some(types) = &object.types else { return };
        let Ok(kind) = kube::core::GroupVersionKind::try_from(types) else { return };
        let resource = kube::api::ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), self.prober.namespace, &resource);
        // One that is left is deleted with its namespace.
        let _ = api.delete(&object.metadata.name.unwrap_or_default(), &DeleteParams::default().grace_period(0)).await;
    }

    fn judge(&mut self, answer: &Answer, real: bool) {
        let Prober { namespace, sort, shape, .. } = self.prober;
        let wrong = match (sort, answer) {
            (Sort::Hostile, Answer::Admitted(_)) => Some("a violation was admitted".to_owned()),
            // It would have been created, if it were not there.
            (Sort::Hostile, Answer::Unanswered(text)) if text.contains("already exists") => {
                Some(format!("a violation was admitted before: {text}"))
            }
            (Sort::Complying, Answer::Denied(text)) if !self.reopening => Some(format!("it was denied: {text}")),
            (Sort::Bare, Answer::Admitted(pod)) if pod["spec"]["securityContext"]["runAsUser"] != UID => {
                Some(format!("it was admitted without defaults: {}", pod["spec"]["securityContext"]))
            }
            // Policies come before validation: nothing was shown.
            (_, Answer::Unanswered(text)) if text.starts_with("422") => Some(format!("it is invalid: {text}")),
            _ => None,
        };
        if let Some(wrong) = wrong {
            self.timeline.finding(format!("{sort:?} {shape:?} in {namespace}: {wrong}"));
        }
        if sort != Sort::Hostile && matches!(answer, Answer::Admitted(_)) && !self.definition.0.load(Ordering::SeqCst) {
            self.reopening = false;
        }
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = tallies.entry(sort).or_default();
        tally.sent += 1;
        tally.for_real += usize::from(real);
        match answer {
            Answer::Admitted(_) => tally.admitted += 1,
            Answer::Denied(_) if self.reopening && sort == Sort::Complying => tally.closed += 1,
            Answer::Denied(_) => tally.denied += 1,
            Answer::Closed => tally.closed += 1,
            Answer::Unanswered(text) => {
                tally.unanswered += 1;
                *tally.reasons.entry(reason(text)).or_default() += 1;
                let without = self.answered.elapsed().as_secs_f64();
                tally.longest_without_answer = tally.longest_without_answer.max(without);
                return;
            }
        }
        self.answered = Instant::now();
    }
}

/// What an error is about, without the names of objects.
fn reason(text: &str) -> String {
    let known = [
        "not yet ready to handle request",
        "etcdserver",
        "Connection refused",
        "onnection reset",
        "connection closed",
        "context deadline exceeded",
        "error trying to connect",
        "serviceaccount",
        "the object has been modified",
        "no answer within a minute",
    ];
    match known.iter().find(|known| text.contains(**known)) {
        Some(known) => (*known).to_owned(),
        None => text.chars().take(120).collect(),
    }
}

/// Asks for a violating pod in a namespace that was just created, once.
pub(crate) async fn hostile_once(client: &Client, namespace: &str, timeline: &Timeline) {
    let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
    if let Answer::Admitted(_) = ask::create(client, &path, &hostile_pod("hostile")).await {
        timeline.finding(format!("Hostile Pod in the new namespace {namespace}: a violation was admitted"));
    }
}

pub(crate) fn labels(profile: &str) -> Json {
    json!({"tenancy": profile})
}
