//! The definition of a check.

use serde_json::Value as Json;

use crate::{
    Level, Lowering, Settings, Values,
    defaults::{Declared, FieldDefault},
};

/// A pod security check: data and three functions, all in one file of the catalogue.
pub struct Check {
    /// The id that messages, exceptions and documentation use. Where a Pod Security Standards check
    /// restricts the same field, this is the name that standard's messages use.
    pub id: &'static str,
    /// The title, one line.
    pub title: &'static str,
    /// The settings in a profile that it reads, below `spec`; first the one that turns it on.
    pub settings: &'static [&'static str],
    /// The field of PodSecurityPolicy that it succeeds, if any.
    pub psp: Option<&'static str>,
    /// The checks of the Pod Security Standards that it covers.
    pub pss: &'static [Pss],
    /// The fields it restricts.
    pub fields: &'static [Field],
    /// Its fixtures, as YAML (see [`crate::fixture`]).
    pub fixtures: &'static str,
    /// The rule for the settings; `None` if they allow everything.
    pub compile: fn(&Settings, &mut Lowering<'_>) -> Option<Rule>,
    /// The defaults that the settings require for unset fields. A pod with them complies.
    pub defaults: fn(&Settings, &Declared) -> Vec<FieldDefault>,
    /// Changes a pod so that it complies. The pod has passed through the checks before this one.
    pub comply: fn(&Settings, &Values, &mut Json),
    /// Changes a compliant pod so that it violates this check, and still passes the API server's own validation.
    /// Returns false, and does not change the pod, if the settings allow everything.
    pub violate: fn(&Settings, &Values, &mut Json) -> bool,
}

/// A check of the Pod Security Standards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pss {
    /// The level from which on it applies.
    pub level: Level,
    /// Its id in `k8s.io/pod-security-admission/policy`.
    pub id: &'static str,
    /// The minor version of Kubernetes from which on it applies.
    pub since: u8,
}

/// A restricted field of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Below `spec`.
    Pod(&'static str),
    /// Below each of `spec.containers[*]`, `spec.initContainers[*]` and `spec.ephemeralContainers[*]`.
    Container(&'static str),
    /// Below each of `spec.volumes[*]`.
    Volume(&'static str),
    /// Annotations of the pod with this prefix of the key.
    Annotation(&'static str),
}

/// The CEL that finds violations of a check in a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Helper variables: name and expression. Names are unique over the catalogue.
    pub variables: Vec<(&'static str, String)>,
    /// The ways to violate it.
    pub findings: Vec<Finding>,
}

/// One way to violate a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The part of the pod that it evaluates.
    pub scope: FindingScope,
    /// CEL of type bool: true if it is violated.
    pub violated: String,
    /// CEL of type string: what was found and what is allowed. May use what `violated` uses.
    pub says: String,
    /// Cheap CEL of type bool that is true only if it is not violated: for the fast path, if that cannot be derived
    /// from `violated`.
    pub complies: Option<String>,
}

/// The part of a pod that a finding evaluates, and the variable for it in its expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingScope {
    /// The pod: `variables.spec`, `variables.podSecurityContext`.
    Pod,
    /// Each init, normal and ephemeral container: `c`.
    Containers,
    /// Each volume: `v`.
    Volumes,
    /// Each volume in the list that this helper variable of the rule holds: `v`.
    List(&'static str),
}

impl Rule {
    /// A rule with one finding.
    pub fn one(scope: FindingScope, violated: impl Into<String>, says: impl Into<String>) -> Self {
        Self { variables: Vec::new(), findings: vec![Finding::new(scope, violated, says)] }
    }
}

impl Finding {
    /// A finding.
    pub fn new(scope: FindingScope, violated: impl Into<String>, says: impl Into<String>) -> Self {
        Self { scope, violated: violated.into(), says: says.into(), complies: None }
    }

    /// The same, with a cheap expression for the fast path that is true only if it is not violated.
    #[must_use]
    pub fn complies(self, complies: impl Into<String>) -> Self {
        Self { complies: Some(complies.into()), ..self }
    }
}
