//! The Pod Security Standards as the admission plugin `PodSecurity` of an offline API server asks for them.
//!
//! The verdict is that of the catalogue: the policy that a profile of the level and version becomes. [`messages`] has
//! the plugin's wording of violations. Should the two ever disagree about a pod, there is no verdict on it.

mod messages;

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use palisade_admission::requests::{self, PodSecurity, Violation};
use palisade_api::{Diagnostic, Level, Settings, ToolSecurityProfile, settings::standard::Version};
use serde_json::{Value as Json, json};

use self::messages::PssMessages;
use crate::validator::{Decision, ValidationRequest, Validator};

/// Evaluates pods by the catalogue's Pod Security Standards.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standards;

impl PodSecurity for Standards {
    fn violations(&self, level: requests::Level, minor: u8, pod: &Json) -> Result<Vec<Violation>, String> {
        let level = match level {
            requests::Level::Privileged => return Ok(vec![]),
            requests::Level::Baseline => Level::Baseline,
            requests::Level::Restricted => Level::Restricted,
        };
        let version = Version::Minor(minor);
        let policy = policy(level, version)?;
        let decision = policy.evaluate(&ValidationRequest::create("Pod", pod)).map_err(|error| error.to_string())?;
        let settings = Settings::seed(level, version);
        let violations = PssMessages { pod, settings: &settings, level }.violations();
        match (decision, violations.is_empty()) {
            (Decision::Admit, true) | (Decision::Deny { .. }, false) => Ok(violations),
            (Decision::Deny { message, .. }, true) => Err(format!("a violation has no known wording: {message}")),
            (Decision::Admit, false) => {
                let said = violations.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                Err(format!("the two evaluations of the pod differ; the API server may report: {said}"))
            }
        }
    }
}

/// The policies of the standards that were needed so far, or why a policy could not be made.
type Policies = BTreeMap<(Level, u8), Result<Arc<Validator>, String>>;

/// At most one for each level and version. Each takes some milliseconds to make.
static POLICIES: LazyLock<Mutex<Policies>> = LazyLock::new(Mutex::default);

/// The policy that the catalogue compiles for a level in a version.
fn policy(level: Level, version: Version) -> Result<Arc<Validator>, String> {
    let mut policies = POLICIES.lock().unwrap_or_else(PoisonError::into_inner);
    policies.entry((level, version.minor())).or_insert_with(|| compile(level, version).map(Arc::new)).clone()
}

fn compile(level: Level, version: Version) -> Result<Validator, String> {
    let profile: ToolSecurityProfile = serde_json::from_value(json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "standard"},
        "spec": {
            "namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": level, "baselineVersion": version.to_string(),
        },
    }))
    .map_err(|error| error.to_string())?;
    let all = |found: Vec<Diagnostic>| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let compiled = palisade_compiler::compile(&profile).map_err(all)?;
    Validator::new(&compiled.bundle.pods.policy).map_err(all)
}
