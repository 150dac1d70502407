//! Stages compile and check: from a profile to what may be applied, or to why it may not.
//!
//! What may be applied is remembered by generation, so that a pass because of a namespace does not compile.

use std::{fmt::Write as _, sync::Arc};

use kube::Client;
use palisade_api::{Diagnostic, ToolSecurityProfile, ToolSecurityProfileSpec, conditions::Reason};
use palisade_compiler::{Compiled, compile};
use palisade_gate::{Checked, check};
use tokio::sync::Semaphore;

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
    /// `InvalidSpec`, `CheckFailed` or `RefusedByApiServer`.
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

/// A check that panicked: an error of Palisade, and no verdict.
#[derive(Debug, thiserror::Error)]
#[error("the check of the profile panicked, which is an error of Palisade: {0}")]
pub struct Panicked(#[from] tokio::task::JoinError);

/// Why the last good spec is not known.
#[derive(Debug, thiserror::Error)]
pub enum LastGoodError {
    /// The revision could not be read.
    #[error(transparent)]
    Read(#[from] ApiError),
    /// It could not be judged.
    #[error(transparent)]
    Panicked(#[from] Panicked),
}

/// Judges the profile, once for each generation.
///
/// # Errors
/// The check panicked. That is not remembered.
pub async fn verdict(checks: &Semaphore, observed: &ObservedProfile, memory: &mut Memory) -> Result<Verdict, Panicked> {
    verdict_by(checks, observed, memory, judge).await
}

async fn verdict_by(
    checks: &Semaphore,
    observed: &ObservedProfile,
    memory: &mut Memory,
    judge: fn(Arc<ToolSecurityProfile>) -> Result<Good, Refused>,
) -> Result<Verdict, Panicked> {
    let generation = observed.meta.generation.unwrap_or_default();
    if let Some((judged, verdict)) = &memory.verdict
        && *judged == generation
        && observed.profile.is_ok()
    {
        return Ok(verdict.clone());
    }
    let verdict = match &observed.profile {
        Ok(profile) => beside(checks, Arc::clone(profile), judge).await?.map(Arc::new).map_err(Arc::new),
        Err(error) => {
            let message = format!("the profile cannot be read: {error}");
            Err(Arc::new(Refused { reason: Reason::InvalidSpec, message }))
        }
    };
    memory.verdict = Some((generation, verdict.clone()));
    Ok(verdict)
}

/// Compiles and checks.
fn judge(profile: Arc<ToolSecurityProfile>) -> Result<Good, Refused> {
    let compiled = compile(&profile).map_err(|diagnostics| Refused::new(Reason::InvalidSpec, &diagnostics))?;
    let compiled = check(compiled).map_err(|rejected| Refused::new(Reason::CheckFailed, &rejected.diagnostics))?;
    Ok(Good { profile, compiled })
}

/// On a thread of its own: a check takes up to some tenths of a second.
async fn beside(
    checks: &Semaphore,
    profile: Arc<ToolSecurityProfile>,
    judge: fn(Arc<ToolSecurityProfile>) -> Result<Good, Refused>,
) -> Result<Result<Good, Refused>, Panicked> {
    let _permit = checks.acquire().await;
    Ok(tokio::task::spawn_blocking(move || judge(profile)).await?)
}

/// The last spec of the profile that was put in force: from memory, or else from its revision.
///
/// # Errors
/// It could not be read or judged. That none is known is no error.
pub async fn last_good(
    client: &Client,
    checks: &Semaphore,
    observed: &ObservedProfile,
    memory: &mut Memory,
) -> Result<Option<Arc<Good>>, LastGoodError> {
    if memory.last_good.is_none() && !memory.revision_read {
        if let Some(saved) = revision::load(client, &observed.meta).await? {
            let written = observed
                .profile
                .as_ref()
                .ok()
                .filter(|written| observed.meta.generation == Some(saved.generation) && written.spec == saved.spec);
            memory.last_good = if written.is_some() {
                // After a restart, mostly. It is judged once.
                memory.revision_saved = Some(saved.generation);
                verdict(checks, observed, memory).await?.ok()
            } else {
                of_spec(checks, observed, saved.generation, saved.spec).await?.map(Arc::new)
            };
        }
        memory.revision_read = true;
    }
    Ok(memory.last_good.clone())
}

/// The profile with another spec.
async fn of_spec(
    checks: &Semaphore,
    observed: &ObservedProfile,
    generation: i64,
    spec: ToolSecurityProfileSpec,
) -> Result<Option<Good>, Panicked> {
    let mut metadata = observed.meta.clone();
    metadata.generation = Some(generation);
    let profile = Arc::new(ToolSecurityProfile { metadata, spec, status: None });
    Ok(match beside(checks, profile, judge).await? {
        Ok(good) => Some(good),
        Err(refused) => {
            // An older version of Palisade accepted it.
            tracing::warn!(message = refused.message, generation, "the last good spec is not acceptable any more");
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Whether the next check panics.
    static PANICS: AtomicBool = AtomicBool::new(true);

    #[tokio::test]
    async fn a_check_that_panicked_is_made_again() {
        let spec = serde_json::from_value(serde_json::json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}));
        let mut profile = ToolSecurityProfile::new("tools", spec.unwrap());
        profile.metadata.generation = Some(1);
        let observed = ObservedProfile { meta: profile.metadata.clone(), profile: Ok(Arc::new(profile)) };
        let (checks, mut memory) = (Semaphore::new(1), Memory::default());
        let judge = |profile| {
            assert!(!PANICS.load(Ordering::Relaxed), "a bug");
            judge(profile)
        };
        let panicked = verdict_by(&checks, &observed, &mut memory, judge).await.unwrap_err();
        assert!(panicked.to_string().contains("an error of Palisade"), "{panicked}");
        PANICS.store(false, Ordering::Relaxed);
        let verdict = verdict_by(&checks, &observed, &mut memory, judge).await.unwrap();
        assert_eq!(verdict.unwrap().generation(), 1);
    }

    #[test]
    fn a_message_names_the_first_five() {
        let all: Vec<_> = (0..7).map(|n| Diagnostic::new(format!("spec.x[{n}]"), "is wrong")).collect();
        let message = Refused::new(Reason::InvalidSpec, &all).message;
        assert!(message.starts_with("spec.x[0]: is wrong; spec.x[1]: is wrong; "), "{message}");
        assert!(message.ends_with("spec.x[4]: is wrong; and 2 more"), "{message}");
    }
}
