//! Stages compile and check: from a profile to objects that may be applied, or to the reason why not.
//!
//! The verdict on a generation is remembered, so a reconcile that a namespace triggers does not compile.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use palisade_api::{Diagnostic, ToolSecurityProfile, ToolSecurityProfileSpec, conditions::Reason, names};
use palisade_compiler::{ObjectType, Options, compile_with, fast_path};
use palisade_gate::{Minor, NotAMinor, PORTABLE, check_for};
use palisade_runtime::on_large_stack;
use tokio::{sync::Semaphore, time::Instant};
use tracing::Instrument;

use crate::{
    generations::accepted::{AcceptedProfile, Rejection, Verdict},
    object_kind::ObjectKind,
    watch::store::ObservedProfile,
};

/// The inputs of a verdict: the generation, its fast path and the cluster's minor. The annotation for the fast path does
/// not change the generation.
type Inputs = (i64, Option<bool>, Minor);

/// State of this stage for a profile.
#[derive(Debug, Default)]
pub struct CompileState {
    /// The verdict on the last inputs.
    verdict: Option<(Inputs, Verdict)>,
    /// Time of the next attempt, if a bug or the system caused the failure and not the profile.
    again: Option<Instant>,
}

impl CompileState {
    /// Time until the next attempt, if there is one.
    pub fn again_in(&self) -> Option<Duration> {
        self.again.map(|again| again.saturating_duration_since(Instant::now()))
    }
}

/// How profiles are compiled and checked.
#[derive(Debug)]
pub struct Compiler {
    /// How many at the same time: each takes a processor.
    turns: Semaphore,
    /// True if their policies have a fast path.
    fast_path: bool,
    /// The kinds that profiles may generate.
    kinds: BTreeSet<ObjectType>,
    /// The minor version of the cluster; [`PORTABLE`] if it is later or not known yet.
    cluster: Mutex<Minor>,
}

impl Compiler {
    /// So many profiles at the same time, with a fast path or without, and with objects of these kinds.
    pub fn new(concurrency: usize, fast_path: bool, kinds: &[ObjectKind]) -> Self {
        let kinds = kinds.iter().map(|kind| kind.object_type.clone()).collect();
        Self { turns: Semaphore::new(concurrency.max(1)), fast_path, kinds, cluster: Mutex::new(PORTABLE) }
    }

    /// Rejects a profile that generates objects of kinds that the controller may not write.
    fn permitted(&self, accepted: AcceptedProfile) -> Result<AcceptedProfile, Rejection> {
        let types = accepted.compiled.templates.object_types().into_iter();
        let diagnostics: Vec<_> = types
            .filter(|(object_type, _)| !self.kinds.contains(*object_type))
            .map(|(ObjectType { api_version, kind }, index)| {
                let message = format!("the controller has no permission to write {api_version} {kind}");
                let help = format!(
                    "add {{apiVersion: {api_version}, kind: {kind}, resource: PLURAL}} to generate.kinds in the values of \
                     the chart"
                );
                Diagnostic::new(format!("spec.generate[{index}].template.kind"), message).help(help)
            })
            .collect();
        if diagnostics.is_empty() { Ok(accepted) } else { Err(Rejection::new(Reason::InvalidSpec, &diagnostics)) }
    }

    fn cluster(&self) -> Minor {
        *self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the minor of the cluster's version, such as `v1.36.1`. Returns whether profiles must be checked again.
    pub fn set_cluster(&self, version: &str) -> bool {
        let minor: Minor = version.parse().unwrap_or_else(|error: NotAMinor| error.nearest());
        let minor = minor.min(PORTABLE);
        std::mem::replace(&mut *self.cluster.lock().unwrap_or_else(PoisonError::into_inner), minor) != minor
    }
}

type Check = fn(Arc<ToolSecurityProfile>, Options, Minor) -> Result<AcceptedProfile, Rejection>;

/// Validity period of a failure that is not caused by the profile.
const RETRY_INTERVAL: Duration = Duration::from_mins(1);

/// Compiles and checks the profile, once for each generation. A profile that makes that panic is not accepted.
pub async fn verdict(compiler: &Compiler, observed: &ObservedProfile, state: &mut CompileState) -> Verdict {
    verdict_by(compiler, observed, state, compile_and_check).await
}

async fn verdict_by(
    compiler: &Compiler,
    observed: &ObservedProfile,
    state: &mut CompileState,
    check: Check,
) -> Verdict {
    let generation = observed.meta.generation.unwrap_or_default();
    let has_fast_path = observed.profile.as_ref().ok().and_then(|profile| fast_path(profile).ok());
    let of = (generation, has_fast_path, compiler.cluster());
    if let Some((checked, verdict)) = &state.verdict
        && *checked == of
        && observed.profile.is_ok()
        && state.again.is_none_or(|again| Instant::now() < again)
    {
        return verdict.clone();
    }
    let verdict = match &observed.profile {
        Ok(profile) => {
            let span = tracing::debug_span!("compile", profile = observed.meta.name, generation);
            let checked = on_own_thread(compiler, Arc::clone(profile), check).instrument(span).await;
            checked.map(Arc::new).map_err(Arc::new)
        }
        Err(error) => {
            let message = format!("the profile cannot be read: {error}");
            Err(Arc::new(Rejection { reason: Reason::InvalidSpec, message }))
        }
    };
    let is_final = !verdict.as_ref().is_err_and(|rejection| rejection.reason == Reason::InternalError);
    state.again = (!is_final).then(|| Instant::now() + RETRY_INTERVAL);
    state.verdict = Some((of, verdict.clone()));
    verdict
}

fn compile_and_check(
    profile: Arc<ToolSecurityProfile>,
    options: Options,
    cluster: Minor,
) -> Result<AcceptedProfile, Rejection> {
    let compiled =
        compile_with(&profile, options).map_err(|diagnostics| Rejection::new(Reason::InvalidSpec, &diagnostics))?;
    let compiled =
        check_for(compiled, cluster).map_err(|rejected| Rejection::new(Reason::CheckFailed, &rejected.diagnostics))?;
    Ok(AcceptedProfile { profile, compiled })
}

/// Runs on a separate thread, because a check uses a CPU for up to some tenths of a second. Other profiles and the
/// process are not affected by its failures.
async fn on_own_thread(
    compiler: &Compiler,
    profile: Arc<ToolSecurityProfile>,
    check: Check,
) -> Result<AcceptedProfile, Rejection> {
    let _permit = compiler.turns.acquire().await;
    let options = Options { fast_path: compiler.fast_path, ..Options::default() };
    let cluster = compiler.cluster();
    let checked = tokio::task::spawn_blocking(move || on_large_stack(move || check(profile, options, cluster)));
    let why = match checked.await {
        Ok(Ok(checked)) => return checked.and_then(|accepted| compiler.permitted(accepted)),
        Ok(Err(no_result)) => no_result.to_string(),
        Err(error) => error.to_string(),
    };
    tracing::error!(error = why, "the profile could not be compiled");
    Err(Rejection::internal(&why))
}

/// The profile with an earlier spec, if the gate still accepts that.
pub async fn earlier(
    compiler: &Compiler,
    observed: &ObservedProfile,
    generation: i64,
    spec: ToolSecurityProfileSpec,
) -> Option<AcceptedProfile> {
    let mut metadata = observed.meta.clone();
    metadata.generation = Some(generation);
    let mut profile = ToolSecurityProfile { metadata, spec, status: None };
    if fast_path(&profile).is_err() {
        // The annotation belongs to the newest generation, which is rejected for it. This one is not.
        profile.metadata.annotations.get_or_insert_default().remove(names::FAST_PATH_ANNOTATION);
    }
    match on_own_thread(compiler, Arc::new(profile), compile_and_check).await {
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
        let (compiler, mut state) = (Compiler::new(1, true, &[]), CompileState::default());
        let check = |profile, options, cluster| {
            assert!(!PANICS.load(Ordering::Relaxed), "a bug");
            compile_and_check(profile, options, cluster)
        };
        let rejection = verdict_by(&compiler, &observed, &mut state, check).await.unwrap_err();
        assert_eq!(rejection.reason, Reason::InternalError);
        assert!(rejection.message.contains("a bug in Palisade: a bug"), "{rejection:?}");
        // Not with each event of a namespace.
        PANICS.store(false, Ordering::Relaxed);
        assert!(verdict_by(&compiler, &observed, &mut state, check).await.is_err());
        tokio::time::advance(state.again_in().unwrap()).await;
        let verdict = verdict_by(&compiler, &observed, &mut state, check).await;
        assert_eq!(verdict.unwrap().generation(), 1);
        assert_eq!(state.again_in(), None);
    }

    #[tokio::test]
    async fn an_annotation_turns_the_fast_path_off_in_the_same_generation() {
        let spec = serde_json::json!({"namespaceSelector": {"matchLabels": {"a": "b"}}});
        let observed = |value: Option<&str>| {
            let mut profile = ToolSecurityProfile::new("tools", serde_json::from_value(spec.clone()).unwrap());
            profile.metadata.generation = Some(1);
            let annotation = value.map(|value| [(names::FAST_PATH_ANNOTATION.to_owned(), value.to_owned())].into());
            profile.metadata.annotations = annotation;
            ObservedProfile { meta: profile.metadata.clone(), profile: Ok(Arc::new(profile)) }
        };
        let mut state = CompileState::default();
        for (fast_path, value, expected) in [
            (true, None, Ok(true)),
            (true, Some("Off"), Ok(false)),
            (true, Some("no"), Err(Reason::InvalidSpec)),
            (true, Some("On"), Ok(true)),
        ] {
            let verdict = verdict(&Compiler::new(1, fast_path, &[]), &observed(value), &mut state).await;
            let found = verdict.map(|accepted| accepted.compiled.bundle.pods.has_fast_path());
            assert_eq!(found.map_err(|rejection| rejection.reason), expected, "{value:?}");
        }
        let off = verdict(&Compiler::new(1, false, &[]), &observed(None), &mut CompileState::default()).await.unwrap();
        assert!(!off.compiled.bundle.pods.has_fast_path());
        // A wrong annotation does not take the last good generation.
        let spec = serde_json::from_value(spec.clone()).unwrap();
        assert!(earlier(&Compiler::new(1, true, &[]), &observed(Some("no")), 1, spec).await.is_some());
    }

    #[tokio::test]
    async fn profile_is_checked_again_for_another_minor_of_the_cluster() {
        let spec = serde_json::json!({
            "namespaceSelector": {"matchLabels": {"a": "b"}},
            "users": {"supplementalGroupsPolicy": "Strict"},
        });
        let mut profile = ToolSecurityProfile::new("tools", serde_json::from_value(spec).unwrap());
        profile.metadata.generation = Some(1);
        let observed = ObservedProfile { meta: profile.metadata.clone(), profile: Ok(Arc::new(profile)) };
        let (compiler, mut state) = (Compiler::new(1, true, &[]), CompileState::default());
        for (version, changes, accepted) in
            [("v1.36.1", false, true), ("v1.32.13", true, false), ("1.32", false, false), ("v1.33.2", true, true)]
        {
            assert_eq!(compiler.set_cluster(version), changes, "{version}");
            let verdict = verdict(&compiler, &observed, &mut state).await;
            assert_eq!(verdict.map_err(|rejection| rejection.reason).is_ok(), accepted, "{version}");
        }
    }
}
