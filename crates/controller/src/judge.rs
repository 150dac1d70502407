//! Whether pods and workloads comply with a profile: the offline engine judges each as if it were
//! created now.

use std::{borrow::Cow, sync::Arc};

use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::jiff::Timestamp;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use palisade_api::{ToolSecurityParams, names::Shape};
use palisade_compiler::Namespace;
use palisade_gate::{Decision, ValidationRequest, Validator, Violation, namespace as namespace_object};
use palisade_mutation::{MutationRequest, Plan};
use palisade_objects::{existing::is_current, json::set, workload::WORKLOADS};
use serde_json::{Value as Json, json};

use crate::{
    accepted::AcceptedProfile,
    asked::ObservedException,
    call::{ApiError, call},
    text::counted,
};

/// How many objects one request lists.
const PAGE: u32 = 250;
/// How many kinds of one namespace are listed at the same time.
const AT_ONCE: usize = 3;
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

    /// What in the namespace violates the profile; `None` if all complies.
    pub fn judge(
        &self,
        accepted: &AcceptedProfile,
        namespace: &Namespace,
        asked: &[Arc<ObservedException>],
        all: &[Existing],
    ) -> Option<String> {
        let requests = asked.iter().map(|one| &one.request);
        let params = accepted.compiled.params(namespace, requests, Timestamp::now());
        let tenant = self.tenant(accepted, namespace, params.as_ref());
        let (mut count, mut first) = (0, None);
        for Existing { kind, object } in all {
            let why = match tenant.judge(kind, object) {
                Judgement::Complies => continue,
                Judgement::Violates(violations) => match violations.first() {
                    Some(violation) => format!("[{}] {}", violation.check, violation.message),
                    None => String::new(),
                },
                Judgement::Unknown(why) => format!("cannot be judged: {why}"),
            };
            count += 1;
            let name = object.pointer("/metadata/name").and_then(Json::as_str).unwrap_or_default();
            first.get_or_insert_with(|| format!("{kind} {name}: {why}"));
        }
        let first: String = first?.chars().take(LONGEST).collect();
        let verb = if count == 1 { "violates" } else { "violate" };
        Some(format!("{} {verb} the profile; {first}", counted(count, "object")))
    }

    /// The pods of a namespace, and the workloads if the profile judges them: without those that have ended or belong to
    /// another workload, which is judged itself.
    ///
    /// # Errors
    /// The API server gave no list.
    pub async fn list(&self, client: &Client, namespace: &str) -> Result<Vec<Existing>, ApiError> {
        let workloads = WORKLOADS.iter().filter(|_| self.workloads.is_some());
        let workloads = workloads.map(|one| (one.api_version, one.kind, one.resource));
        let kinds: Vec<_> = [("v1", "Pod", "pods")].into_iter().chain(workloads).collect();
        let lists = kinds.into_iter().map(|(api_version, kind, resource)| {
            // Boxed, or else the compiler finds its lifetimes too special.
            list(client, namespace, (api_version, kind, resource)).boxed()
        });
        let lists: Vec<_> = stream::iter(lists.collect::<Vec<_>>()).buffered(AT_ONCE).try_collect().await?;
        Ok(lists.into_iter().flatten().collect())
    }
}

/// Some objects of a kind.
#[derive(Debug)]
pub struct Page {
    /// The objects.
    pub objects: Vec<Existing>,
    /// Where the next page begins; `None` if this is the last one.
    pub next: Option<String>,
}

/// Lists one page of a kind, given by API version, kind and resource: in a namespace, or in all of them.
///
/// # Errors
/// The API server gave no list.
pub async fn list_page(
    client: &Client,
    namespace: Option<&str>,
    (api_version, kind, resource): (&str, &'static str, &str),
    page: &ListParams,
) -> Result<Page, ApiError> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let of_kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), resource);
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &of_kind),
        None => Api::all_with(client.clone(), &of_kind),
    };
    let list = call(api.list(page)).await?;
    let objects = list.items.into_iter().map(|mut object| {
        // Who wrote which field is of no use here, and is a third of many objects.
        object.metadata.managed_fields = None;
        let mut object = json!(object);
        // Objects in lists do not say what they are.
        set(&mut object, &["apiVersion"], api_version);
        set(&mut object, &["kind"], kind);
        Existing { kind, object }
    });
    Ok(Page { objects: objects.collect(), next: list.metadata.continue_.filter(|token| !token.is_empty()) })
}

/// All current objects of a kind in a namespace.
async fn list(client: &Client, namespace: &str, of: (&str, &'static str, &str)) -> Result<Vec<Existing>, ApiError> {
    let (mut found, mut page) = (Vec::new(), ListParams::default().limit(PAGE));
    loop {
        let Page { objects, next } = list_page(client, Some(namespace), of, &page).await?;
        found.extend(objects.into_iter().filter(|existing| is_current(existing.kind, &existing.object)));
        match next {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}
