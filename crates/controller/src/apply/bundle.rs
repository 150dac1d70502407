//! Stage apply: writes policies and bindings.
//!
//! The order of a change is: parameters ([`crate::params::lane`]), policy, binding. Parameters that only the previous
//! policy reads are removed after the API server certainly uses the new policy. Policies and bindings are changed in
//! place: the API server can lose track of parameters if the last binding of a kind is deleted and recreated.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    Resource as _,
    api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
};
use kube::{Api, Resource, core::ObjectMeta};
use palisade_api::{
    Stage,
    names::{self, Part, Shape},
};
use palisade_compiler::PolicyWithBindings;
use tokio::time::{Instant, timeout};

use crate::{
    api_request::ApiError,
    apply::delete,
    context::{
        Context,
        state::{InForce, PropagationDelay, State},
    },
    generated::{
        compare::{is_desired, is_part, same_spec},
        converge::converge,
    },
    generations::accepted::AcceptedProfile,
    param_plan::retained::RetainedParams,
    watch::store::{ObservedPair, ValidatingObject},
};

/// How long to wait until a probe shows that a policy denies. Shorter than a write may take ([`crate::apply::transition`]).
const DENIAL_TIMEOUT: Duration = Duration::from_secs(8);
/// How long to wait for a policy that no probe can show.
const UNPROBED_DELAY: Duration = Duration::from_secs(5);
/// How long between two such probes.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);

/// The parameters to keep for the policy in the cluster, the policy in effect, and the previous policy.
pub fn retained(cx: &Context, profile: &str, state: &State) -> RetainedParams {
    let policies = cx.store.pairs(profile).into_iter().filter_map(|pair| pair.policy);
    let in_cluster = policies
        .fold(RetainedParams::Nothing, |keep, policy| keep.and(&RetainedParams::of_annotation(parameters(&policy))));
    let in_force = state.in_force();
    // Another client may have deleted the policy. The controller restores it, and it reads these parameters.
    let kept = in_force.accepted.iter().flat_map(|accepted| accepted.compiled.bundle.pairs());
    let kept =
        kept.fold(in_cluster, |keep, (_, pair)| keep.and(&RetainedParams::of_annotation(parameters(&pair.policy))));
    match in_force.propagates_in(Instant::now()) {
        Some(_) => kept.and(&in_force.propagation.before),
        None => kept,
    }
}

fn parameters(policy: &ValidatingAdmissionPolicy) -> Option<&String> {
    policy.metadata.annotations.as_ref()?.get(names::PARAMETERS_ANNOTATION)
}

/// Writes the policies and the bindings. Afterwards the cluster has them as they were compiled, and no others. The
/// caller holds [`State::writing`].
pub async fn write(cx: &Context, profile: &str, accepted: &AcceptedProfile, state: &State) -> Result<(), ApiError> {
    let write = async |part| match accepted.compiled.bundle.part(part) {
        Some(desired) => write_pair(cx, profile, accepted, state, part, desired).await,
        None => delete_pair(cx, profile, part).await,
    };
    for shape in [Shape::Objects, Shape::Pods, Shape::Workloads] {
        let [first, second] = order(cx, profile, accepted, shape);
        write(first).await?;
        if takes_over(cx, profile, accepted, first, second) {
            until_it_denies(cx, accepted, first).await?;
        }
        write(second).await?;
    }
    write(Part::Guard).await
}

/// The parts of a shape, ordered so that a check that is in Deny before and after the change is always in a denying
/// policy.
fn order(cx: &Context, profile: &str, accepted: &AcceptedProfile, shape: Shape) -> [Part; 2] {
    let [main, checks] = Part::judging(shape);
    let bundle = &accepted.compiled.bundle;
    let observed = cx.store.pair(profile, main);
    // In the stage Deny, the policy of the shape has evaluated all checks; if it leaves that stage, the other
    // takes over first.
    let denies = bundle.part(checks).is_some_and(|pair| denies(&pair.binding));
    let relaxes = bundle.part(main).is_none_or(|desired| relaxed_bindings(&observed, desired).next().is_some());
    if denies && relaxes { [checks, main] } else { [main, checks] }
}

/// True if the first policy may have to deny objects that the second policy, which must be changed, has denied until
/// now.
fn takes_over(cx: &Context, profile: &str, accepted: &AcceptedProfile, first: Part, second: Part) -> bool {
    let shall_deny = accepted.compiled.bundle.part(first).is_some_and(|pair| pair.bindings().any(denies));
    let denied = cx.store.pair(profile, second).bindings.values().any(|binding| denies(binding));
    shall_deny && denied && !is_part(&cx.store, profile, accepted, second)
}

/// Waits until each API server denies by the policy for a part. It reads policies and bindings apart, about once a
/// second: it could miss the policy that takes over while it no longer has the other one.
async fn until_it_denies(cx: &Context, accepted: &AcceptedProfile, part: Part) -> Result<(), ApiError> {
    // While API servers compile the policy, a probe would evaluate it.
    cx.pacing.settled().await;
    let begin = Instant::now();
    loop {
        // Other probes may not leave it a turn in time.
        match timeout(DENIAL_TIMEOUT, cx.prober.all_deny(accepted, part)).await.unwrap_or(Some(false)) {
            Some(true) => return Ok(()),
            None if begin.elapsed() >= UNPROBED_DELAY => return Ok(()),
            Some(false) if begin.elapsed() >= DENIAL_TIMEOUT => {
                return Err(ApiError::NotInForce(names::policy(&accepted.compiled.profile, part)));
            }
            _ => tokio::time::sleep(PROBE_INTERVAL).await,
        }
    }
}

/// The bindings in the cluster that deny, and no longer shall.
fn relaxed_bindings<'a>(
    observed: &'a ObservedPair,
    desired: &'a PolicyWithBindings,
) -> impl Iterator<Item = (&'a String, &'a Arc<ValidatingAdmissionPolicyBinding>)> {
    let stays = |former: &str| desired.bindings().any(|binding| name(binding) == former && denies(binding));
    observed.bindings.iter().filter(move |(former, found)| denies(found) && !stays(former))
}

async fn write_pair(
    cx: &Context,
    profile: &str,
    accepted: &AcceptedProfile,
    state: &State,
    part: Part,
    desired: &PolicyWithBindings,
) -> Result<(), ApiError> {
    relax(cx, profile, accepted, state, part, desired).await?;
    // The policy comes before its bindings: the author of a binding must be allowed to read its parameters, and the API
    // server learns from the policy which kind they are.
    let observed = cx.store.pair(profile, part);
    write_policy(cx, accepted, state, &desired.policy, observed.policy.as_deref()).await?;
    // A binding is written before the bindings that exclude its requests: for a moment a request may be evaluated
    // twice, but it is always evaluated.
    let PolicyWithBindings { policy: _, binding, updates, others, offered: _ } = desired;
    for binding in others.iter().chain(updates).chain([binding]) {
        write_object(cx, accepted, state, binding, observed.binding(binding)).await?;
    }
    delete_surplus(cx, profile, part, desired).await
}

/// If the profile leaves the stage Deny: its new policy, which may be stricter, must not deny first. Namespaces that
/// are in that stage by their label stay in it.
async fn relax(
    cx: &Context,
    profile: &str,
    accepted: &AcceptedProfile,
    state: &State,
    part: Part,
    desired: &PolicyWithBindings,
) -> Result<(), ApiError> {
    if denies(&desired.binding) {
        return Ok(());
    }
    let observed = cx.store.pair(profile, part);
    let in_deny = desired.others.iter().find(|binding| denies(binding));
    for (former, found) in relaxed_bindings(&observed, desired) {
        let staged = names::staged(former, Stage::Deny);
        if let Some(in_deny) = in_deny.filter(|_| !observed.bindings.contains_key(&staged)) {
            write_object(cx, accepted, state, &narrowed(found, staged, in_deny), None).await?;
        }
        write_object(cx, accepted, state, &relaxed(found, &desired.binding), Some(found)).await?;
    }
    Ok(())
}

/// Deletes bindings that are there and not desired: the others now match all that these do.
async fn delete_surplus(cx: &Context, profile: &str, part: Part, desired: &PolicyWithBindings) -> Result<(), ApiError> {
    for surplus in cx.store.pair(profile, part).bindings.into_keys() {
        if !desired.bindings().any(|binding| name(binding) == surplus) {
            delete::object::<ValidatingAdmissionPolicyBinding>(cx, &surplus).await?;
            cx.metrics.writes.wrote(ValidatingAdmissionPolicyBinding::KIND, "delete");
        }
    }
    Ok(())
}

fn name(binding: &ValidatingAdmissionPolicyBinding) -> &str {
    binding.metadata.name.as_deref().unwrap_or_default()
}

fn denies(binding: &ValidatingAdmissionPolicyBinding) -> bool {
    binding.spec.validation_actions.iter().any(|action| action == "Deny")
}

/// The existing binding with the actions of the desired one. It also fits the existing policy, which may read other
/// parameters, or none.
fn relaxed(
    found: &ValidatingAdmissionPolicyBinding,
    desired: &ValidatingAdmissionPolicyBinding,
) -> ValidatingAdmissionPolicyBinding {
    let mut relaxed = again(found, name(found).to_owned());
    relaxed.spec.validation_actions.clone_from(&desired.spec.validation_actions);
    if let Some(param_ref) = &mut relaxed.spec.param_ref {
        // Where parameters are missing, the API server denies whatever the actions are, unless this says Allow.
        param_ref.parameter_not_found_action = Some("Allow".to_owned());
    }
    relaxed
}

/// The existing binding under another name, only for the namespaces of the desired one.
fn narrowed(
    found: &ValidatingAdmissionPolicyBinding,
    name: String,
    desired: &ValidatingAdmissionPolicyBinding,
) -> ValidatingAdmissionPolicyBinding {
    let mut narrowed = again(found, name);
    let namespaces = desired.spec.match_resources.as_ref().and_then(|matching| matching.namespace_selector.clone());
    narrowed.spec.match_resources.get_or_insert_default().namespace_selector = namespaces;
    narrowed
}

/// An existing binding, to be applied under a name. It is still of its generation.
fn again(found: &ValidatingAdmissionPolicyBinding, name: String) -> ValidatingAdmissionPolicyBinding {
    let ObjectMeta { labels, annotations, owner_references, .. } = found.metadata.clone();
    let metadata = ObjectMeta { name: Some(name), labels, annotations, owner_references, ..ObjectMeta::default() };
    ValidatingAdmissionPolicyBinding { metadata, spec: found.spec.clone() }
}

/// Deletes the policy and bindings of a part that the profile no longer has.
async fn delete_pair(cx: &Context, profile: &str, part: Part) -> Result<(), ApiError> {
    let observed = cx.store.pair(profile, part);
    if !observed.bindings.is_empty() {
        delete::bindings(cx, profile, part).await?;
        cx.metrics.writes.wrote(ValidatingAdmissionPolicyBinding::KIND, "delete");
    }
    if observed.policy.is_some() {
        delete::policy(cx, profile, part).await?;
        cx.metrics.writes.wrote(ValidatingAdmissionPolicy::KIND, "delete");
        tracing::info!(profile, ?part, "deleted a policy that the profile no longer needs");
    }
    Ok(())
}

/// Writes a policy. If its spec changes, parameters of the previous one are kept until the API server certainly
/// evaluates the new one.
async fn write_policy(
    cx: &Context,
    accepted: &AcceptedProfile,
    state: &State,
    desired: &ValidatingAdmissionPolicy,
    observed: Option<&ValidatingAdmissionPolicy>,
) -> Result<(), ApiError> {
    let new_spec = observed.is_none_or(|observed| !same_spec(&desired.spec, &observed.spec));
    if new_spec {
        let before =
            observed.map_or(RetainedParams::Nothing, |policy| RetainedParams::of_annotation(parameters(policy)));
        let mut in_force = state.in_force();
        let before = match in_force.propagates_in(Instant::now()) {
            Some(_) => before.and(&in_force.propagation.before),
            None => before,
        };
        in_force.propagation = PropagationDelay { since: Instant::now(), before };
    }
    write_object(cx, accepted, state, desired, observed).await?;
    if new_spec {
        // The API server begins to evaluate it after the write, not before.
        state.in_force().propagation.since = Instant::now();
    }
    Ok(())
}

/// Writes a policy or binding, unless it has its desired state.
async fn write_object<K: ValidatingObject>(
    cx: &Context,
    accepted: &AcceptedProfile,
    state: &State,
    desired: &K,
    observed: Option<&K>,
) -> Result<(), ApiError> {
    let same = |found: &K| is_desired(desired, found);
    if observed.is_some_and(same) {
        return Ok(());
    }
    let drift = drifted(&state.in_force(), accepted, observed.map(K::meta));
    let api: Api<K> = Api::all(cx.client.clone());
    let note = || {
        if K::IS_COMPILED {
            cx.pacing.wrote();
        }
    };
    // Also before the write: a write without an answer may have succeeded.
    note();
    let (written, verb) = converge(&api, desired, observed, names::field_manager::POLICY, same).await?;
    note();
    tracing::info!(profile = accepted.compiled.profile, verb = ?verb, drift, "wrote a {}", K::NOUN);
    cx.metrics.writes.wrote(K::KIND, verb.label());
    cx.store.wrote_object(written);
    state.in_force().wrote = true;
    if drift {
        report_drift::<K>(cx, accepted, K::KIND, desired.meta());
    }
    Ok(())
}

/// True if an object that must be written was correct before: its annotation has this generation, or it was confirmed.
fn drifted(in_force: &InForce, accepted: &AcceptedProfile, found: Option<&ObjectMeta>) -> bool {
    let generation = accepted.generation();
    let annotation = found.and_then(|meta| meta.annotations.as_ref()?.get(names::GENERATION_ANNOTATION));
    in_force.confirmed == Some(generation) || annotation == Some(&generation.to_string())
}

/// Reports that an object which another client had changed was restored.
pub fn report_drift<K>(cx: &Context, accepted: &AcceptedProfile, kind: &'static str, restored: &ObjectMeta)
where
    K: Resource<DynamicType = ()>,
{
    cx.metrics.writes.drifted(kind);
    let name = restored.name.as_deref().unwrap_or_default();
    let note = format!("{kind} {name} was changed by another client and restored");
    cx.events.repaired::<K>(&accepted.profile.metadata, restored, &note);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn leaving_enforcement_deny_keeps_the_former_parameters() {
        let binding = |generation: &str, actions: &[&str], params: bool| -> ValidatingAdmissionPolicyBinding {
            let params = params.then(|| json!({"name": "p", "parameterNotFoundAction": "Deny"}));
            serde_json::from_value(json!({
                "metadata": {"name": "x", "annotations": {names::GENERATION_ANNOTATION: generation}},
                "spec": {"policyName": "x", "paramRef": params, "validationActions": actions},
            }))
            .unwrap()
        };
        for before in [true, false] {
            let found = binding("1", &["Deny"], before);
            let relaxed = relaxed(&found, &binding("2", &["Warn", "Audit"], true));
            assert_eq!(relaxed.spec.validation_actions, ["Warn", "Audit"]);
            assert_eq!(relaxed.metadata.annotations, found.metadata.annotations);
            let action = relaxed.spec.param_ref.map(|params| params.parameter_not_found_action.unwrap());
            assert_eq!(action.as_deref(), before.then_some("Allow"));
        }
    }
}
