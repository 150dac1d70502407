//! Requests for pods, again and again, and what came of them.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use kube::{Client, Error};
use serde_json::Value as Json;
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{dry_run_answer, eventually, hostile_pod, tool_pod};

/// What came of the requests.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Pods that need defaults and were admitted with all of them.
    pub mutated: usize,
    /// The answers to other pods that need defaults, the first ten.
    pub unmutated: Vec<String>,
    /// How many were said that to.
    pub unmutated_count: usize,
    /// Pods that comply by themselves and were admitted.
    pub complying: usize,
    /// The answers to other pods that comply.
    pub complying_refused: Vec<String>,
    /// Pods that violate and were denied.
    pub denied: usize,
    /// The answers to violating pods that were not denied.
    pub violating_not_denied: Vec<String>,
    /// Requests that got no verdict: the API server was starting or stopping, or failed. None of them is for a pod that
    /// violates and was admitted.
    pub unanswered: usize,
    /// The specs of pods that were defaulted, as JSON, the first ten that differ.
    pub specs: BTreeSet<String>,
    /// The longest time that an answer took.
    pub slowest: Duration,
}

/// Requests under way.
pub struct Load {
    tally: Arc<Mutex<Tally>>,
    stop: CancellationToken,
    workers: JoinSet<()>,
}

#[derive(Clone, Copy)]
enum Kind {
    NeedsDefaults,
    Complies,
    Violates,
}

impl Load {
    /// Begins, in a namespace whose profile defaults this uid, with a pod that needs that.
    pub fn start(client: &Client, namespace: &str, uid: i64, needing: &Json) -> Self {
        let mut load = Self { tally: Arc::default(), stop: CancellationToken::new(), workers: JoinSet::new() };
        // A webhook is asked about those that need defaults, and for as many at a time as the API server keeps more than
        // one connection.
        let kinds = [
            (Kind::NeedsDefaults, needing.clone()),
            (Kind::NeedsDefaults, needing.clone()),
            (Kind::NeedsDefaults, needing.clone()),
            (Kind::NeedsDefaults, needing.clone()),
            (Kind::Complies, tool_pod("complies", uid)),
            (Kind::Violates, hostile_pod("violates")),
        ];
        for (kind, pod) in kinds {
            let (client, namespace) = (client.clone(), namespace.to_owned());
            let (tally, stop) = (Arc::clone(&load.tally), load.stop.clone());
            load.workers.spawn(async move {
                while !stop.is_cancelled() {
                    let start = Instant::now();
                    let answer = dry_run_answer(&client, &namespace, &pod).await;
                    let took = start.elapsed();
                    tally.lock().unwrap_or_else(PoisonError::into_inner).count(kind, uid, &answer, took);
                    // A pause between two requests, so that they do not keep the processors busy.
                    sleep(Duration::from_millis(5)).await;
                }
            });
        }
        load
    }

    /// What came of the requests until now, which begins anew.
    pub fn take(&self) -> Tally {
        std::mem::take(&mut *self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until pods of each kind have got so many verdicts since [`Self::take`].
    ///
    /// # Errors
    /// The verdicts, if there are too few after two minutes.
    pub async fn answered(&self, count: usize) -> Result<(), String> {
        eventually("verdicts on the load", || async {
            let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let verdicts = [
                tally.mutated + tally.unmutated_count,
                tally.complying + tally.complying_refused.len(),
                tally.denied + tally.violating_not_denied.len(),
            ];
            if verdicts.iter().all(|found| *found >= count) { Ok(()) } else { Err(format!("{tally:?}")) }
        })
        .await
    }

    /// Ends, when the last answer is there.
    pub async fn stop(mut self) -> Tally {
        self.stop.cancel();
        while self.workers.join_next().await.is_some() {}
        self.take()
    }
}

/// Whether an answer is one of an API server that is all there.
fn is_verdict(kind: Kind, answer: &Result<Json, Error>) -> bool {
    let Err(error) = answer else { return true };
    let Error::Api(status) = error else { return false };
    // One that has just started forbids what its plugins cannot yet be asked about. And for up to 30 s it may not know
    // the kinds of CustomResourceDefinitions: it reads them so often for its policies, the first time perhaps too early
    // (`k8s.io/apiserver/pkg/server/options/admission.go`). Then it reads the parameters. Until it has them it denies
    // all pods, as it must.
    let says = |text: &str| status.message.contains(text);
    let without_params = says("failed to find resource referenced by paramKind") || says("not yet synced to use");
    let starting = says("not yet ready") || (without_params && !matches!(kind, Kind::Violates));
    !starting && !matches!(status.code, 429 | 500..)
}

impl Tally {
    fn count(&mut self, kind: Kind, uid: i64, answer: &Result<Json, Error>, took: Duration) {
        self.slowest = self.slowest.max(took);
        if !is_verdict(kind, answer) {
            self.unanswered += 1;
            return;
        }
        let denied =
            matches!(answer, Err(Error::Api(status)) if status.message.contains("ValidatingAdmissionPolicy '"));
        let mutated = |pod: &Json| pod["spec"]["securityContext"]["runAsUser"] == uid;
        let said = || match answer {
            Ok(pod) => format!("admitted as {}", pod["spec"]["securityContext"]),
            Err(error) => error.to_string(),
        };
        match kind {
            Kind::NeedsDefaults if answer.as_ref().is_ok_and(mutated) => {
                self.mutated += 1;
                if let (Ok(pod), true) = (answer, self.specs.len() < 10) {
                    self.specs.insert(pod["spec"].to_string());
                }
            }
            Kind::NeedsDefaults => {
                self.unmutated_count += 1;
                if self.unmutated.len() < 10 {
                    self.unmutated.push(said());
                }
            }
            Kind::Complies if answer.is_ok() => self.complying += 1,
            Kind::Complies => self.complying_refused.push(said()),
            Kind::Violates if denied => self.denied += 1,
            Kind::Violates => self.violating_not_denied.push(said()),
        }
    }

    /// Whether every pod got a verdict, complying ones were admitted and violating ones denied, some of each.
    ///
    /// # Errors
    /// The reasons why not.
    pub fn is_safe(&self) -> Result<(), String> {
        if self.unanswered > 0 {
            return Err(format!("{self:?}"));
        }
        self.nothing_is_wrong()?;
        if self.complying == 0 || self.denied == 0 { Err(format!("nothing was asked: {self:?}")) } else { Ok(()) }
    }

    /// [`Self::is_safe`] for the pods that got a verdict, for a time in which the API server does not always run.
    ///
    /// # Errors
    /// The reasons why not.
    pub fn nothing_is_wrong(&self) -> Result<(), String> {
        if !self.complying_refused.is_empty() || !self.violating_not_denied.is_empty() {
            return Err(format!("{self:?}"));
        }
        // One that was admitted without its defaults would violate the profile.
        if self.unmutated.iter().any(|said| said.starts_with("admitted")) {
            return Err(format!("{self:?}"));
        }
        Ok(())
    }
}
