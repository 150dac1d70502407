//! Whether a profile is in force: whether each API server denies what violates it, of each shape, and admits what
//! complies.

use std::sync::Arc;

use futures::future::join_all;
use palisade_api::{
    conditions::{ConditionType, Reason},
    names::{self, Shape},
};
use palisade_compiler::{Pair, Question as Objects};

use super::{
    answers::Question,
    ask::{Answer, PAUSE, Site},
    servers::Server,
    turns::Turn,
};
use crate::{
    accepted::AcceptedProfile,
    metrics::{EnforcementResult, Metrics},
    status::{Condition, ConditionStatus},
};

/// What was found out about one API server.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It judges by the profile.
    Passed,
    /// It admits, or does not warn about, an object that violates the profile: the kind, and the check.
    ViolationAdmitted(&'static str, &'static str),
    /// By this profile it denies, or warns about, an object that complies: the kind, and what it said.
    CompliantDenied(&'static str, String),
    /// Nothing was found out. Why.
    Failed(String),
    /// The probe namespace cannot be selected by the profile.
    Impossible,
}

impl Outcome {
    /// For metrics.
    fn result(&self) -> EnforcementResult {
        match self {
            Self::Passed => EnforcementResult::Passed,
            Self::ViolationAdmitted(..) => EnforcementResult::ViolationAdmitted,
            Self::CompliantDenied(..) => EnforcementResult::CompliantPodDenied,
            Self::Failed(_) => EnforcementResult::Failed,
            Self::Impossible => EnforcementResult::Impossible,
        }
    }

    /// The worse, the higher: what is wrong matters more than what is not known.
    fn gravity(&self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Impossible => 1,
            Self::Failed(_) => 2,
            Self::CompliantDenied(..) => 3,
            Self::ViolationAdmitted(..) => 4,
        }
    }
}

/// What was found out about the API servers.
#[derive(Clone, Debug, PartialEq)]
pub struct InForce {
    /// By address.
    servers: Vec<(String, Outcome)>,
    /// Why only one was asked, if there may be others.
    alone: Option<String>,
    /// What no answer can show.
    unseen: Option<&'static str>,
}

impl InForce {
    fn everywhere(outcome: Outcome) -> Self {
        Self { servers: vec![(String::new(), outcome)], alone: None, unseen: None }
    }

    /// The worst that was found.
    pub fn worst(&self) -> &Outcome {
        self.servers.iter().map(|(_, outcome)| outcome).max_by_key(|outcome| outcome.gravity()).unwrap_or(&NOBODY)
    }

    /// The condition.
    pub fn condition(&self) -> Condition {
        let (status, reason, text) = match self.worst() {
            Outcome::Passed => {
                let who = match self.servers.as_slice() {
                    [_] => "the API server".to_owned(),
                    several => format!("each of {} API servers", several.len()),
                };
                let text = format!("{who} denies what violates the profile and admits what complies");
                (ConditionStatus::True, Reason::ProbesPassed, text)
            }
            Outcome::ViolationAdmitted(kind, check) => (
                ConditionStatus::False,
                Reason::ViolationAdmitted,
                format!("a {kind} that violates check {check} is admitted"),
            ),
            Outcome::CompliantDenied(kind, message) => (
                ConditionStatus::False,
                Reason::CompliantPodDenied,
                format!("a {kind} that complies is denied: {message}"),
            ),
            Outcome::Failed(message) => (ConditionStatus::Unknown, Reason::ProbeFailed, message.clone()),
            Outcome::Impossible => {
                let text = "no labels make the profile select the namespace for probes";
                (ConditionStatus::Unknown, Reason::ProbeImpossible, text.to_owned())
            }
        };
        let mut message = text;
        if status != ConditionStatus::True {
            let result = self.worst().result();
            let at = self.servers.iter().filter(|(_, outcome)| outcome.result() == result);
            let at: Vec<_> = at.map(|(address, _)| address.as_str()).filter(|address| !address.is_empty()).collect();
            if !at.is_empty() {
                message = format!("at {}: {message}", at.join(" and "));
            }
        }
        if let Some(unseen) = self.unseen {
            message = format!("{message}; {unseen}");
        }
        if let (Some(why), [(address, _)]) = (&self.alone, self.servers.as_slice()) {
            message = format!("{message}; only {address} was asked: {why}");
        }
        let message: String = message.chars().take(8000).collect();
        Condition::new(ConditionType::Enforced, status, reason, message)
    }
}

static NOBODY: Outcome = Outcome::Failed(String::new());

/// What a policy is to do with a violation, as far as an answer shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Deny,
    Warn,
}

/// The policy for one shape, and what to ask to see it.
#[derive(Clone, Debug)]
struct Judged {
    policy: String,
    action: Action,
    objects: Objects,
}

/// Asks whether a profile is in force.
pub struct Enforcement {
    site: Arc<Site>,
    metrics: Arc<Metrics>,
    accepted: Arc<AcceptedProfile>,
    shapes: Vec<Judged>,
    unseen: Option<&'static str>,
}

impl Enforcement {
    /// To ask about this profile.
    pub fn new(site: Arc<Site>, metrics: Arc<Metrics>, accepted: Arc<AcceptedProfile>) -> Self {
        let (compiled, mut shapes, mut unseen) = (&accepted.compiled, Vec::new(), None);
        for (shape, pair) in compiled.bundle.pairs() {
            // A shape without a question of its own is in the cluster as desired when this is asked, and was written
            // before the policy for pods, by whose answers the API server has seen it.
            let Some(objects) = compiled.probes.question(shape) else { continue };
            match action(pair) {
                Some(action) => {
                    shapes.push(Judged { policy: names::policy(&compiled.profile, shape), action, objects });
                }
                None => unseen = Some("whether workloads are audited shows in the audit log only"),
            }
        }
        Self { site, metrics, accepted, shapes, unseen }
    }

    async fn of_server(&self, server: &Server, turn: &Turn) -> Outcome {
        let mut pause = PAUSE.0;
        loop {
            let outcome = self.attempt(server).await;
            if outcome == Outcome::Passed || turn.is_over() || server.silent().is_some() {
                return outcome;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Violations first: a server that denies them has seen the labels, and judges what complies.
    async fn attempt(&self, server: &Server) -> Outcome {
        for violating in [true, false] {
            let asked = join_all(self.shapes.iter().map(|judged| async move {
                let Objects { path, violating: wrong, compliant: right, .. } = &judged.objects;
                match self.site.ask(server, path, if violating { wrong } else { right }).await {
                    Ok(reply) if violating => violates(judged, reply.of_policy(&judged.policy)),
                    Ok(reply) => complies(judged, reply.of_policy(&judged.policy)),
                    Err(why) => Outcome::Failed(why),
                }
            }));
            // Of those that are equally bad the first: pods before workloads.
            let worst = asked.await.into_iter().rev().max_by_key(Outcome::gravity);
            if let Some(wrong) = worst.filter(|outcome| *outcome != Outcome::Passed) {
                return wrong;
            }
        }
        Outcome::Passed
    }
}

/// What an answer about the object that violates the profile means.
fn violates(judged: &Judged, answer: Answer) -> Outcome {
    let Objects { kind, check, .. } = judged.objects;
    match (answer, judged.action) {
        // A policy that denies for want of something denies what complies, too, which is said below.
        (Answer::Denied(_) | Answer::Broken(_), Action::Deny) | (Answer::Admitted { warned: true }, Action::Warn) => {
            Outcome::Passed
        }
        (Answer::Admitted { .. }, _) => Outcome::ViolationAdmitted(kind, check),
        (Answer::Denied(message) | Answer::Broken(message), Action::Warn) => {
            Outcome::Failed(format!("the policy for a {kind} denies and is to warn: {message}"))
        }
        (Answer::Other(message), _) => Outcome::Failed(message),
    }
}

/// What an answer about the object that complies means.
fn complies(judged: &Judged, answer: Answer) -> Outcome {
    let kind = judged.objects.kind;
    match answer {
        Answer::Admitted { warned: false } => Outcome::Passed,
        Answer::Admitted { warned: true } => {
            Outcome::CompliantDenied(kind, "it is admitted with a warning of this profile".to_owned())
        }
        Answer::Denied(message) | Answer::Broken(message) => Outcome::CompliantDenied(kind, message),
        Answer::Other(message) => Outcome::Failed(message),
    }
}

/// What a binding does with violations; `None` if it only writes to the audit log, which no answer shows.
fn action(pair: &Pair) -> Option<Action> {
    let has = |action: &str| pair.binding.spec.validation_actions.iter().any(|one| one == action);
    if has("Deny") {
        Some(Action::Deny)
    } else if has("Warn") {
        Some(Action::Warn)
    } else {
        None
    }
}

impl Question for Enforcement {
    type Answer = InForce;

    fn profile(&self) -> &str {
        &self.accepted.compiled.profile
    }

    async fn ask(&self, turn: &Turn) -> InForce {
        let probes = &self.accepted.compiled.probes;
        let (Some(labels), false) = (&probes.labels, self.shapes.is_empty()) else {
            return InForce::everywhere(Outcome::Impossible);
        };
        if let Err(why) = self.site.label(labels).await {
            return InForce::everywhere(Outcome::Failed(why));
        }
        let set = self.site.servers.current().await;
        if set.servers.is_empty() {
            return InForce::everywhere(Outcome::Failed("no API server is known".to_owned()));
        }
        let asked = set.servers.iter().map(|one| async { (one.address.clone(), self.of_server(one, turn).await) });
        InForce { servers: join_all(asked).await, alone: set.alone, unseen: self.unseen }
    }

    fn is_right(&self, answer: &InForce) -> bool {
        matches!(answer.worst(), Outcome::Passed | Outcome::Impossible)
    }

    fn failed(&self, why: String) -> InForce {
        InForce::everywhere(Outcome::Failed(why))
    }

    fn concluded(&self, answer: &InForce) {
        let (profile, outcome) = (self.profile(), answer.worst());
        tracing::info!(profile, ?outcome, "asked the API servers whether the profile is in force");
        self.metrics.probed(profile, outcome.result());
        for (address, outcome) in &answer.servers {
            self.metrics.probed_at(address, outcome.result());
        }
    }
}

/// Whether some API server denies, by the policy for pods, a pod that violates the profile. `None` if that cannot be
/// known.
pub async fn denies(site: &Site, accepted: &AcceptedProfile) -> Option<bool> {
    let (compiled, probes) = (&accepted.compiled, &accepted.compiled.probes);
    let (labels, objects) = (probes.labels.as_ref()?, probes.question(Shape::Pods)?);
    site.label(labels).await.ok()?;
    let policy = names::policy(&compiled.profile, Shape::Pods);
    let set = site.servers.current().await;
    let asked = set.servers.iter().map(|server| async {
        match site.ask(server, &objects.path, &objects.violating).await.ok()?.of_policy(&policy) {
            Answer::Denied(_) | Answer::Broken(_) => Some(true),
            Answer::Admitted { .. } => Some(false),
            Answer::Other(_) => None,
        }
    });
    let answers = join_all(asked).await;
    if answers.contains(&Some(true)) {
        return Some(true);
    }
    answers.into_iter().collect::<Option<Vec<_>>>().map(|_| false)
}
