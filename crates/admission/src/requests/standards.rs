//! The Pod Security Standards: their levels, and the trait that evaluates pods by them.

use std::fmt;

use serde_json::Value as Json;

/// A level of the Pod Security Standards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing is restricted.
    Privileged,
    /// Known privilege escalations are prevented.
    Baseline,
    /// Current hardening practice.
    Restricted,
}

/// A check that a pod fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// `host namespaces`
    pub reason: String,
    /// `hostNetwork=true`
    pub detail: String,
}

/// As messages have it: `reason (detail)`.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason, self.detail)
    }
}

/// Evaluates pods by the Pod Security Standards.
pub trait PodSecurity: Send + Sync {
    /// A pod's violations of a level, `baseline` or `restricted`, in its version of Kubernetes 1.`minor`, in the order
    /// and the words of `k8s.io/pod-security-admission`. The pod may be a pod template.
    ///
    /// # Errors
    /// Why there is no verdict.
    fn violations(&self, level: Level, minor: u8, pod: &Json) -> Result<Vec<Violation>, String>;
}
