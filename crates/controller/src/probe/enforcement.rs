//! Whether a profile is enforced: whether each API server denies an object of each shape that violates it, and admits one
//! that complies.

use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use palisade_api::{
    conditions::{ConditionType, Reason},
    names::{self, Shape},
};
use palisade_compiler::Question as Objects;

use super::{
    answers::Question,
    servers::Server,
    site::{PAUSE, PolicyAnswer, Site},
    turns::Turn,
};
use crate::{
    accepted::AcceptedProfile,
    metrics::{EnforcementResult, Metrics},
    status::{Condition, ConditionStatus},
};

/// The result for one API server.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It enforces the profile.
    Passed,
    /// It admits, or does not warn about, an object that violates the profile: the kind, and the check.
    ViolationAdmitted(&'static str, &'static str),
    /// It denies, or warns about, a complying object because of this profile.
    CompliantDenied {
        /// The kind.
        kind: &'static str,
        /// The message.
        message: String,
        /// Whether the answer is of this generation, with its parameters.
        certain: bool,
    },
    /// The probe gave no answer, for this reason.
    Failed(String),
    /// The profile cannot select the probe namespace.
    Impossible,
}

impl Outcome {
    /// For metrics.
    fn result(&self) -> EnforcementResult {
        match self {
            Self::Passed => EnforcementResult::Passed,
            Self::ViolationAdmitted(..) => EnforcementResult::ViolationAdmitted,
            Self::CompliantDenied { .. } => EnforcementResult::CompliantPodDenied,
            Self::Failed(_) => EnforcementResult::Failed,
            Self::Impossible => EnforcementResult::Impossible,
        }
    }

    /// The higher, the worse: a wrong answer matters more than none.
    fn severity(&self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Impossible => 1,
            Self::Failed(_) => 2,
            Self::CompliantDenied { .. } => 3,
            Self::ViolationAdmitted(..) => 4,
        }
    }
}

/// The results for all API servers.
#[derive(Clone, Debug, PartialEq)]
pub struct EnforcementAnswer {
    /// By address.
    servers: Vec<(String, Outcome)>,
    /// Why only one was probed, if there may be others.
    alone: Option<String>,
    /// The part of the profile that no answer can show.
    unseen: Option<&'static str>,
}

impl EnforcementAnswer {
    fn everywhere(outcome: Outcome) -> Self {
        Self { servers: vec![(String::new(), outcome)], alone: None, unseen: None }
    }

    /// The worst result.
    pub fn worst(&self) -> &Outcome {
        self.servers.iter().map(|(_, outcome)| outcome).max_by_key(|outcome| outcome.severity()).unwrap_or(&NONE)
    }

    /// Whether each API server enforces the profile.
    pub fn passed(&self) -> bool {
        *self.worst() == Outcome::Passed
    }

    /// Why the generation that was asked about must not stay in force: an API server denies by it an object that
    /// complies. It had denied by it one that violates it before, so it has read this generation; and it has what it reads.
    /// That a violation is admitted shows no such thing: the API server may be slow.
    pub fn refutation(&self) -> Option<String> {
        match self.worst() {
            Outcome::CompliantDenied { kind, message, certain: true } => {
                Some(format!("an API server denies a {kind} that complies: {message}"))
            }
            _ => None,
        }
    }

    /// The condition.
    pub fn condition(&self) -> Condition {
        let (status, reason, text) = match self.worst() {
            Outcome::Passed => {
                let who = match self.servers.as_slice() {
                    [_] => "the API server".to_owned(),
                    several => format!("each of {} API servers", several.len()),
                };
                let text = format!("{who} denies objects that violate the profile and admits objects that comply");
                (ConditionStatus::True, Reason::ProbesPassed, text)
            }
            Outcome::ViolationAdmitted(kind, check) => (
                ConditionStatus::False,
                Reason::ViolationAdmitted,
                format!("a {kind} that violates check {check} is admitted"),
            ),
            Outcome::CompliantDenied { kind, message, .. } => (
                ConditionStatus::False,
                Reason::CompliantPodDenied,
                format!("a {kind} that complies is denied: {message}"),
            ),
            Outcome::Failed(message) => (ConditionStatus::Unknown, Reason::ProbeFailed, message.clone()),
            Outcome::Impossible => {
                let text = "no labels make the profile select the probe namespace";
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
            message = format!("{message}; only {address} was probed: {why}");
        }
        let message: String = message.chars().take(8000).collect();
        Condition::new(ConditionType::Enforced, status, reason, message)
    }
}

static NONE: Outcome = Outcome::Failed(String::new());

/// The action of a policy on a violation, as far as an answer shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Deny,
    Warn,
}

/// The policy for one shape, and the probe for it.
#[derive(Clone, Debug)]
struct Judged {
    policy: String,
    action: Action,
    objects: Objects,
}

/// Asks whether a profile is in force.
pub struct EnforcementProbe {
    site: Arc<Site>,
    metrics: Arc<Metrics>,
    accepted: Arc<AcceptedProfile>,
    shapes: Vec<Judged>,
    unseen: Option<&'static str>,
}

impl EnforcementProbe {
    /// To ask about this profile.
    pub fn new(site: Arc<Site>, metrics: Arc<Metrics>, accepted: Arc<AcceptedProfile>) -> Self {
        let (shapes, unseen) = Self::shapes(&accepted);
        Self { site, metrics, accepted, shapes, unseen }
    }

    fn shapes(accepted: &AcceptedProfile) -> (Vec<Judged>, Option<&'static str>) {
        let (compiled, mut shapes, mut unseen) = (&accepted.compiled, Vec::new(), None);
        for shape in Shape::ALL {
            let Some(binding) = compiled.probed_binding(shape) else { continue };
            // A shape without a probe is in the cluster as desired by now, and was written before the policy for pods:
            // an API server that enforces the latter has read the former, too.
            let Some(objects) = compiled.probes.question(shape) else { continue };
            match action(binding) {
                Some(action) => {
                    shapes.push(Judged { policy: names::policy(&compiled.profile, shape), action, objects });
                }
                None => unseen = Some("whether workloads are audited shows in the audit log only"),
            }
        }
        (shapes, unseen)
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

    /// Violations first: a server that denies them has read the labels.
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
            // Among equally bad ones the first: pods before workloads.
            let worst = asked.await.into_iter().rev().max_by_key(Outcome::severity);
            if let Some(wrong) = worst.filter(|outcome| *outcome != Outcome::Passed) {
                return wrong;
            }
        }
        Outcome::Passed
    }
}

/// The result of the answer about the violating object.
fn violates(judged: &Judged, answer: PolicyAnswer) -> Outcome {
    let Objects { kind, check, .. } = judged.objects;
    match (answer, judged.action) {
        // A policy that denies because it lacks something also denies complying objects, which is checked below.
        (PolicyAnswer::Denied(_) | PolicyAnswer::Broken(_), Action::Deny)
        | (PolicyAnswer::Admitted { warned: true }, Action::Warn) => Outcome::Passed,
        (PolicyAnswer::Admitted { .. }, _) => Outcome::ViolationAdmitted(kind, check),
        (PolicyAnswer::Denied(message) | PolicyAnswer::Broken(message), Action::Warn) => {
            Outcome::Failed(format!("the policy for a {kind} denies, but should warn: {message}"))
        }
        (PolicyAnswer::Other(message), _) => Outcome::Failed(message),
    }
}

/// The result of the answer about the complying object.
fn complies(judged: &Judged, answer: PolicyAnswer) -> Outcome {
    let kind = judged.objects.kind;
    match answer {
        PolicyAnswer::Admitted { warned: false } => Outcome::Passed,
        PolicyAnswer::Admitted { warned: true } => {
            let message = "it is admitted with a warning of this profile".to_owned();
            Outcome::CompliantDenied { kind, message, certain: false }
        }
        PolicyAnswer::Denied(message) => Outcome::CompliantDenied { kind, message, certain: true },
        PolicyAnswer::Broken(message) => Outcome::CompliantDenied { kind, message, certain: false },
        PolicyAnswer::Other(message) => Outcome::Failed(message),
    }
}

/// The action of a binding on violations; `None` if it only writes to the audit log, which no answer shows.
fn action(binding: &ValidatingAdmissionPolicyBinding) -> Option<Action> {
    let has = |action: &str| binding.spec.validation_actions.iter().any(|one| one == action);
    if has("Deny") {
        Some(Action::Deny)
    } else if has("Warn") {
        Some(Action::Warn)
    } else {
        None
    }
}

/// By what an API server shows that for it the probe namespace has the labels of a profile: the policy of the profile judges
/// an object there.
pub struct Sign(Judged);

impl Sign {
    /// Of this profile; `None` if it only audits, which no answer shows.
    pub fn of(accepted: &AcceptedProfile) -> Option<Self> {
        EnforcementProbe::shapes(accepted).0.into_iter().next().map(Self)
    }

    /// Whether a server shows it.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn is_shown(&self, site: &Site, server: &Server) -> Result<bool, String> {
        let Self(judged) = self;
        match site.ask(server, &judged.objects.path, &judged.objects.violating).await?.of_policy(&judged.policy) {
            PolicyAnswer::Admitted { warned } => Ok(warned),
            PolicyAnswer::Denied(_) | PolicyAnswer::Broken(_) => Ok(true),
            PolicyAnswer::Other(message) => Err(message),
        }
    }
}

impl Question for EnforcementProbe {
    type Answer = EnforcementAnswer;

    fn profile(&self) -> &str {
        &self.accepted.compiled.profile
    }

    async fn ask(&self, turn: &Turn) -> EnforcementAnswer {
        let (Some(labels), false) = (self.accepted.compiled.probe_labels(), self.shapes.is_empty()) else {
            return EnforcementAnswer::everywhere(Outcome::Impossible);
        };
        if let Err(why) = self.site.label(&labels).await {
            return EnforcementAnswer::everywhere(Outcome::Failed(why));
        }
        let set = self.site.servers.current().await;
        if set.servers.is_empty() {
            return EnforcementAnswer::everywhere(Outcome::Failed("no API server is known".to_owned()));
        }
        let asked = set.servers.iter().map(|one| async { (one.address.clone(), self.of_server(one, turn).await) });
        EnforcementAnswer { servers: join_all(asked).await, alone: set.alone, unseen: self.unseen }
    }

    fn is_right(&self, answer: &EnforcementAnswer) -> bool {
        matches!(answer.worst(), Outcome::Passed | Outcome::Impossible)
    }

    fn failed(&self, why: String) -> EnforcementAnswer {
        EnforcementAnswer::everywhere(Outcome::Failed(why))
    }

    fn concluded(&self, answer: &EnforcementAnswer) {
        let (profile, outcome) = (self.profile(), answer.worst());
        tracing::info!(profile, result = outcome.result().label(), ?outcome, "probed enforcement of the profile");
        self.metrics.probed(profile, outcome.result());
        for (address, outcome) in &answer.servers {
            self.metrics.probed_at(address, outcome.result());
        }
    }
}

/// Whether some API server denies, by the policy for pods, a pod that violates the profile. `None` if that is unknown.
pub async fn denies(site: &Site, accepted: &AcceptedProfile) -> Option<bool> {
    let compiled = &accepted.compiled;
    let (labels, objects) = (compiled.probe_labels()?, compiled.probes.question(Shape::Pods)?);
    site.label(&labels).await.ok()?;
    let policy = names::policy(&compiled.profile, Shape::Pods);
    let set = site.servers.current().await;
    let asked = set.servers.iter().map(|server| async {
        match site.ask(server, &objects.path, &objects.violating).await.ok()?.of_policy(&policy) {
            PolicyAnswer::Denied(_) | PolicyAnswer::Broken(_) => Some(true),
            PolicyAnswer::Admitted { .. } => Some(false),
            PolicyAnswer::Other(_) => None,
        }
    });
    let answers = join_all(asked).await;
    if answers.contains(&Some(true)) {
        return Some(true);
    }
    answers.into_iter().collect::<Option<Vec<_>>>().map(|_| false)
}
