//! Stages compile and check: from a profile to objects that may be applied, or to the reason why not.
//!
//! The verdict on a generation is remembered, so a reconcile that a namespace triggers does not compile.

use std::{sync::Arc, time::Duration};

use palisade_api::{ToolSecurityProfile, ToolSecurityProfileSpec, conditions::Reason};
use palisade_compiler::compile;
use palisade_gate::check;
use palisade_process::on_large_stack;
use tokio::{sync::Semaphore, time::Instant};
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
    /// When it is to be found anew, because a bug or the system is to blame and not the profile.
    again: Option<Instant>,
}

impl CompileState {
    /// How long until the verdict is to be found anew, if it is.
    pub fn again_in(&self) -> Option<Duration> {
        self.again.map(|again| again.saturating_duration_since(Instant::now()))
    }
}

type Check = fn(Arc<ToolSecurityProfile>) -> Result<AcceptedProfile, Rejection>;

/// How long a verdict holds that says nothing about the profile.
const AGAIN: Duration = Duration::from_mins(1);

/// Compiles and checks the profile, once for each generation. A profile that makes that panic is not accepted.
pub async fn verdict(checks: &Semaphore, observed: &ObservedProfile, state: &mut CompileState) -> Verdict {
    verdict_by(checks, observed, state, compile_and_check).await
}

async fn verdict_by(checks: &Semaphore, observed: &ObservedProfile, state: &mut CompileState, check: Check) -> Verdict {
    let generation = observed.meta.generation.unwrap_or_default();
    if let Some((checked, verdict)) = &state.verdict
        && *checked == generation
        && observed.profile.is_ok()
        && state.again.is_none_or(|again| Instant::now() < again)
    {
        return verdict.clone();
    }
    let verdict = match &observed.profile {
        Ok(profile) => {
            let span = tracing::debug_span!("compile", profile = observed.meta.name, generation);
            let checked = on_own_thread(checks, Arc::clone(profile), check).instrument(span).await;
            checked.map(Arc::new).map_err(Arc::new)
        }
        Err(error) => {
            let message = format!("the profile cannot be read: {error}");
            Err(Arc::new(Rejection { reason: Reason::InvalidSpec, message }))
        }
    };
    let is_final = !verdict.as_ref().is_err_and(|rejection| rejection.reason == Reason::InternalError);
    state.again = (!is_final).then(|| Instant::now() + AGAIN);
    state.verdict = Some((generation, verdict.clone()));
    verdict
}

fn compile_and_check(profile: Arc<ToolSecurityProfile>) -> Result<AcceptedProfile, Rejection> {
    let compiled = compile(&profile).map_err(|diagnostics| Rejection::new(Reason::InvalidSpec, &diagnostics))?;
    let compiled = check(compiled).map_err(|rejected| Rejection::new(Reason::CheckFailed, &rejected.diagnostics))?;
    Ok(AcceptedProfile { profile, compiled })
}

/// A check takes up to some tenths of a second of a processor. Whatever a profile makes of it, other profiles and the
/// process go on.
async fn on_own_thread(
    checks: &Semaphore,
    profile: Arc<ToolSecurityProfile>,
    check: Check,
) -> Result<AcceptedProfile, Rejection> {
    let _permit = checks.acquire().await;
    let checked = tokio::task::spawn_blocking(move || on_large_stack(move || check(profile)));
    let why = match checked.await {
        Ok(Ok(checked)) => return checked,
        Ok(Err(no_result)) => no_result.to_string(),
        Err(error) => error.to_string(),
    };
    tracing::error!(error = why, "the profile could not be compiled");
    Err(Rejection::internal(&why))
}

/// The profile with an earlier spec, if the gate still accepts that.
pub async fn earlier(
    checks: &Semaphore,
    observed: &ObservedProfile,
    generation: i64,
    spec: ToolSecurityProfileSpec,
) -> Option<AcceptedProfile> {
    let mut metadata = observed.meta.clone();
    metadata.generation = Some(generation);
    let profile = Arc::new(ToolSecurityProfile { metadata, spec, status: None });
    match on_own_thread(checks, profile, compile_and_check).await {
        Ok(accepted) => Some(accepted),
        Err(rejection) => {
            // An older version of Palisade accepted it.
            tracing::warn!(error = rejection.message, generation, "the last good spec is no longer accepted");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Whether the next check panics.
    static PANICS: AtomicBool = AtomicBool::new(true);

    #[tokio::test(start_paused = true)]
    async fn a_check_that_panics_rejects_the_profile_and_is_rerun() {
        let spec = serde_json::from_value(serde_json::json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}));
        let mut profile = ToolSecurityProfile::new("tools", spec.unwrap());
        profile.metadata.generation = Some(1);
        let observed = ObservedProfile { meta: profile.metadata.clone(), profile: Ok(Arc::new(profile)) };
        let (checks, mut state) = (Semaphore::new(1), CompileState::default());
        let check = |profile| {
            assert!(!PANICS.load(Ordering::Relaxed), "a bug");
            compile_and_check(profile)
        };
        let rejection = verdict_by(&checks, &observed, &mut state, check).await.unwrap_err();
        assert_eq!(rejection.reason, Reason::InternalError);
        assert!(rejection.message.contains("a bug in Palisade: a bug"), "{rejection:?}");
        // Not with each event of a namespace.
        PANICS.store(false, Ordering::Relaxed);
        assert!(verdict_by(&checks, &observed, &mut state, check).await.is_err());
        tokio::time::advance(state.again_in().unwrap()).await;
        let verdict = verdict_by(&checks, &observed, &mut state, check).await;
        assert_eq!(verdict.unwrap().generation(), 1);
        assert_eq!(state.again_in(), None);
    }
}
