//! The results of a probe of enforcement, and the condition that reports them. Pure.

use palisade_api::conditions::{ConditionType, Reason};

use crate::{
    metrics::EnforcementResult,
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
        kind: &'static str,
        message: String,
        /// True if the answer is of this generation, with its parameters.
        certain: bool,
    },
    /// The probe gave no answer, for this reason.
    Failed(String),
    /// The profile cannot select the probe namespace.
    Impossible,
}

impl Outcome {
    /// The result for metrics.
    pub fn result(&self) -> EnforcementResult {
        match self {
            Self::Passed => EnforcementResult::Passed,
            Self::ViolationAdmitted(..) => EnforcementResult::ViolationAdmitted,
            Self::CompliantDenied { .. } => EnforcementResult::CompliantPodDenied,
            Self::Failed(_) => EnforcementResult::Failed,
            Self::Impossible => EnforcementResult::Impossible,
        }
    }

    /// The higher, the worse: a wrong answer matters more than none.
    pub fn severity(&self) -> u8 {
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
    /// Results by address.
    pub servers: Vec<(String, Outcome)>,
    /// Why only one was probed, if there may be others.
    pub alone: Option<String>,
    /// Their actions if they enforce it, for a message.
    pub enforced: String,
    /// The part of the profile that no answer can show.
    pub unseen: Option<String>,
}

impl EnforcementAnswer {
    /// The same result for all API servers.
    pub fn everywhere(outcome: Outcome) -> Self {
        Self { servers: vec![(String::new(), outcome)], alone: None, enforced: String::new(), unseen: None }
    }

    pub fn worst(&self) -> &Outcome {
        self.servers.iter().map(|(_, outcome)| outcome).max_by_key(|outcome| outcome.severity()).unwrap_or(&NONE)
    }

    /// True if each API server enforces the profile.
    pub fn passed(&self) -> bool {
        *self.worst() == Outcome::Passed
    }

    /// The reason why the probed generation must not stay in effect: with it, an API server denies a compliant object.
    /// The API server has denied a violating object with it before, so it has read this generation and its parameters.
    /// An admitted violation is not a refutation: the API server may be slow.
    pub fn refutation(&self) -> Option<String> {
        match self.worst() {
            Outcome::CompliantDenied { kind, message, certain: true } => {
                Some(format!("an API server denies a compliant {kind}: {message}"))
            }
            _ => None,
        }
    }

    /// The API servers that were asked, for a message.
    pub fn servers(&self) -> String {
        match self.servers.as_slice() {
            [_] => "the API server".to_owned(),
            several => format!("each of {} API servers", several.len()),
        }
    }

    pub fn condition(&self) -> Condition {
        let (status, reason, text) = match self.worst() {
            Outcome::Passed => {
                let text = format!("{} {}, and admits compliant objects", self.servers(), self.enforced);
                (ConditionStatus::True, Reason::ProbesPassed, text)
            }
            Outcome::ViolationAdmitted(kind, check) => (
                ConditionStatus::False,
                Reason::ViolationAdmitted,
                format!("a {kind} that violates check {check} is admitted"),
            ),
            Outcome::CompliantDenied { kind, message, .. } => {
                (ConditionStatus::False, Reason::CompliantPodDenied, format!("a compliant {kind} is denied: {message}"))
            }
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
        if let Some(unseen) = &self.unseen {
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
