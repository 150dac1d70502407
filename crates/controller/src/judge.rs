//! Whether pods and workloads comply with a profile: the offline engine judges each as if it were
//! created now.

use std::{borrow::Cow, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::{
    Resource as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
    core::Request,
};
use palisade_api::{ToolSecurityParams, names::Shape};
use palisade_compiler::Namespace;
use palisade_gate::{Decision, ValidationRequest, Validator, Violation, namespace as namespace_object};
use palisade_mutation::{MutationRequest, Plan};
use palisade_objects::{json::set, workload::WORKLOADS};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    accepted::AcceptedProfile,
    call::{ApiError, call},
    context::Context,
    text::counted,
};

/// The longest reason, in characters.
const LONGEST: usize = 400;

/// The policies of a profile, to judge by.
#[derive(Debug)]
pub struct Judge {
    pods: Option<Validator>,
    workloads: Option<Validator>,
}

/// A pod or a workload of a namespace.
#[derive(Debug)]
pub struct Existing {
    /// Its kind.
    pub kind: &'static str,
    /// The whole object.
    pub object: Json,
}

/// What a profile says of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It complies, or the profile does not judge it.
    Complies,
    /// It violates the profile: at least one violation.
    Violates(Vec<Violation>),
    /// There is no verdict, and why.
    Unknown(String),
}

/// The findings in a namespace while its objects are judged, some at a time.
#[derive(Debug, Default)]
pub struct Findings {
    count: usize,
    first: Option<String>,
}

impl Findings {
    /// Judges some objects, and keeps nothing of them but the first reason.
    pub fn judge(&mut self, tenant: &Tenant<'_>, page: &[Existing]) {
        for Existing { kind, object } in page {
            let why = match tenant.judge(kind, object) {
                Judgement::Complies => continue,
                Judgement::Violates(violations) => match violations.first() {
                    Some(violation) => format!("[{}] {}", violation.check, violation.message),
                    None => String::new(),
                },
                Judgement::Unknown(why) => format!("cannot be judged: {why}"),
            };
            self.count += 1;
            let name = object.pointer("/metadata/name").and_then(Json::as_str).unwrap_or_default();
            self.first.get_or_insert_with(|| format!("{kind} {name}: {why}").chars().take(LONGEST).collect());
        }
    }

    /// What in the namespace violates the profile; `None` if all complies.
    pub fn end(self) -> Option<String> {
        let first = self.first?;
        let verb = if self.count == 1 { "violates" } else { "violate" };
        Some(format!("{} {verb} the profile; {first}", counted(self.count, "object")))
    }
}

/// A judge in one namespace.
#[derive(Debug)]
pub struct Tenant<'a> {
    judge: &'a Judge,
    namespace: String,
    about: Json,
    params: Option<Json>,
    plan: Plan<'a>,
}

impl Tenant<'_> {
    /// The verdict on an object as if it were created now.
    pub fn judge(&self, kind: &str, object: &Json) -> Judgement {
        let mut mutated = Cow::Borrowed(object);
        let validator = if kind == "Pod" {
            // As the engine in force would mutate it before it is validated.
            let patch = self.plan.patch(&MutationRequest::create(&self.namespace, object));
            if !patch.is_empty()
                && let Err(why) = patch.apply(mutated.to_mut())
            {
                tracing::debug!(namespace = self.namespace.as_str(), error = why, "could not mutate a pod");
            }
            &self.judge.pods
        } else {
            &self.judge.workloads
        };
        let Some(validator) = validator else { return Judgement::Complies };
        let request = ValidationRequest {
            namespace: &self.namespace,
            params: self.params.as_ref(),
            namespace_object: Some(&self.about),
            ..ValidationRequest::create(kind, &mutated)
        };
        match validator.judge(&request) {
            Ok(judgement) if !judgement.matched => Judgement::Complies,
            Ok(judgement) => match judgement.decision {
                Decision::Admit => Judgement::Complies,
                Decision::Deny { message, violations, .. } if violations.is_empty() => {
                    Judgement::Violates(vec![Violation { check: "policy".to_owned(), message }])
                }
                Decision::Deny { violations, .. } => Judgement::Violates(violations),
            },
            Err(mistake) => Judgement::Unknown(mistake.to_string()),
        }
    }
}

impl Judge {
    /// Compiles the policies.
    ///
    /// # Errors
    /// A mistake in a policy, which the check of the profile should have found.
    pub fn new(accepted: &AcceptedProfile) -> Result<Self, String> {
        let of = |shape| {
            let Some(pair) = accepted.compiled.bundle.pair(shape) else { return Ok(None) };
            Validator::new(&pair.policy).map(Some).map_err(|mistakes| crate::text::diagnostics(&mistakes))
        };
        Ok(Self { pods: of(Shape::Pods)?, workloads: of(Shape::Workloads)? })
    }

    /// Whether the profile judges workloads.
    pub fn judges_workloads(&self) -> bool {
        self.workloads.is_some()
    }

    /// The judge in a namespace with these parameters.
    pub fn tenant<'a>(
        &'a self,
        accepted: &'a AcceptedProfile,
        namespace: &Namespace,
        params: Option<&ToolSecurityParams>,
    ) -> Tenant<'a> {
        let mutation = accepted.compiled.mutation.as_ref();
        Tenant {
            judge: self,
            namespace: namespace.name.clone(),
            about: namespace_object(&namespace.name, &namespace.labels, &namespace.annotations),
            params: params.map(|params| json!(params)),
            plan: Plan::new(mutation.map(|mutation| (mutation, params.map(|params| &params.spec)))),
        }
    }

    /// The kinds to list in a namespace, by API version, kind and resource: pods, and workloads if the profile judges them.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        let workloads = WORKLOADS.iter().filter(|_| self.workloads.is_some());
        [("v1", "Pod", "pods")].into_iter().chain(workloads.map(|one| (one.api_version, one.kind, one.resource)))
    }
}

/// How much text of pages is in memory as objects at the same time, in KiB. As objects it takes several times as much.
pub const ROOM: u32 = 8 << 10;

/// Some objects of a kind.
#[derive(Debug)]
pub struct Page {
    /// The objects.
    pub objects: Vec<Existing>,
    /// Where the next page begins; `None` if this is the last one.
    pub next: Option<String>,
    /// Kept until the objects are dropped.
    pub room: OwnedSemaphorePermit,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    metadata: ListMeta,
    items: Vec<Json>,
}

/// Lists one page of a kind, given by API version, kind and resource: in a namespace, or in all of them. It waits until
/// there is room for the objects.
///
/// # Errors
/// The API server gave no list.
pub async fn list_page(
    cx: &Context,
    namespace: Option<&str>,
    (api_version, kind, resource): (&str, &'static str, &str),
    page: &ListParams,
) -> Result<Page, ApiError> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let of_kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), resource);
    let mut request = Request::new(DynamicObject::url_path(&of_kind, namespace))
        .list(page)
        .map_err(|error| ApiError::Unreachable(kube::Error::BuildRequest(error)))?;
    request.extensions_mut().insert("list");
    let text = call(cx.client.request_text(request)).await?;
    let needed = u32::try_from(text.len() >> 10).unwrap_or(ROOM).clamp(1, ROOM);
    let room = Arc::clone(&cx.pages).acquire_many_owned(needed).await.map_err(|_| ApiError::Stopped)?;
    let read = tokio::task::spawn_blocking({
        let api_version = api_version.to_owned();
        move || read(&text, &api_version, kind)
    });
    let (objects, next) = read
        .await
        .unwrap_or_else(|error| Err(serde::de::Error::custom(error)))
        .map_err(|error| ApiError::Unreachable(kube::Error::SerdeError(error)))?;
    Ok(Page { objects, next, room })
}

fn read(text: &str, api_version: &str, kind: &'static str) -> serde_json::Result<(Vec<Existing>, Option<String>)> {
    let List { metadata, items } = serde_json::from_str(text)?;
    let objects = items.into_iter().map(|mut object| {
        // Who wrote which field is of no use here, and is a third of many objects.
        if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
            metadata.remove("managedFields");
        }
        // Objects in lists do not say what they are.
        set(&mut object, &["apiVersion"], api_version);
        set(&mut object, &["kind"], kind);
        Existing { kind, object }
    });
    Ok((objects.collect(), metadata.continue_.filter(|token| !token.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_a_list_get_what_they_lack() {
        let list = json!({
            "kind": "PodList", "metadata": {"resourceVersion": "7", "continue": "token"},
            "items": [{"metadata": {"name": "a", "managedFields": [{"manager": "x"}]}, "spec": {}}],
        });
        let (objects, next) = read(&list.to_string(), "v1", "Pod").unwrap();
        let expected = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}});
        assert_eq!(objects.iter().map(|one| &one.object).collect::<Vec<_>>(), [&expected]);
        assert_eq!(next.as_deref(), Some("token"));
        let last = json!({"metadata": {"continue": ""}, "items": []});
        assert_eq!(read(&last.to_string(), "v1", "Pod").unwrap().1, None);
        assert!(read("{}", "v1", "Pod").is_err());
    }
}
