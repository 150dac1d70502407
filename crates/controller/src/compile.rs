//! Stages compile and check: from a profile to objects that may be applied, or to the reason why not.
//!
//! The verdict on a generation is remembered, so a reconcile that a namespace triggers does not compile.

use std::sync::Arc;

use palisade_api::{ToolSecurityProfile, ToolSecurityProfileSpec, conditions::Reason};
use palisade_compiler::compile;
use palisade_gate::check;
use tokio::sync::Semaphore;
use tracing::Instrument;

use crate::{
    accepted::{AcceptedProfile, Rejection, Verdict},
    store::ObservedProfile,
};

/// What this stage remembers of a profile.
#[derive(Debug, Default)]
pub struct CompileState {
    /// The verdict on a generation.
    verdict: Option<(i64, Verdict)>,
}

/// A check panicked: a bug in Palisade, and no verdict.
#[derive(Debug, thiserror::Error)]
#[error("the check of the profile panicked, which is a bug in Palisade: {0}")]
pub struct CheckPanicked(#[from] tokio::task::JoinError);

type Check = fn(Arc<ToolSecurityProfile>) -> Result<AcceptedProfile, Rejection>;

/// Compiles and checks the profile, once for each generation.
///
/// # Errors
/// The check panicked. The next reconcile tries again.
pub async fn verdict(
    checks: &Semaphore,
    observed: &ObservedProfile,
    state: &mut CompileState,
) -> Result<Verdict, CheckPanicked> {
    verdict_by(checks, observed, state, compile_and_check).await
}

async fn verdict_by(
    checks: &Semaphore,
    observed: &ObservedProfile,
    state: &mut CompileState,
    check: Check,
) -> Result<Verdict, CheckPanicked> {
    let generation = observed.meta.generation.unwrap_or_default();
    if let Some((checked, verdict)) = &state.verdict
        && *checked == generation
        && observed.profile.is_ok()
    {
        return Ok(verdict.clone());
    }
    let verdict = match &observed.profile {
        Ok(profile) => {
            let span = tracing::debug_span!("compile", profile = observed.meta.name, generation);
            let checked = on_own_thread(checks, Arc::clone(profile), check).instrument(span).await?;
            checked.map(Arc::new).map_err(Arc::new)
        }
        Err(error) => {
            let message = format!("the profile cannot be read: {error}");
            Err(Arc::new(Rejection { reason: Reason::InvalidSpec, message }))
        }
    };
    state.verdict = Some((generation, verdict.clone()));
    Ok(verdict)
}

fn compile_and_check(profile: Arc<ToolSecurityProfile>) -> Result<AcceptedProfile, Rejection> {
    let compiled = compile(&profile).map_err(|diagnostics| Rejection::new(Reason::InvalidSpec, &diagnostics))?;
    let compiled = check(compiled).map_err(|rejected| Rejection::new(Reason::CheckFailed, &rejected.diagnostics))?;
    Ok(AcceptedProfile { profile, compiled })
}

/// A check takes up to some tenths of a second of a processor.
async fn on_own_thread(
    checks: &Semaphore,
    profile: Arc<ToolSecurityProfile>,
    check: Check,
) -> Result<Result<AcceptedProfile, Rejection>, CheckPanicked> {
    let _permit = checks.acquire().await;
    Ok(tokio::task::spawn_blocking(move || check(profile)).await?)
}

/// The profile with an earlier spec, if the gate still accepts that.
///
/// # Errors
/// The check panicked.
pub async fn earlier(
    checks: &Semaphore,
    observed: &ObservedProfile,
    generation: i64,
    spec: ToolSecurityProfileSpec,
) -> Result<Option<AcceptedProfile>, CheckPanicked> {
    let mut metadata = observed.meta.clone();
    metadata.generation = Some(generation);
    let profile = Arc::new(ToolSecurityProfile { metadata, spec, status: None });
    Ok(match on_own_thread(checks, profile, compile_and_check).await? {
        Ok(accepted) => Some(accepted),
        Err(rejection) => {
            // An older version of Palisade accepted it.
            tracing::warn!(error = rejection.message, generation, "the last good spec is no longer accepted");
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
    async fn gate_is_rerun_after_a_panic() {
        let spec = serde_json::from_value(serde_json::json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}));
        let mut profile = ToolSecurityProfile::new("tools", spec.unwrap());
        profile.metadata.generation = Some(1);
        let observed = ObservedProfile { meta: profile.metadata.clone(), profile: Ok(Arc::new(profile)) };
        let (checks, mut state) = (Semaphore::new(1), CompileState::default());
        let check = |profile| {
            assert!(!PANICS.load(Ordering::Relaxed), "a bug");
            compile_and_check(profile)
        };
        let panicked = verdict_by(&checks, &observed, &mut state, check).await.unwrap_err();
        assert!(panicked.to_string().contains("a bug in Palisade"), "{panicked}");
        PANICS.store(false, Ordering::Relaxed);
        let verdict = verdict_by(&checks, &observed, &mut state, check).await.unwrap();
        assert_eq!(verdict.unwrap().generation(), 1);
    }
}
