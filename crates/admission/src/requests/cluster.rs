//! The policies in force, and the objects that they read.

use std::{
    borrow::Cow,
    collections::{BTreeMap, btree_map},
    fmt,
    sync::Arc,
};

use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ParamKind, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};
use palisade_cel::{Minor, Mode, schema::Kind};
use palisade_kube_json::json::Change as _;
use serde_json::{Value as Json, json};

use super::{
    PartialAuthorizer, Privileged, Request, ResourceId,
    chosen::Plugins,
    convert::convert,
    namespace,
    policy::{
        mutating::Mutations,
        validating::{Binding, Policy},
    },
    refusal::MatchError,
    standards::PodSecurity,
};
use crate::{
    create::{self, Refused, Status},
    objects::{self, Kinds, RequestContext, Resource, Submission},
};

/// The namespaces that every cluster has.
const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// A cluster as far as admission is concerned: the policies and bindings in force, and the namespaces, parameters and
/// definitions of kinds that they look up.
#[derive(Clone)]
pub struct Cluster {
    minor: Minor,
    /// Whether expressions remember what their parts came to.
    pub(super) watches: bool,
    kinds: Arc<Kinds>,
    /// Which admission plugins run.
    plugins: Plugins,
    policies: BTreeMap<String, Arc<Policy>>,
    /// By the name of their policy and their own.
    bindings: BTreeMap<String, BTreeMap<String, Binding>>,
    mutations: Arc<Mutations>,
    /// By their names.
    webhooks: Arc<BTreeMap<String, Arc<dyn Webhook>>>,
    pod_security: Option<Arc<dyn PodSecurity>>,
    namespaces: Arc<BTreeMap<String, Json>>,
    /// By group and kind, then by namespace and name.
    objects: Arc<BTreeMap<(String, String), ByName>>,
    authorizer: Arc<dyn PartialAuthorizer>,
}

/// A mutating webhook.
pub trait Webhook: fmt::Debug + Send + Sync {
    /// Which requests it is asked about: its rules and selectors.
    fn constraints(&self) -> &MatchResources;

    /// Its answer to a request.
    fn answer(&self, request: &Request, cluster: &Cluster) -> WebhookAnswer;
}

/// The answer of a webhook that allows a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookAnswer {
    /// The object with its patch applied, none if it has no patch; or why the API server cannot apply it.
    pub object: Result<Option<Json>, String>,
    /// The warnings for the client.
    pub warnings: Vec<String>,
}

/// Objects of a kind, by namespace and name.
type ByName = BTreeMap<(String, String), Stored>;

/// An object that policies may take for parameters.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
    pub object: Json,
}

impl Stored {
    /// `namespace/name`, or `name`.
    pub fn path(&self) -> String {
        if self.namespace.is_empty() { self.name.clone() } else { format!("{}/{}", self.namespace, self.name) }
    }
}

impl Cluster {
    /// A cluster of this minor of Kubernetes with nothing but its own namespaces in it.
    pub fn new(minor: Minor) -> Self {
        let own = |name: &&str| {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            ((*name).to_owned(), namespace::completed(namespace))
        };
        Self {
            minor,
            watches: false,
            kinds: Arc::new(Kinds::builtin(minor)),
            plugins: Plugins::default(),
            policies: BTreeMap::new(),
            bindings: BTreeMap::new(),
            mutations: Arc::new(Mutations::new(minor)),
            webhooks: Arc::default(),
            pod_security: None,
            namespaces: Arc::new(NAMESPACES.iter().map(own).collect()),
            objects: Arc::default(),
            authorizer: Arc::new(Privileged),
        }
    }

    /// The same cluster with other answers to authorization checks. Without this the members of `system:masters` may
    /// do all, and for all other users there is no verdict.
    #[must_use]
    pub fn with_authorizer(mut self, authorizer: Arc<dyn PartialAuthorizer>) -> Self {
        self.authorizer = authorizer;
        self
    }

    /// Puts an object into the cluster, in place of one of the same kind, namespace and name. Policies and bindings
    /// come into force; policies may read all other objects.
    ///
    /// The cluster has it as it is stored. An object with a `uid` came from a cluster, and is taken as it is; one
    /// without is validated like a new object.
    ///
    /// # Errors
    /// The API server's answer to an object that it rejects. The cluster is unchanged then.
    pub fn apply(&mut self, mut object: Json) -> Result<Vec<String>, Refused> {
        let dumped = object.pointer("/metadata/uid").is_some_and(|uid| !uid.is_null());
        if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut).filter(|_| dumped) {
            // Whoever creates an object cannot say it.
            metadata.remove("resourceVersion");
        }
        let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        let mut warnings = match create::create(self.minor, &object, None) {
            // Whether a definition's rules are taken makes no difference to those who look the kind up.
            Err(Refused::NoVerdict(_)) if kind == "CustomResourceDefinition" => vec![],
            created => created?,
        };
        let (name, mut namespace) = (text("/metadata/name"), text("/metadata/namespace"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        match (group, kind.as_str()) {
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
                let policy: ValidatingAdmissionPolicy = decode(object)?;
                self.policies.insert(name, Arc::new(Policy::compile(policy, self.minor, Mode::Stored, self.watches)));
            }
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
                let binding: ValidatingAdmissionPolicyBinding = decode(object)?;
                let spec = binding.spec;
                for bindings in self.bindings.values_mut() {
                    bindings.remove(&name);
                }
                let policy = spec.policy_name.clone();
                self.bindings.entry(policy).or_default().insert(name.clone(), Binding { name, spec });
            }
            ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => {
                let policy: MutatingAdmissionPolicy = decode(object)?;
                let watches = self.watches;
                Arc::make_mut(&mut self.mutations).add_policy(policy, watches);
            }
            ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding") => {
                let binding: MutatingAdmissionPolicyBinding = decode(object)?;
                Arc::make_mut(&mut self.mutations).add_binding(binding);
            }
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                Arc::make_mut(&mut self.mutations).add_crd(&object);
                Arc::make_mut(&mut self.kinds)
                    .add_crd(&object)
                    .map_err(|error| Refused::NoVerdict(error.to_string()))?;
                self.store(
                    Kind { group: group.to_owned(), version: version.to_owned(), kind },
                    namespace,
                    name,
                    object,
                );
            }
            _ => {
                let resource = self.kinds.by_kind(&api_version, &kind).ok_or_else(not_found)?;
                namespace = match (resource.namespaced, namespace) {
                    (true, namespace) if namespace.is_empty() => "default".to_owned(),
                    (true, namespace) => namespace,
                    (false, _) => String::new(),
                };
                let sent = Submission { resource, subresource: "", namespace: &namespace, object: &object, old: None };
                if !dumped {
                    warnings.extend(objects::receive(&self.kinds, sent, &RequestContext::default())?.warnings);
                }
                let stored = self.as_stored(sent, "")?;
                let object = stored.into_value();
                if (group, kind.as_str()) == ("", "Namespace") {
                    Arc::make_mut(&mut self.namespaces).insert(name.clone(), namespace::completed(object.clone()));
                }
                self.store(
                    Kind { group: group.to_owned(), version: version.to_owned(), kind },
                    namespace,
                    name,
                    object,
                );
            }
        }
        Ok(warnings)
    }

    fn store(&mut self, kind: Kind, namespace: String, name: String, object: Json) {
        let of_kind = Arc::make_mut(&mut self.objects).entry((kind.group.clone(), kind.kind.clone())).or_default();
        of_kind.insert((namespace.clone(), name.clone()), Stored { kind, namespace, name, object });
    }

    /// Registers a mutating webhook with known answers, in place of one of the same name.
    pub fn register(&mut self, name: impl Into<String>, webhook: Arc<dyn Webhook>) {
        Arc::make_mut(&mut self.webhooks).insert(name.into(), webhook);
    }

    /// The webhooks that are registered, by name.
    pub(super) fn webhooks(&self) -> impl Iterator<Item = (&String, &dyn Webhook)> {
        self.webhooks.iter().map(|(name, webhook)| (name, &**webhook))
    }

    /// The same cluster with an evaluator of the Pod Security Standards. Without this there is no verdict on pods that a
    /// namespace asks more of than the level `privileged`.
    #[must_use]
    pub fn with_pod_security(mut self, judge: Arc<dyn PodSecurity>) -> Self {
        self.pod_security = Some(judge);
        self
    }

    /// The evaluator of the Pod Security Standards, if there is one.
    pub(super) fn pod_security(&self) -> Option<&dyn PodSecurity> {
        self.pod_security.as_deref()
    }

    /// An object that was applied. The namespace is empty if the object has none.
    pub fn object(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<&Json> {
        let found = self.stored(group, kind).find(|stored| stored.namespace == namespace && stored.name == name);
        found.map(|stored| &stored.object)
    }

    /// The same cluster with other admission plugins. Without this those run that run by default in its minor.
    #[must_use]
    pub fn with_plugins(mut self, plugins: Plugins) -> Self {
        self.plugins = plugins;
        self
    }

    /// The same cluster without the admission plugin `ServiceAccount`, which is on by default and mounts a token into
    /// every pod.
    #[must_use]
    pub fn without_service_accounts(mut self) -> Self {
        self.plugins = self.plugins.without_service_accounts();
        self
    }

    /// The kinds of the cluster: those that are built in, and those that definitions add.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    pub(super) fn kinds_mut(&mut self) -> &mut Kinds {
        Arc::make_mut(&mut self.kinds)
    }

    /// Which admission plugins run.
    pub(crate) fn plugins(&self) -> &Plugins {
        &self.plugins
    }

    /// The minor version of Kubernetes.
    pub fn minor(&self) -> Minor {
        self.minor
    }

    pub(crate) fn authorizer(&self) -> Arc<dyn PartialAuthorizer> {
        Arc::clone(&self.authorizer)
    }

    /// The policies that have bindings, by name. Others do nothing.
    pub(crate) fn policies(&self) -> impl Iterator<Item = (&Policy, btree_map::Values<'_, String, Binding>)> {
        self.policies.values().filter_map(|policy| Some((&**policy, self.bindings.get(&policy.name)?.values())))
    }

    /// All policies, by name.
    pub(super) fn all_policies(&self) -> impl Iterator<Item = &Policy> {
        self.policies.values().map(|policy| &**policy)
    }

    pub(super) fn replace_policy(&mut self, policy: Policy) {
        self.policies.insert(policy.name.clone(), Arc::new(policy));
    }

    pub(super) fn mutations_mut(&mut self) -> &mut Mutations {
        Arc::make_mut(&mut self.mutations)
    }

    pub(crate) fn mutations(&self) -> &Mutations {
        &self.mutations
    }

    pub(crate) fn namespace(&self, name: &str) -> Option<&Json> {
        self.namespaces.get(name)
    }

    /// Whether objects of a kind live in namespaces; none if there is no such kind.
    pub(crate) fn is_namespaced(&self, kind: &Kind) -> Option<bool> {
        let api_version =
            if kind.group.is_empty() { kind.version.clone() } else { format!("{}/{}", kind.group, kind.version) };
        let resource = self.kinds.by_kind(&api_version, &kind.kind).filter(|resource| resource.by_default)?;
        Some(resource.namespaced)
    }

    /// All resources under which the same objects can be had, the given one among them, with their kinds.
    pub(crate) fn equivalents(&self, resource: &ResourceId, subresource: &str) -> Vec<(ResourceId, Kind)> {
        let Some(found) = self.kinds.by_plural(&resource.group, &resource.version, &resource.resource) else {
            return vec![];
        };
        let of = |one: &Resource| {
            let (group, version, kind) = match one.subresource(subresource) {
                Some(sub) => (&sub.group, &sub.version, &sub.kind),
                None => (&one.group, &one.version, &one.kind),
            };
            let kind = Kind { group: group.clone(), version: version.clone(), kind: kind.clone() };
            (ResourceId::new(&one.group, &one.version, &one.plural), kind)
        };
        self.kinds.equivalents(found, subresource).into_iter().map(of).collect()
    }

    /// All objects of a kind, in any version, by namespace and name.
    pub(crate) fn stored(&self, group: &str, kind: &str) -> impl Iterator<Item = &Stored> {
        self.objects.get(&(group.to_owned(), kind.to_owned())).into_iter().flat_map(BTreeMap::values)
    }

    /// Parameters in the version that a policy demands.
    pub(crate) fn param<'a>(&self, stored: &'a Stored, wanted: &ParamKind) -> Result<Cow<'a, Json>, MatchError> {
        let api_version = wanted.api_version.as_deref().unwrap_or_default();
        let (_, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let wanted = Kind { version: version.to_owned(), ..stored.kind.clone() };
        self.converted(Some(&stored.object), &stored.kind, &wanted)
    }

    /// An object in another version.
    pub(crate) fn converted<'a>(
        &self,
        object: Option<&'a Json>,
        from: &Kind,
        to: &Kind,
    ) -> Result<Cow<'a, Json>, MatchError> {
        match object {
            None => Ok(Cow::Owned(Json::Null)),
            Some(object) if from == to => Ok(Cow::Borrowed(object)),
            Some(object) => {
                let definitions = self.stored("apiextensions.k8s.io", "CustomResourceDefinition");
                convert(object, from, to, definitions.map(|one| &one.object)).map(Cow::Owned)
            }
        }
    }
}

/// Reads a policy or binding; the versions in which it is served do not differ in what they have.
fn decode<T: serde::de::DeserializeOwned>(mut object: Json) -> Result<T, Refused> {
    *object.at_mut(&["apiVersion"]) = "admissionregistration.k8s.io/v1".into();
    serde_json::from_value(object).map_err(|error| {
        let (code, reason, message) = (400, "BadRequest".to_owned(), error.to_string());
        Refused::Status(Status { code, reason, message, causes: vec![] })
    })
}

/// The answer to a kind that is not served.
fn not_found() -> Refused {
    let message = "the server could not find the requested resource".to_owned();
    Refused::Status(Status { code: 404, reason: "NotFound".to_owned(), message, causes: vec![] })
}
