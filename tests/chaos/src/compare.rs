//! The end: everything converges, and is what a fresh controller makes of the same namespaces and profiles.

use std::{cell::Cell, collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
    core::{GroupVersionKind, ObjectMeta, PartialObjectMeta},
};
use palisade_api::{EngineInForce, ToolSecurityParams, ToolSecurityProfile, names};
use palisade_tests::{bare_pod, dry_run_answer, tool_pod, within};
use serde_json::{Value as Json, json};
use tokio::time::sleep;

use crate::{Result, ask, profiles::WEBHOOK, site::Site, timeline::Timeline, users::UID};

/// How long all may take to be in order, once nothing is broken any more.
const LIMIT: Duration = Duration::from_mins(8);
/// How long Kubernetes may take to delete namespaces.
const PATIENCE: Duration = Duration::from_mins(30);

/// What Palisade generates: group, version, kind, and its name in paths.
const KINDS: [(&str, &str, &str, &str); 5] = [
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
    ("toolsecurity.dev", "v1alpha1", "ToolSecurityParams", "toolsecurityparams"),
];

/// What Palisade is given: namespaces and profiles.
pub(crate) struct Inputs {
    pub(crate) namespaces: Vec<Json>,
    profiles: Vec<Json>,
}

/// What Palisade made of it, by kind, namespace and name.
pub(crate) type Outputs = BTreeMap<String, Json>;

/// Waits until nothing is left to do. Says how long it took, and notes what was waited for last.
pub(crate) async fn converge(client: &Client, timeline: &Timeline) -> Option<Duration> {
    settled(LIMIT, timeline, || in_order(client)).await
}

/// Waits until namespaces that are being deleted are gone, and their parameters with them, and former names of parameters.
pub(crate) async fn emptied(client: &Client, timeline: &Timeline) -> Option<Duration> {
    settled(PATIENCE, timeline, || async {
        let namespaces = namespaces(client).await?;
        let left = namespaces.values().filter(|terminating| **terminating).count();
        if left > 0 {
            return Err(format!("{left} namespaces are still being deleted"));
        }
        let params = Api::<ToolSecurityParams>::all(client.clone()).list(&ListParams::default()).await;
        let params = params.map_err(|error| error.to_string())?;
        let all = params.iter().filter_map(|params| params.metadata.namespace.as_ref());
        let lost: Vec<_> = all.filter(|namespace| !namespaces.contains_key(*namespace)).collect();
        // A renamed parameter has both names until each API server judges by the new one.
        let renamed = params.iter().filter(|params| params.spec.integers.len() > 1).count();
        match lost.first() {
            None if renamed > 0 => Err(format!("{renamed} parameters still have a former name")),
            None => Ok(()),
            Some(first) => Err(format!("{} parameters are in no namespace, one of them in {first}", lost.len())),
        }
    })
    .await
}

/// The names of all namespaces, and whether they are being deleted.
async fn namespaces(client: &Client) -> std::result::Result<BTreeMap<String, bool>, String> {
    let all = Api::<Namespace>::all(client.clone()).list_metadata(&ListParams::default()).await;
    let one = |namespace: PartialObjectMeta<Namespace>| {
        let ObjectMeta { name, deletion_timestamp, .. } = namespace.metadata;
        (name.unwrap_or_default(), deletion_timestamp.is_some())
    };
    Ok(all.map_err(|error| error.to_string())?.into_iter().map(one).collect())
}

async fn settled<F>(limit: Duration, timeline: &Timeline, look: impl Fn() -> F) -> Option<Duration>
where
    F: Future<Output = std::result::Result<(), String>>,
{
    let last = Cell::new(String::new());
    let settled = within(limit, "everything in order", || async {
        let now = look().await;
        if let Err(text) = &now {
            last.set(text.clone());
            // It lists thousands.
            sleep(Duration::from_secs(1)).await;
        }
        now
    });
    match settled.await {
        Ok(((), took)) => {
            timeline.note(format!("in order after {:.1} s; what came last: {}", took.as_secs_f64(), last.take()));
            Some(took)
        }
        Err(error) => {
            timeline.finding(error);
            None
        }
    }
}

/// Whether profiles are ready, and pods get what they should.
async fn in_order(client: &Client) -> std::result::Result<(), String> {
    let profiles = Api::<ToolSecurityProfile>::all(client.clone()).list(&ListParams::default()).await;
    for profile in profiles.map_err(|error| error.to_string())?.items {
        let name = profile.metadata.name.unwrap_or_default();
        if profile.metadata.deletion_timestamp.is_some() {
            return Err(format!("profile {name} is still being deleted"));
        }
        let status = profile.status.unwrap_or_default();
        let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
        if !ready
            .is_some_and(|ready| ready.status == "True" && ready.observed_generation == profile.metadata.generation)
        {
            let all = status.conditions.iter().map(|one| format!("{} {}: {}", one.type_, one.status, one.message));
            return Err(format!("profile {name}: {}", all.collect::<Vec<_>>().join(", ")));
        }
        let engine = status.mutation.as_ref().map(|mutation| mutation.engine);
        if name == WEBHOOK && engine != Some(EngineInForce::Webhook) {
            return Err(format!("profile {name}: engine {engine:?}"));
        }
        if status.namespaces.ready != status.namespaces.selected {
            return Err(format!("profile {name}: {:?}, {:?}", status.namespaces, status.failed_namespaces));
        }
    }
    for namespace in ["tools-0", "tools-1", "webhook-0"] {
        let pod = dry_run_answer(client, namespace, &bare_pod("bare")).await.map_err(|error| error.to_string())?;
        if pod["spec"]["securityContext"]["runAsUser"] != UID {
            return Err(format!("pods in {namespace} get no defaults"));
        }
    }
    for namespace in ["staged-deny", "staged-0", "victim-0", "broken-0"] {
        dry_run_answer(client, namespace, &tool_pod("job", UID)).await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// What Palisade was given in the end.
pub(crate) async fn inputs(client: &Client) -> Result<Inputs> {
    let mut namespaces = Vec::new();
    for namespace in Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await? {
        let own = namespace.metadata.name.as_deref() == Some(names::PROBE_NAMESPACE);
        if !own && namespace.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key("tenancy")) {
            let (name, labels, annotations) =
                (namespace.metadata.name, namespace.metadata.labels, namespace.metadata.annotations);
            namespaces.push(json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": labels, "annotations": annotations},
            }));
        }
    }
    let mut profiles = Vec::new();
    for profile in Api::<ToolSecurityProfile>::all(client.clone()).list(&ListParams::default()).await? {
        profiles.push(json!({
            "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile",
            "metadata": {"name": profile.metadata.name}, "spec": profile.spec,
        }));
    }
    Ok(Inputs { namespaces, profiles })
}

/// What there is of Palisade's objects and of the conditions of profiles.
pub(crate) async fn outputs(client: &Client) -> Result<Outputs> {
    let mut outputs = Outputs::new();
    for (group, version, kind, plural) in KINDS {
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        let managed = match kind {
            // They have no labels, and nobody else makes any.
            "ToolSecurityParams" => ListParams::default(),
            _ => ListParams::default().labels(&format!("{}={}", names::MANAGED_BY_LABEL, names::MANAGED_BY)),
        };
        for object in Api::<DynamicObject>::all_with(client.clone(), &resource).list(&managed).await? {
            let mut annotations = object.metadata.annotations.unwrap_or_default();
            // Profiles were edited in one of the two.
            annotations.remove(names::GENERATION_ANNOTATION);
            let owners: Vec<_> =
                object.metadata.owner_references.iter().flatten().map(|owner| (&owner.kind, &owner.name)).collect();
            let name = object.metadata.name.unwrap_or_default();
            let key = format!("{kind} {}/{name}", object.metadata.namespace.unwrap_or_default());
            let found = json!({
                "labels": object.metadata.labels, "annotations": annotations, "owners": owners, "spec": object.data["spec"],
            });
            outputs.insert(key, found);
        }
    }
    for profile in Api::<ToolSecurityProfile>::all(client.clone()).list(&ListParams::default()).await? {
        let (generation, status) =
            (profile.metadata.generation.unwrap_or_default(), profile.status.unwrap_or_default());
        let name = profile.metadata.name.unwrap_or_default();
        let conditions: BTreeMap<_, _> =
            status.conditions.iter().map(|one| (&one.type_, (&one.status, &one.reason))).collect();
        let found = json!({
            "conditions": conditions, "namespaces": status.namespaces, "policies": status.generated_policies,
            "mutation": status.mutation.map(|mutation| mutation.engine), "finalizers": profile.metadata.finalizers,
        });
        outputs.insert(format!("ToolSecurityProfile /{name}"), found);
        // A policy says in its text of which generation it is, so that a probe can tell.
        let said = |number: i64| format!("{name}.{number}");
        let policies: Vec<_> = outputs.keys().filter(|key| key.contains(&format!("-{name}-"))).cloned().collect();
        for key in policies {
            if let Some(policy) = outputs.get_mut(&key) {
                *policy = serde_json::from_str(&policy.to_string().replace(&said(generation), &said(0)))?;
            }
        }
    }
    Ok(outputs)
}

/// What a fresh controller makes of the same on a fresh control plane.
pub(crate) async fn fresh(inputs: &Inputs, directory: &Path, timeline: &Arc<Timeline>) -> Result<Outputs> {
    let site = Site::start(directory, 1, timeline).await?;
    let client = site.admin.clone();
    stream::iter(&inputs.namespaces)
        .map(Ok)
        .try_for_each_concurrent(16, |namespace| {
            let client = &client;
            async move { palisade_tests::send(client, "POST", "/api/v1/namespaces", ask::JSON, namespace).await.map(drop) }
        })
        .await?;
    let api: Api<ToolSecurityProfile> = Api::all(client.clone());
    for profile in &inputs.profiles {
        let name = profile["metadata"]["name"].as_str().unwrap_or_default();
        api.patch(name, &PatchParams::apply("chaos").force(), &Patch::Apply(profile)).await?;
    }
    converge(&client, timeline).await;
    let outputs = outputs(&client).await?;
    site.stop().await?;
    Ok(outputs)
}

/// What differs: the first ten, and how many there are.
pub(crate) fn differences(one: &Outputs, other: &Outputs) -> Vec<String> {
    let mut keys: Vec<_> = one.keys().chain(other.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| one.get(*key) != other.get(*key));
    let more = keys.len().saturating_sub(10);
    let first = keys.into_iter().take(10).map(|key| match (one.get(key), other.get(key)) {
        (Some(one), Some(other)) => format!("{key}: {}", first_difference(one, other, String::new())),
        (Some(_), None) => format!("{key} is there, and a fresh controller does not make it"),
        _ => format!("{key} is missing"),
    });
    first.chain((more > 0).then(|| format!("{more} more objects differ"))).collect()
}

/// The place where two values differ, and both.
fn first_difference(one: &Json, other: &Json, place: String) -> String {
    match (one, other) {
        (Json::Object(a), Json::Object(b)) => {
            let mut keys: Vec<_> = a.keys().chain(b.keys()).collect();
            keys.sort();
            for key in keys {
                let (a, b) = (a.get(key).unwrap_or(&Json::Null), b.get(key).unwrap_or(&Json::Null));
                if a != b {
                    return first_difference(a, b, format!("{place}.{key}"));
                }
            }
            place
        }
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            let differs = a.iter().zip(b).enumerate().find(|(_, (a, b))| a != b);
            differs.map_or_else(|| place.clone(), |(at, (a, b))| first_difference(a, b, format!("{place}[{at}]")))
        }
        _ => format!("{place}: {one} instead of {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named_with_their_place() {
        let of = |json: Json| -> Outputs { serde_json::from_value(json).unwrap() };
        let one = of(json!({"a": {"x": [1, {"y": 2}]}, "b": 1, "same": 1}));
        let other = of(json!({"a": {"x": [1, {"y": 3}]}, "c": 1, "same": 1}));
        let expected =
            ["a: .x[1].y: 2 instead of 3", "b is there, and a fresh controller does not make it", "c is missing"];
        assert_eq!(differences(&one, &other), expected);
    }
}
