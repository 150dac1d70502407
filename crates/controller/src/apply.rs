//! Stage apply: policies and bindings, and what is kept beside them.
//!
//! When something changes, parameters come first ([`crate::params`]), then the policy, then the binding; what only the
//! former policy read is removed after the API server has surely read the new one. Policies and bindings are changed
//! in place: the API server can lose sight of parameters when the last binding of a kind goes and comes back.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use kube::{
    Api, Resource,
    api::{Patch, PatchParams},
    core::ObjectMeta,
};
use palisade_api::{
    ToolSecurityProfile,
    names::{self, Shape},
};
use palisade_compiler::Pair;
use serde_json::json;
use tokio::time::Instant;

use crate::{
    call::{ApiError, call},
    compile::Good,
    context::Context,
    converge::{Verb, converge, same_meta, same_spec},
    memory::Memory,
    remove,
    resolve::Keep,
    state::{InForce, Settling, State},
    world::ObservedProfile,
};

const POLICY: &str = "ValidatingAdmissionPolicy";
const BINDING: &str = "ValidatingAdmissionPolicyBinding";

impl Context {
    /// An object was written.
    pub fn wrote(&self, kind: &'static str, verb: Verb) {
        self.metrics.wrote(kind, if verb == Verb::Apply { "apply" } else { "replace" });
    }
}

/// Sees to it that a profile cannot vanish before what was made for it.
pub async fn finalizer(cx: &Context, observed: &ObservedProfile) -> Result<(), ApiError> {
    if has_finalizer(observed) {
        return Ok(());
    }
    let name = observed.meta.name.clone().unwrap_or_default();
    // With the uid this cannot create a profile that was deleted in the meantime.
    let patch = json!({
        "apiVersion": names::API_VERSION,
        "kind": "ToolSecurityProfile",
        "metadata": {"name": name, "uid": observed.meta.uid, "finalizers": [names::FINALIZER]},
    });
    let api: Api<kube::core::PartialObjectMeta<ToolSecurityProfile>> = Api::all(cx.client.clone());
    let apply = PatchParams::apply(names::field_manager::FINALIZER).force();
    call(api.patch(&name, &apply, &Patch::Apply(&patch))).await.map(drop)
}

/// Whether our finalizer is on the profile.
pub fn has_finalizer(observed: &ObservedProfile) -> bool {
    observed.meta.finalizers.iter().flatten().any(|finalizer| finalizer == names::FINALIZER)
}

/// What parameters must be kept for a policy in the cluster, for the one that is kept there, or for one before.
pub fn keep(cx: &Context, profile: &str, state: &State) -> Keep {
    let policies = cx.world.pairs(profile).into_iter().filter_map(|pair| pair.policy);
    let in_cluster = policies.fold(Keep::Nothing, |keep, policy| keep.and(&Keep::of_annotation(parameters(&policy))));
    let in_force = state.in_force();
    // Somebody may have deleted the policy; it comes back, and reads them.
    let kept = in_force.good.iter().flat_map(|good| good.compiled.bundle.pairs());
    let kept = kept.fold(in_cluster, |keep, (_, pair)| keep.and(&Keep::of_annotation(parameters(&pair.policy))));
    match in_force.settles_in(Instant::now()) {
        Some(_) => kept.and(&in_force.settling.before),
        None => kept,
    }
}

fn parameters(policy: &ValidatingAdmissionPolicy) -> Option<&String> {
    policy.metadata.annotations.as_ref()?.get(names::PARAMETERS_ANNOTATION)
}

/// Some names, and how many more there are.
pub fn few<S: AsRef<str>>(all: &[S]) -> String {
    let mut text = all.iter().take(5).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if all.len() > 5 {
        let _ = write!(text, " and {} more", all.len() - 5);
    }
    text
}

/// Whether policies and bindings are in the cluster as they were compiled, and no others.
pub fn is_bundle(cx: &Context, profile: &str, good: &Good) -> bool {
    Shape::ALL.into_iter().all(|shape| {
        let found = cx.world.pair(profile, shape);
        match good.compiled.bundle.pair(shape) {
            Some(Pair { policy, binding, updates }) => {
                let updates_are_right = match (updates, found.updates) {
                    (Some(updates), Some(found)) => is_binding(updates, &found),
                    (updates, found) => updates.is_none() && found.is_none(),
                };
                found.policy.is_some_and(|found| is_policy(policy, &found))
                    && found.binding.is_some_and(|found| is_binding(binding, &found))
                    && updates_are_right
            }
            None => found.metadata().next().is_none(),
        }
    })
}

fn is_policy(desired: &ValidatingAdmissionPolicy, found: &ValidatingAdmissionPolicy) -> bool {
    same_meta(&desired.metadata, &found.metadata) && same_spec(&desired.spec, &found.spec)
}

fn is_binding(desired: &ValidatingAdmissionPolicyBinding, found: &ValidatingAdmissionPolicyBinding) -> bool {
    same_meta(&desired.metadata, &found.metadata) && same_spec(&desired.spec, &found.spec)
}

/// Writes the policies and the bindings. Afterwards they are in the cluster as they were compiled, and no others.
/// [`State::writing`] is held by the caller.
pub async fn bundle(cx: &Context, profile: &str, good: &Good, state: &State) -> Result<(), ApiError> {
    for shape in Shape::ALL {
        match good.compiled.bundle.pair(shape) {
            Some(desired) => write_pair(cx, profile, good, state, shape, desired).await?,
            None => delete_pair(cx, profile, shape).await?,
        }
    }
    Ok(())
}

async fn write_pair(
    cx: &Context,
    profile: &str,
    good: &Good,
    state: &State,
    shape: Shape,
    desired: &Pair,
) -> Result<(), ApiError> {
    // Destructured, so that a new object cannot be forgotten.
    let Pair { policy, binding, updates } = desired;
    let observed = cx.world.pair(profile, shape);
    if let Some(found) = observed.binding.as_deref().filter(|found| denies(found) && !denies(binding)) {
        // Who leaves the stage Deny must not be denied by a policy that is stricter.
        write_binding(cx, good, state, &relaxed(binding, found), Some(found)).await?;
        delete_updates(cx, profile, shape).await?;
    }
    // The policy comes first: who binds parameters must be allowed to read them, and the API server learns from the
    // policy which.
    write_policy(cx, good, state, policy, observed.policy.as_deref()).await?;
    let observed = cx.world.pair(profile, shape);
    // Updates are bound twice for a moment rather than not at all.
    if let Some(updates) = updates {
        write_binding(cx, good, state, updates, observed.updates.as_deref()).await?;
    }
    write_binding(cx, good, state, binding, observed.binding.as_deref()).await?;
    if updates.is_none() { delete_updates(cx, profile, shape).await } else { Ok(()) }
}

/// Deletes the binding for updates, if there is one: the other one is for them, too.
async fn delete_updates(cx: &Context, profile: &str, shape: Shape) -> Result<(), ApiError> {
    if cx.world.pair(profile, shape).updates.is_some() {
        remove::delete_binding(cx, &names::updates(profile, shape)).await?;
        cx.metrics.wrote(BINDING, "delete");
    }
    Ok(())
}

fn denies(binding: &ValidatingAdmissionPolicyBinding) -> bool {
    binding.spec.validation_actions.iter().any(|action| action == "Deny")
}

/// The binding that was found, with the actions that are desired: it fits the policy that was found, too, which may
/// read other parameters, or none.
fn relaxed(
    desired: &ValidatingAdmissionPolicyBinding,
    found: &ValidatingAdmissionPolicyBinding,
) -> ValidatingAdmissionPolicyBinding {
    let mut relaxed = desired.clone();
    // Still of its generation.
    for (key, value) in relaxed.metadata.annotations.iter_mut().flatten() {
        if let Some(found) = found.metadata.annotations.as_ref().and_then(|annotations| annotations.get(key)) {
            value.clone_from(found);
        }
    }
    relaxed.spec.param_ref.clone_from(&found.spec.param_ref);
    if let Some(param_ref) = &mut relaxed.spec.param_ref {
        // Where there are none, nothing is configured, and that is denied whatever the actions are.
        param_ref.parameter_not_found_action = Some("Allow".to_owned());
    }
    relaxed
}

/// Deletes what a shape was judged by that is not judged any more.
async fn delete_pair(cx: &Context, profile: &str, shape: Shape) -> Result<(), ApiError> {
    let observed = cx.world.pair(profile, shape);
    if observed.binding.is_some() || observed.updates.is_some() {
        remove::bindings(cx, profile, shape).await?;
        cx.metrics.wrote(BINDING, "delete");
    }
    if observed.policy.is_some() {
        remove::policy(cx, profile, shape).await?;
        cx.metrics.wrote(POLICY, "delete");
        tracing::info!(profile, ?shape, "deleted a policy that the profile does not ask for any more");
    }
    Ok(())
}

async fn write_policy(
    cx: &Context,
    good: &Good,
    state: &State,
    desired: &ValidatingAdmissionPolicy,
    observed: Option<&ValidatingAdmissionPolicy>,
) -> Result<(), ApiError> {
    let same = |found: &ValidatingAdmissionPolicy| is_policy(desired, found);
    if observed.is_some_and(same) {
        return Ok(());
    }
    let drift = drifted(&state.in_force(), good, observed.map(|policy| &policy.metadata));
    let new_spec = observed.is_none_or(|observed| !same_spec(&desired.spec, &observed.spec));
    if new_spec {
        let before = observed.map_or(Keep::Nothing, |policy| Keep::of_annotation(parameters(policy)));
        let mut in_force = state.in_force();
        let (before, replaced) = match in_force.settles_in(Instant::now()) {
            Some(_) => (before.and(&in_force.settling.before), in_force.settling.replaced),
            None => (before, false),
        };
        in_force.settling = Settling { since: Instant::now(), before, replaced: replaced || observed.is_some() };
    }
    let api: Api<ValidatingAdmissionPolicy> = Api::all(cx.client.clone());
    let (written, verb) = converge(&api, desired, names::field_manager::POLICY, same).await?;
    tracing::info!(profile = good.compiled.profile, verb = ?verb, drift, "wrote a policy");
    cx.wrote(POLICY, verb);
    cx.world.wrote_policy(written);
    {
        let mut in_force = state.in_force();
        in_force.wrote = true;
        if new_spec {
            // The API server begins to judge by it after the write, not before.
            in_force.settling.since = Instant::now();
        }
    }
    report_drift(cx, good, drift, POLICY, desired);
    Ok(())
}

async fn write_binding(
    cx: &Context,
    good: &Good,
    state: &State,
    desired: &ValidatingAdmissionPolicyBinding,
    observed: Option<&ValidatingAdmissionPolicyBinding>,
) -> Result<(), ApiError> {
    let same = |found: &ValidatingAdmissionPolicyBinding| is_binding(desired, found);
    if observed.is_some_and(same) {
        return Ok(());
    }
    let drift = drifted(&state.in_force(), good, observed.map(|binding| &binding.metadata));
    let api: Api<ValidatingAdmissionPolicyBinding> = Api::all(cx.client.clone());
    let (written, verb) = converge(&api, desired, names::field_manager::POLICY, same).await?;
    tracing::info!(profile = good.compiled.profile, verb = ?verb, drift, "wrote a binding");
    cx.wrote(BINDING, verb);
    cx.world.wrote_binding(written);
    state.in_force().wrote = true;
    report_drift(cx, good, drift, BINDING, desired);
    Ok(())
}

/// Whether something that has to be written was right before: it was made for this generation, or it was seen to
/// be right.
fn drifted(in_force: &InForce, good: &Good, found: Option<&ObjectMeta>) -> bool {
    let generation = good.generation();
    let annotation = found.and_then(|meta| meta.annotations.as_ref()?.get(names::GENERATION_ANNOTATION));
    in_force.confirmed == Some(generation) || annotation == Some(&generation.to_string())
}

fn report_drift<K>(cx: &Context, good: &Good, drift: bool, kind: &'static str, repaired: &K)
where
    K: Resource<DynamicType = ()>,
{
    if drift {
        cx.metrics.drifted(kind);
        let name = repaired.meta().name.as_deref().unwrap_or_default();
        let note = format!("{kind} {name} was changed by someone else and restored");
        cx.events.repaired::<K>(&good.profile.metadata, repaired.meta(), &note);
    }
}

/// Keeps the spec that is now in force, so that it can stay in force. That it cannot be kept stops nothing.
pub async fn revision(cx: &Context, good: &Arc<Good>, memory: &mut Memory) -> Option<Duration> {
    const AGAIN: Duration = Duration::from_secs(30);
    memory.last_good = Some(Arc::clone(good));
    memory.revision_read = true;
    let now = Instant::now();
    if memory.revision_saved == Some(good.generation()) {
        return None;
    }
    if let Some(after) = memory.revision_after.filter(|after| *after > now) {
        return Some(after.duration_since(now));
    }
    match crate::revision::save(&cx.client, good).await {
        Ok(()) => {
            memory.revision_saved = Some(good.generation());
            None
        }
        Err(error) => {
            tracing::warn!(%error, "the last good spec could not be kept: a restart would forget it");
            memory.revision_after = Some(now + AGAIN);
            Some(AGAIN)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_leaves_the_stage_deny_is_bound_to_what_the_former_policy_reads() {
        let binding = |generation: &str, actions: &[&str], params: bool| -> ValidatingAdmissionPolicyBinding {
            let params = params.then(|| json!({"name": "p", "parameterNotFoundAction": "Deny"}));
            serde_json::from_value(json!({
                "metadata": {"name": "x", "annotations": {names::GENERATION_ANNOTATION: generation}},
                "spec": {"policyName": "x", "paramRef": params, "validationActions": actions},
            }))
            .unwrap()
        };
        for (before, after) in [(true, true), (true, false), (false, true), (false, false)] {
            let found = binding("1", &["Deny"], before);
            let relaxed = relaxed(&binding("2", &["Warn", "Audit"], after), &found);
            assert_eq!(relaxed.spec.validation_actions, ["Warn", "Audit"]);
            assert_eq!(relaxed.metadata.annotations, found.metadata.annotations);
            let action = relaxed.spec.param_ref.map(|params| params.parameter_not_found_action.unwrap());
            assert_eq!(action.as_deref(), before.then_some("Allow"));
        }
    }
}
