//! The gate's check of mutation: the API server accepts the policy that mutates; the policy fails on no pod; applied
//! twice, it changes nothing more; and no complying pod violates the profile afterwards. The default of a custom check
//! satisfies the check.
//!
//! Where only the webhook mutates, it takes the place of the policy.

use std::sync::LazyLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use palisade_admission::{
    create::Refused,
    requests::{Cluster, Operation, Outcome, Review, User},
};
use palisade_api::{Diagnostic, crd};
use palisade_cel::Minor;
use palisade_checks::inject::Injections;
use palisade_compiler::{Compiled, Custom, MutatingPair, Mutation};
use palisade_kube_json::{json::Change as _, pod, text::truncated};
use serde_json::{Value as Json, json};

use crate::{Decision, custom::MAX_SPEC, place::MUTATING_POLICY, register};

/// The version in which the pair is tried, and the oldest minor that serves it. Older versions have all fields that it
/// uses.
const SERVED: (&str, Minor) = ("v1", Minor::V1_36);

/// A namespace like that of any tenant.
const TENANT: &str = "tenant";

/// The errors in the policy that mutates pods. `judge` returns the profile's verdict on a pod.
pub(crate) fn diagnose(
    compiled: &Compiled,
    pods: &[Json],
    judge: impl Fn(&Json) -> Result<Decision, Diagnostic>,
) -> Vec<Diagnostic> {
    let Some(mutation) = &compiled.mutation else { return vec![] };
    let pair = compiled.bundle.mutation.as_ref();
    let found = cluster(compiled, pair, mutation).map(|cluster| {
        let mistakes: Vec<_> = compiled.customs.iter().filter_map(|one| unsatisfied(&cluster, one, &judge)).collect();
        if !mistakes.is_empty() {
            return mistakes;
        }
        let injected = match injected(&mutation.injections, &compiled.probes.compliant.pod) {
            Ok(injected) => injected,
            Err(mistake) => return vec![mistake],
        };
        for (index, pod) in &injected {
            if let Some(mut found) = fails(&cluster, pod, &judge) {
                found.location = format!("spec.mutation.inject[{index}]").into();
                return vec![found];
            }
        }
        let mut pods = pods.iter().chain([&compiled.probes.compliant.pod]);
        let found = pods.find_map(|pod| Some((pod, fails(&cluster, pod, &judge)?)));
        found.map(|(pod, found)| blame(compiled, mutation, pod, &judge, found)).into_iter().collect()
    });
    found.unwrap_or_else(|diagnostic| vec![diagnostic])
}

/// For each entry of `spec.mutation.inject`, the complying pod with labels and annotations that the entry matches. It
/// also has an init container, because some additions are only for these.
///
/// # Errors
/// No pod can match an entry.
fn injected(injections: &Injections, complying: &Json) -> Result<Vec<(usize, Json)>, Diagnostic> {
    let mut pods = Vec::new();
    for index in 0..injections.entries.len() {
        let mut pod = complying.clone();
        if let Some(mut container) = pod["spec"]["containers"].get(0).cloned() {
            *container.at_mut(&["name"]) = "init".into();
            *pod.at_mut(&["spec", "initContainers"]) = json!([container]);
        }
        if !injections.select(index, &mut pod) {
            let path = format!("spec.mutation.inject[{index}].when");
            return Err(Diagnostic::new(path, "matches no pod").help("remove requirements that contradict each other"));
        }
        pods.push((index, pod));
    }
    Ok(pods)
}

/// Reports the error at the default of a custom check, if that default causes it.
fn blame(
    compiled: &Compiled,
    mutation: &Mutation,
    pod: &Json,
    judge: impl Fn(&Json) -> Result<Decision, Diagnostic>,
    mut found: Diagnostic,
) -> Diagnostic {
    let guilty = compiled.customs.iter().filter(|custom| custom.check.default.is_some()).find(|custom| {
        let mut without = mutation.clone();
        without.defaults.retain(|(check, _)| check.as_ref() != Some(&custom.check.id));
        cluster(compiled, None, &without).is_ok_and(|cluster| fails(&cluster, pod, &judge).is_none())
    });
    if let Some(custom) = guilty {
        found.location = custom.path.child("default").into();
    }
    found
}

/// Why a custom check denies a pod that has only the profile's defaults, its own among them.
fn unsatisfied(
    cluster: &Cluster,
    custom: &Custom,
    judge: impl Fn(&Json) -> Result<Decision, Diagnostic>,
) -> Option<Diagnostic> {
    custom.check.default.as_ref()?;
    let mutated = create(cluster, &pod::minimal("default")).ok()?.object?;
    let Ok(Decision::Deny { violations, .. }) = judge(&mutated) else { return None };
    let violation = violations.into_iter().find(|violation| violation.check == custom.check.id)?.message;
    let message = format!("the check denies a pod that has only its default: {violation}");
    let help = "a default must satisfy its check; move the other requirements to a separate check with another id";
    Some(Diagnostic::new(custom.path.child("default"), message).help(help))
}

/// A cluster in which the policy, or otherwise the webhook, is active everywhere, and any error in it denies.
fn cluster(compiled: &Compiled, pair: Option<&MutatingPair>, mutation: &Mutation) -> Result<Cluster, Diagnostic> {
    let mut cluster = BARE.clone();
    let mut objects = Vec::new();
    objects.extend(compiled.probes.params.as_ref().map(|spec| {
        json!({
            "apiVersion": palisade_api::names::API_VERSION, "kind": "ToolSecurityParams",
            "metadata": {"name": palisade_api::names::params(&compiled.profile), "namespace": TENANT}, "spec": spec,
        })
    }));
    if let Some(pair) = pair {
        let [mut policy, binding] = pair.objects(SERVED.0);
        *policy.at_mut(&["spec", "failurePolicy"]) = "Fail".into();
        *policy.at_mut(&["spec", "matchConstraints", "namespaceSelector"]) = json!({});
        objects.extend([policy, binding]);
    } else {
        register(&mut cluster, Mutation { namespaces: LabelSelector::default(), ..mutation.clone() });
    }
    for object in objects {
        cluster.apply(object).map_err(|refused| diagnostic(text(&refused)))?;
    }
    Ok(cluster)
}

/// A cluster with a namespace and the kind of parameters, in which nothing mutates.
static BARE: LazyLock<Cluster> = LazyLock::new(|| {
    let mut cluster = crate::cluster(SERVED.1).without_service_accounts();
    let tenant = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TENANT}});
    for object in [json!(crd::params()), tenant] {
        // They are this project's own, and tests install them on API servers.
        let _ = cluster.apply(object);
    }
    cluster
});

/// The outcome of creating a pod.
fn create(cluster: &Cluster, pod: &Json) -> Result<Review, Diagnostic> {
    let mut pod = pod.clone();
    *pod.at_mut(&["metadata", "namespace"]) = TENANT.into();
    let mut request = cluster.request(Operation::Create, "", &pod, None).map_err(diagnostic)?;
    // Every user of an API server has a name.
    request.user = User { name: TENANT.to_owned(), groups: vec!["system:authenticated".to_owned()], ..User::default() };
    Ok(cluster.admit(&request))
}

/// The error that creating a pod shows, if any.
fn fails(cluster: &Cluster, pod: &Json, judge: impl Fn(&Json) -> Result<Decision, Diagnostic>) -> Option<Diagnostic> {
    let said = |what: &str, object: &Json| {
        let spec = object["spec"].to_string();
        diagnostic(format!("{what}, on a pod with the spec {}", truncated(&spec, MAX_SPEC)))
    };
    let review = match create(cluster, pod) {
        Ok(review) => review,
        Err(diagnostic) => return Some(diagnostic),
    };
    if let Some((path, error)) = review.evaluations.iter().find_map(|one| Some((&one.path, one.result.as_ref().err()?)))
    {
        return Some(said(&format!("{path} fails: {error}"), pod));
    }
    let mutated = match (review.outcome, review.object) {
        (Outcome::Allowed, Some(mutated)) => mutated,
        // Some of the catalogue's pods are invalid in every cluster.
        (Outcome::Denied(denials), _) if denials.iter().all(|denial| denial.policy.is_empty()) => {
            let valid = create(&BARE, pod).is_ok_and(|bare| bare.outcome.is_allowed());
            let harmed = valid && matches!(judge(pod), Ok(Decision::Admit));
            let why = denials.first().filter(|_| harmed)?;
            return Some(said(&format!("it complied, but the mutation makes it invalid: {}", why.message), pod));
        }
        (Outcome::Denied(denials), _) => {
            return Some(said(&denials.first().map(|denial| denial.message.clone()).unwrap_or_default(), pod));
        }
        (Outcome::NoVerdict(_) | Outcome::Allowed, _) => return None,
    };
    match create(cluster, &mutated).map(|again| again.object) {
        Ok(Some(again)) if again["spec"] != mutated["spec"] || marks(&again) != marks(&mutated) => {
            return Some(said("a second mutation changes the result of the first one", pod));
        }
        Ok(_) => {}
        Err(diagnostic) => return Some(diagnostic),
    }
    match (judge(pod), judge(&mutated)) {
        (Ok(Decision::Admit), Ok(Decision::Deny { message, .. })) => {
            Some(said(&format!("it complied before it was mutated: {message}"), pod))
        }
        (Err(diagnostic), _) | (_, Err(diagnostic)) => Some(diagnostic),
        _ => None,
    }
}

/// The labels and annotations of a pod.
fn marks(pod: &Json) -> [&Json; 2] {
    ["labels", "annotations"].map(|field| &pod["metadata"][field])
}

fn text(refused: &Refused) -> String {
    match refused {
        Refused::Status(status) => status.message.clone(),
        Refused::NoVerdict(why) => why.clone(),
    }
}

fn diagnostic(message: String) -> Diagnostic {
    Diagnostic::new(MUTATING_POLICY, message)
}
