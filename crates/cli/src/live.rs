//! The objects of a cluster, for commands that evaluate with its active profiles. Only read permissions are needed.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use palisade_api::{ObjectKind, ToolSecurityException, ToolSecurityProfile, names::API_VERSION};
use palisade_cel::{Minor, NotAMinor};
use palisade_compiler::Request;
use palisade_kube_json::{
    json::set,
    workload::{WORKLOADS, Workload},
};
use palisade_runtime::lists;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::{
    cluster::{could_not_run, failed},
    namespaces::{self, Tenant},
    object_kinds::ObjectKinds,
    progress::Progress,
    report::{self, Failure},
};

/// The maximum number of objects in one page. Pages of large objects are smaller.
const PAGE: u32 = 500;

/// A kind of objects, by `apiVersion`, kind and plural name.
pub type Kind<'a> = (&'a str, &'a str, &'a str);

/// Pods.
pub const PODS: Kind<'static> = ("v1", "Pod", "pods");
/// Profiles.
pub const PROFILES: Kind<'static> = (API_VERSION, "ToolSecurityProfile", "toolsecurityprofiles");
/// Namespaces.
pub const NAMESPACES: Kind<'static> = ("v1", "Namespace", "namespaces");
/// Exceptions.
pub const EXCEPTIONS: Kind<'static> = (API_VERSION, "ToolSecurityException", "toolsecurityexceptions");

/// The kinds of pods and workloads. Owners come before the objects that they own.
pub fn judged() -> impl Iterator<Item = Kind<'static>> {
    let of = |&Workload { api_version, kind, resource, .. }: &Workload| (api_version, kind, resource);
    WORKLOADS.iter().map(of).chain([PODS])
}

/// The kinds of other objects that profiles evaluate, as the cluster has them: `apiVersion`, kind and plural name. Those
/// that cannot be listed are skipped with a note.
///
/// # Errors
/// The API server does not answer.
pub async fn others(client: &Client, kinds: &ObjectKinds) -> Result<Vec<(String, String, String)>, Failure> {
    let mut found: Vec<(String, String, String)> = Vec::new();
    for ObjectKind { group, versions, resource, .. } in kinds.listed() {
        let name = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
        let mut served = None;
        for version in versions {
            let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
            let listed = if group.is_empty() {
                client.list_core_api_resources(&api_version).await
            } else {
                client.list_api_group_resources(&api_version).await
            };
            match listed {
                Ok(list) => {
                    served = list.resources.into_iter().find(|one| one.name == *resource && one.namespaced);
                    if let Some(one) = &served {
                        let one = (api_version, one.kind.clone(), resource.clone());
                        if !found.contains(&one) && !judged().any(|(_, kind, of)| of == one.2 && kind == one.1) {
                            found.push(one);
                        }
                        break;
                    }
                }
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(failed(&format!("cannot find the kind of {name}"), &error)),
            }
        }
        if served.is_none() {
            report::note(&format!("note: the cluster has no {name}"));
        }
    }
    Ok(found)
}

fn api(client: &Client, (api_version, name, resource): Kind<'_>) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let of_kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, name), resource);
    Api::all_with(client.clone(), &of_kind)
}

/// Checks the permission to list these kinds, before a long command begins.
///
/// # Errors
/// All missing permissions.
pub async fn permitted(client: &Client, kinds: impl IntoIterator<Item = Kind<'static>>) -> Result<(), Failure> {
    let mut missing = Vec::new();
    for kind in kinds {
        match api(client, kind).list(&ListParams::default().limit(1)).await {
            Err(kube::Error::Api(status)) if status.is_forbidden() => {
                let error = kube::Error::Api(status);
                if let Failure::CouldNotRun(problems) = failed(&format!("cannot list {}", kind.2), &error) {
                    missing.extend(problems);
                }
            }
            // The list itself reports other errors.
            Ok(_) | Err(kube::Error::Api(_)) => {}
            Err(error) => return Err(failed(&format!("cannot list {}", kind.2), &error)),
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(Failure::CouldNotRun(missing)) }
}

/// Lists all objects of a kind in the whole cluster, page by page, in the order of the API server: objects of one
/// namespace are consecutive.
///
/// # Errors
/// The API server returns no list, or `found` fails.
pub async fn each(
    client: &Client,
    kind: Kind<'_>,
    progress: &mut Progress,
    mut found: impl FnMut(Vec<Json>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (api_version, _, resource) = kind;
    let api = api(client, kind);
    let mut page = ListParams::default().limit(PAGE);
    let mut done = 0;
    loop {
        let list = match api.list(&page).await {
            Ok(list) => list,
            Err(kube::Error::Api(status)) if status.code == 404 && api_version == API_VERSION => {
                report::note(&format!("note: this cluster has no {resource}: Palisade is not installed"));
                return Ok(());
            }
            Err(kube::Error::Api(status)) if status.code == 410 => {
                return Err(could_not_run(format!(
                    "cannot list {resource}: the evaluation took longer than the API server keeps its place in the \
                     list; export the \
                 objects with palisade dump, which only lists them, and evaluate its directory with --dump"
                )));
            }
            Err(error) => return Err(failed(&format!("cannot list {resource}"), &error)),
        };
        done += list.items.len();
        let left = list.metadata.remaining_item_count.and_then(|left| usize::try_from(left).ok());
        progress.show(resource, done, left.map(|left| done + left));
        found(list.items.into_iter().map(|object| whole(object, kind)).collect())?;
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}

/// The object with its kind, which objects in lists do not have, and without managed fields, which are a third of many
/// objects.
fn whole(mut object: DynamicObject, (api_version, kind, _): Kind<'_>) -> Json {
    object.metadata.managed_fields = None;
    let mut object = json!(object);
    set(&mut object, &["apiVersion"], api_version);
    set(&mut object, &["kind"], kind);
    object
}

async fn typed<T: DeserializeOwned>(
    client: &Client,
    kind: Kind<'_>,
    progress: &mut Progress,
) -> Result<Vec<T>, Failure> {
    let mut all = Vec::new();
    each(client, kind, progress, |page| {
        for object in page {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let read = serde_json::from_value(object);
            all.push(read.map_err(|error| could_not_run(format!("{} {name} in the cluster: {error}", kind.1)))?);
        }
        Ok(())
    })
    .await?;
    Ok(all)
}

/// The objects of the cluster that may change pods in admission, except those of Palisade, each with its kind. Kinds
/// that cannot be listed, or that the API server does not serve, are skipped.
pub async fn mutators(client: &Client) -> Vec<String> {
    let mut found = Vec::new();
    for (kind, resource) in [
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
    ] {
        let api = api(client, ("admissionregistration.k8s.io/v1", kind, resource));
        let Ok(list) = api.list(&ListParams::default()).await else { continue };
        let others = list.items.iter().filter(|object| changes_pods(&object.data));
        let names = others.filter_map(|object| object.metadata.name.as_deref());
        found.extend(names.filter(|name| !name.starts_with("palisade")).map(|name| format!("{kind} {name}")));
    }
    found
}

/// Whether a rule of a webhook configuration or of a policy matches new pods.
fn changes_pods(object: &Json) -> bool {
    let webhooks = object["webhooks"].as_array().into_iter().flatten().map(|webhook| &webhook["rules"]);
    let of_policy = [&object["spec"]["matchConstraints"]["resourceRules"]];
    let has = |list: &Json, one: &str| {
        list.as_array().into_iter().flatten().any(|value| [one, "*", "*/*"].iter().any(|known| value == known))
    };
    webhooks.chain(of_policy).flat_map(|rules| rules.as_array().into_iter().flatten()).any(|rule| {
        has(&rule["apiGroups"], "") && has(&rule["resources"], "pods") && has(&rule["operations"], "CREATE")
    })
}

/// The minor version of the API server, as [`minor`] reads it.
///
/// # Errors
/// The API server does not answer.
pub async fn version(client: &Client) -> Result<Minor, Failure> {
    let version = client
        .apiserver_version()
        .await
        .map_err(|error| failed("cannot read the version of the API server", &error))?;
    Ok(minor(&version.git_version))
}

/// The minor version in a version such as `v1.36.1`. If it is unsupported, the nearest supported one, with a warning.
pub fn minor(version: &str) -> Minor {
    let (minor, warning) = nearest(version);
    if let Some(warning) = warning {
        report::note(&warning);
    }
    minor
}

/// The supported minor nearest to a version, and the warning if the version is not supported.
fn nearest(version: &str) -> (Minor, Option<String>) {
    version.parse().map_or_else(
        |error: NotAMinor| {
            let minor = error.nearest();
            let text = format!("warning: the API server {version} is treated as {minor}: {error}");
            (minor, Some(text))
        },
        |minor| (minor, None),
    )
}

/// All profiles of the cluster.
///
/// # Errors
/// The API server returns no list. The failure names the missing permission.
pub async fn profiles(client: &Client) -> Result<Vec<ToolSecurityProfile>, Failure> {
    typed(client, PROFILES, &mut Progress::none()).await
}

/// All namespaces of the cluster with their exceptions, without those that are being deleted.
///
/// # Errors
/// The API server gives no list.
pub async fn all_tenants(client: &Client, progress: &mut Progress) -> Result<Vec<Tenant>, Failure> {
    let found = typed::<Namespace>(client, NAMESPACES, progress).await?;
    let seen = |one: Namespace| namespaces::seen(one.metadata.name.clone().unwrap_or_default(), one.metadata);
    let mut tenants: BTreeMap<_, _> = found.into_iter().filter_map(seen).map(|one| (one.name.clone(), one)).collect();
    for exception in typed::<ToolSecurityException>(client, EXCEPTIONS, progress).await? {
        let namespace = exception.metadata.namespace.clone().unwrap_or_default();
        if let Some(tenant) = tenants.get_mut(&namespace) {
            let request = Request::from(&exception);
            tenant.requests.push((exception.metadata.name.unwrap_or_default(), request));
        }
    }
    Ok(tenants.into_values().collect())
}

/// The namespaces with these names, with their exceptions. Missing namespaces are skipped.
///
/// # Errors
/// The user has no permission to read one of them.
pub async fn tenants(client: &Client, names: &BTreeSet<String>) -> Result<Vec<Tenant>, Failure> {
    let mut tenants = Vec::new();
    for name in names {
        let found = Api::<Namespace>::all(client.clone()).get_opt(name).await;
        let found = found.map_err(|error| failed(&format!("cannot read namespace {name}"), &error));
        let exceptions = Api::<ToolSecurityException>::namespaced(client.clone(), name);
        let list = lists::all(&exceptions, &ListParams::default()).await;
        let list = list.map_err(|error| failed(&format!("cannot read the exceptions in namespace {name}"), &error));
        let (found, list) = report::both(found, list)?;
        let Some(mut tenant) = found.and_then(|found| namespaces::seen(name.clone(), found.metadata)) else { continue };
        for exception in list {
            let request = Request::from(&exception);
            tenant.requests.push((exception.metadata.name.unwrap_or_default(), request));
        }
        tenants.push(tenant);
    }
    Ok(tenants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_new_pods_is_found() {
        let rules = |groups: Json, resources: Json, operations: Json| json!([{"apiGroups": groups, "resources": resources, "operations": operations}]);
        for (rules, expected) in [
            (rules(json!([""]), json!(["pods"]), json!(["CREATE"])), true),
            (rules(json!(["*"]), json!(["*/*"]), json!(["*"])), true),
            (rules(json!(["apps"]), json!(["*"]), json!(["*"])), false),
            (rules(json!([""]), json!(["pods/ephemeralcontainers"]), json!(["UPDATE"])), false),
            (rules(json!([""]), json!(["pods"]), json!(["UPDATE", "DELETE"])), false),
        ] {
            assert_eq!(changes_pods(&json!({"webhooks": [{"name": "a"}, {"rules": rules}]})), expected, "{rules}");
            let policy = json!({"spec": {"matchConstraints": {"resourceRules": rules}}});
            assert_eq!(changes_pods(&policy), expected, "{policy}");
        }
    }

    #[test]
    fn unsupported_version_is_treated_as_the_nearest_minor_with_a_warning() {
        for (version, expected, is_supported) in [
            ("v1.33.5-gke.1", Minor::V1_33, true),
            ("v1.35.0-eks-1a2b3c", Minor::V1_35, true),
            ("1.33", Minor::V1_33, true),
            ("1.37", Minor::V1_37, true),
            ("1.30", Minor::V1_32, false),
            ("v1.32.13", Minor::V1_32, true),
            ("1.38", Minor::V1_37, false),
            ("1.100", Minor::V1_37, false),
            ("v9.9", Minor::DEFAULT, false),
            ("garbage", Minor::DEFAULT, false),
            ("", Minor::DEFAULT, false),
        ] {
            let (minor, warning) = nearest(version);
            assert_eq!((minor, warning.is_none()), (expected, is_supported), "{version}: {warning:?}");
        }
        assert_eq!(
            nearest("v1.38.1").1.unwrap_or_default(),
            "warning: the API server v1.38.1 is treated as 1.37: Kubernetes 1.38 is not supported; supported are 1.32 to \
             1.37"
        );
    }

    #[test]
    fn pods_are_judged_after_what_owns_them() {
        let kinds: Vec<_> = judged().map(|(_, kind, _)| kind).collect();
        assert_eq!((kinds.len(), kinds.last()), (WORKLOADS.len() + 1, Some(&"Pod")));
    }
}
