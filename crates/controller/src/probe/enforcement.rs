//! Probe of enforcement: each API server must deny a violating object of each shape, and admit a compliant one.

use std::{fmt::Write as _, sync::Arc};

use futures::future::join_all;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use palisade_api::names::{self, Part, Shape};
use palisade_compiler::Question as Objects;

use super::{
    namespace::{ATTEMPT_BACKOFF, PolicyAnswer, ProbeNamespace},
    outcome::{EnforcementAnswer, Outcome},
    queue::ProbeLease,
    results::Question,
    servers::Server,
};
use crate::{generations::accepted::AcceptedProfile, metrics::Metrics, status::conditions::own_stage};

/// The action of a policy on a violation, as far as an answer shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The API server denies the object.
    Deny,
    /// The API server admits the object with a warning.
    Warn,
}

/// The policy for one shape, and the probe for it.
#[derive(Clone, Debug)]
struct ProbedPolicy {
    policy: String,
    action: Action,
    part: Part,
    objects: Objects,
}

/// The actions of an API server on violations, for a message. `checks` are those with a separate stage.
fn enforced(all: &[ProbedPolicy], checks: &str) -> String {
    let of = |action| {
        let shapes = all.iter().filter(|one| one.action == action).filter_map(|one| match one.part {
            Part::Judge(Shape::Pods) => Some("pods"),
            Part::Judge(Shape::Workloads) => Some("workloads"),
            Part::Judge(Shape::Objects) => Some("other objects"),
            Part::Checks(_) | Part::Guard => None,
        });
        listed(&shapes.collect::<Vec<_>>())
    };
    let mut text = match (of(Action::Deny).as_str(), of(Action::Warn).as_str()) {
        ("", warned) => format!("warns about {warned} that violate the profile"),
        (denied, "") => format!("denies {denied} that violate the profile"),
        (denied, warned) => format!("denies {denied} that violate the profile, warns about such {warned}"),
    };
    if all.iter().any(|one| matches!((one.part, one.action), (Part::Checks(_), Action::Deny))) {
        let _ = write!(text, ", denies violations of {checks} at every stage");
    }
    text
}

/// Words as a list in a sentence.
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

pub struct EnforcementProbe {
    namespace: Arc<ProbeNamespace>,
    metrics: Arc<Metrics>,
    accepted: Arc<AcceptedProfile>,
    shapes: Vec<ProbedPolicy>,
    unseen: Option<String>,
}

impl EnforcementProbe {
    /// To ask about this profile.
    pub fn new(namespace: Arc<ProbeNamespace>, metrics: Arc<Metrics>, accepted: Arc<AcceptedProfile>) -> Self {
        let (shapes, unseen) = Self::shapes(&accepted);
        Self { namespace, metrics, accepted, shapes, unseen }
    }

    fn shapes(accepted: &AcceptedProfile) -> (Vec<ProbedPolicy>, Option<String>) {
        let (compiled, mut shapes, mut unseen) = (&accepted.compiled, Vec::new(), Vec::new());
        for part in Part::ALL {
            let Some(binding) = compiled.probed_binding(part) else { continue };
            let Some(objects) = compiled.probes.question(part) else { continue };
            match action(binding) {
                Some(action) => {
                    shapes.push(ProbedPolicy { policy: names::policy(&compiled.profile, part), action, part, objects });
                }
                // The condition has what is audited, or else checks with a stage of their own.
                None => unseen.extend(match part {
                    Part::Judge(Shape::Workloads) => Some("workloads"),
                    Part::Judge(Shape::Objects) => Some("other objects"),
                    Part::Judge(Shape::Pods) | Part::Checks(_) | Part::Guard => None,
                }),
            }
        }
        let unseen = (!unseen.is_empty())
            .then(|| format!("the stage Audit of {} is visible only in the audit log", listed(&unseen)));
        (shapes, unseen)
    }

    async fn of_server(&self, server: &Server, turn: &ProbeLease) -> Outcome {
        let mut pause = ATTEMPT_BACKOFF.0;
        loop {
            let outcome = self.attempt(server).await;
            if outcome == Outcome::Passed || turn.is_over() || server.silent().is_some() {
                return outcome;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(ATTEMPT_BACKOFF.1);
        }
    }

    /// Violations first: a server that denies them has read the labels.
    async fn attempt(&self, server: &Server) -> Outcome {
        for violating in [true, false] {
            let asked = join_all(self.shapes.iter().map(|probed| async move {
                let Objects { path, violating: wrong, compliant: right, .. } = &probed.objects;
                match self.namespace.ask(server, path, if violating { wrong } else { right }).await {
                    Ok(reply) if violating => violates(probed, reply.of_policy(&probed.policy)),
                    Ok(reply) => complies(probed, reply.of_policy(&probed.policy)),
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
fn violates(probed: &ProbedPolicy, answer: PolicyAnswer) -> Outcome {
    let Objects { kind, check, .. } = probed.objects;
    match (answer, probed.action) {
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
fn complies(probed: &ProbedPolicy, answer: PolicyAnswer) -> Outcome {
    let kind = probed.objects.kind;
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

/// Detects that an API server has the labels of a profile on the probe namespace: the policy of the profile evaluates
/// an object there.
pub struct LabelPropagation(ProbedPolicy);

impl LabelPropagation {
    /// Of this profile; `None` if it only audits, which no answer shows.
    pub fn of(accepted: &AcceptedProfile) -> Option<Self> {
        EnforcementProbe::shapes(accepted).0.into_iter().next().map(Self)
    }

    /// True if a server shows it.
    ///
    /// # Errors
    ///
    /// The reason why there is no answer.
    pub async fn is_shown(&self, namespace: &ProbeNamespace, server: &Server) -> Result<bool, String> {
        let Self(probed) = self;
        match namespace.ask(server, &probed.objects.path, &probed.objects.violating).await?.of_policy(&probed.policy) {
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

    async fn ask(&self, turn: &ProbeLease) -> EnforcementAnswer {
        let (Some(labels), false) = (self.accepted.compiled.probe_labels(), self.shapes.is_empty()) else {
            return EnforcementAnswer::everywhere(Outcome::Impossible);
        };
        if let Err(why) = self.namespace.label(&labels).await {
            return EnforcementAnswer::everywhere(Outcome::Failed(why));
        }
        let set = self.namespace.servers.current().await;
        if set.servers.is_empty() {
            return EnforcementAnswer::everywhere(Outcome::Failed("no API server is known".to_owned()));
        }
        let asked = set.servers.iter().map(|one| async { (one.address.clone(), self.of_server(one, turn).await) });
        EnforcementAnswer {
            servers: join_all(asked).await,
            alone: set.alone,
            enforced: enforced(&self.shapes, &own_stage(&self.accepted.compiled.enforcement)),
            unseen: self.unseen.clone(),
        }
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
        self.metrics.probes.enforcement_ended(profile, outcome.result());
        for (address, outcome) in &answer.servers {
            self.metrics.probes.enforcement_ended_at(address, outcome.result());
        }
    }
}

#[cfg(test)]
mod tests {
    use palisade_api::ToolSecurityProfile;
    use serde_json::json;

    use super::*;

    /// The message of the condition Enforced for each stage of pods and workloads, if the probes pass.
    #[test]
    fn message_reports_the_action_for_each_shape() {
        for (pods, workloads, by_label, expected, unseen) in [
            ("Deny", "Deny", false, "denies pods and workloads that violate the profile", false),
            ("Deny", "Warn", false, "denies pods that violate the profile, warns about such workloads", false),
            ("Deny", "Audit", false, "denies pods that violate the profile", true),
            ("Deny", "Off", false, "denies pods that violate the profile", false),
            // In the probe namespace, which is in Deny.
            ("Audit", "Audit", true, "denies pods and workloads that violate the profile", false),
            ("Audit", "Off", true, "denies pods that violate the profile", false),
        ] {
            let stages = if by_label { "ByLabel" } else { "Uniform" };
            let profile: ToolSecurityProfile = serde_json::from_value(json!({
                "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile",
                "metadata": {"name": "x", "generation": 1},
                "spec": {
                    "namespaceSelector": {"matchLabels": {"a": "b"}},
                    "enforcement": {"pods": pods, "workloads": workloads, "namespaceStages": stages},
                },
            }))
            .expect("a profile");
            let compiled = palisade_compiler::compile(&profile).expect("it compiles");
            let compiled = palisade_gate::check(compiled).expect("it is checked");
            let accepted = AcceptedProfile { profile: Arc::new(profile), compiled };
            let (shapes, of_audit) = EnforcementProbe::shapes(&accepted);
            assert_eq!(
                (enforced(&shapes, "").as_str(), of_audit.is_some()),
                (expected, unseen),
                "{pods} {workloads} {stages}"
            );
        }
        let of = |part, action| ProbedPolicy {
            policy: String::new(),
            action,
            part,
            objects: Objects {
                path: String::new(),
                kind: "",
                compliant: json!(null),
                violating: json!(null),
                check: "",
            },
        };
        let pods = || of(Part::Judge(Shape::Pods), Action::Deny);
        assert_eq!(
            enforced(&[pods(), of(Part::Checks(Shape::Workloads), Action::Deny)], "check privileged"),
            "denies pods that violate the profile, denies violations of check privileged at every stage"
        );
        let warned = enforced(&[pods(), of(Part::Checks(Shape::Pods), Action::Warn)], "check privileged");
        assert_eq!(warned, "denies pods that violate the profile");
    }
}
