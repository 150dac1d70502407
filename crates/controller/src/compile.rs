//! Stages compile and check: from a profile to what may be applied, or to why it may not.
//!
//! What may be applied is remembered by generation, so that a pass because of a namespace does not compile.

use std::{fmt::Write as _, sync::Arc};

use kube::Client;
use palisade_api::{Diagnostic, ToolSecurityProfile, ToolSecurityProfileSpec, conditions::Reason};
use palisade_compiler::{Compiled, compile};
use palisade_harness::{Checked, check};

use crate::{call::ApiError, memory::Memory, revision, world::ObservedProfile};

/// How many diagnostics a message has.
const SHOWN: usize = 5;
/// The longest diagnostic in a message, in characters.
const LONGEST: usize = 1000;

/// A profile that may be applied.
#[derive(Debug)]
pub struct Good {
    /// The profile.
    pub profile: Arc<ToolSecurityProfile>,
    /// What it became.
    pub compiled: Checked<Compiled>,
}

impl Good {
    /// The generation of the spec.
    pub fn generation(&self) -> i64 {
        self.profile.metadata.generation.unwrap_or_default()
    }
}

/// Why a profile may not be applied.
#[derive(Debug, PartialEq)]
pub struct Refused {
    /// `InvalidSpec` or `CheckFailed`.
    pub reason: Reason,
    /// The first diagnostics.
    pub message: String,
}

impl Refused {
    fn new(reason: Reason, diagnostics: &[Diagnostic]) -> Self {
        Self { reason, message: told(diagnostics) }
    }
}

/// The first diagnostics on one line, and how many more there are.
pub fn told(diagnostics: &[Diagnostic]) -> String {
    let mut message = String::new();
    for (index, diagnostic) in diagnostics.iter().take(SHOWN).enumerate() {
        let separator = if index == 0 { "" } else { "; " };
        let text: String = diagnostic.to_string().chars().take(LONGEST).collect();
        let _ = write!(message, "{separator}{text}");
    }
    if diagnostics.len() > SHOWN {
        let _ = write!(message, "; and {} more", diagnostics.len() - SHOWN);
    }
    message
}

/// What a profile is, as it was written last.
pub type Verdict = Result<Arc<Good>, Arc<Refused>>;

/// Judges the profile, once for each generation.
pub async fn verdict(observed: &ObservedProfile, memory: &mut Memory) -> Verdict {
    let generation = observed.meta.generation.unwrap_or_default();
    if let Some((judged, verdict)) = &memory.verdict
        && *judged == generation
        && observed.profile.is_ok()
    {
        return verdict.clone();
    }
    let verdict = match &observed.profile {
        Ok(profile) => judge(Arc::clone(profile)).await.map(Arc::new).map_err(Arc::new),
        Err(error) => {
            let message = format!("the profile cannot be read: {error}");
            Err(Arc::new(Refused { reason: Reason::InvalidSpec, message }))
        }
    };
    memory.verdict = Some((generation, verdict.clone()));
    verdict
}

/// Compiles and checks, on a thread of its own: a check takes up to some tenths of a second.
async fn judge(profile: Arc<ToolSecurityProfile>) -> Result<Good, Refused> {
    let judged = tokio::task::spawn_blocking(move || {
        let compiled = compile(&profile).map_err(|diagnostics| Refused::new(Reason::InvalidSpec, &diagnostics))?;
        let compiled = check(compiled).map_err(|rejected| Refused::new(Reason::CheckFailed, &rejected.diagnostics))?;
        Ok(Good { profile, compiled })
    });
    judged.await.unwrap_or_else(|error| {
        Err(Refused { reason: Reason::CheckFailed, message: format!("the check broke off: {error}") })
    })
}

/// The last spec of the profile that was put in force: from memory, or else from its revision.
///
/// # Errors
/// The revision could not be read. That none is known is no error.
pub async fn last_good(
    client: &Client,
    observed: &ObservedProfile,
    memory: &mut Memory,
) -> Result<Option<Arc<Good>>, ApiError> {
    if memory.last_good.is_none() && !memory.revision_read {
        if let Some(saved) = revision::load(client, &observed.meta).await? {
            memory.last_good = of_spec(observed, saved.generation, saved.spec).await.map(Arc::new);
        }
        memory.revision_read = true;
    }
    Ok(memory.last_good.clone())
}

/// The profile with another spec.
async fn of_spec(observed: &ObservedProfile, generation: i64, spec: ToolSecurityProfileSpec) -> Option<Good> {
    let mut metadata = observed.meta.clone();
    metadata.generation = Some(generation);
    match judge(Arc::new(ToolSecurityProfile { metadata, spec, status: None })).await {
        Ok(good) => Some(good),
        Err(refused) => {
            // An older version of Palisade accepted it.
            tracing::warn!(message = refused.message, generation, "the last good spec is not acceptable any more");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_first_five() {
        let all: Vec<_> = (0..7).map(|n| Diagnostic::new(format!("spec.x[{n}]"), "is wrong")).collect();
        let message = Refused::new(Reason::InvalidSpec, &all).message;
        assert!(message.starts_with("spec.x[0]: is wrong; spec.x[1]: is wrong; "), "{message}");
        assert!(message.ends_with("spec.x[4]: is wrong; and 2 more"), "{message}");
    }
}
