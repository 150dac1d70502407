//! From the profiles of a namespace and a request to a patch.

use std::collections::BTreeSet;

use palisade_api::{Exemptions, ParameterType, ToolSecurityParamsSpec, Values, names};
use palisade_checks::{
    FieldDefault, Subject,
    defaults::{self, CONTAINER_LISTS, ConditionContext, Step, field, is_windows},
    inject::{InjectedChange, Injecting},
    settings::redirect::Redirector,
};
use palisade_compiler::Mutation;
use serde_json::Value as Json;

use crate::patch::{Change, Patch, PatchOperation};

/// The operation on a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodOperation {
    /// A new one.
    Create,
    /// A change.
    Update,
}

/// A request for a pod that may be mutated.
#[derive(Clone, Copy, Debug)]
pub struct MutationRequest<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The operation.
    pub operation: PodOperation,
    /// `ephemeralcontainers` or the like; empty for the pod itself.
    pub subresource: &'a str,
    /// The user.
    pub user: &'a str,
    /// The user's groups.
    pub groups: &'a [String],
    /// The pod after the request.
    pub pod: &'a Json,
    /// The pod before the request; null for a new one.
    pub old_pod: &'a Json,
}

impl<'a> MutationRequest<'a> {
    /// A user without special rights creates a pod.
    pub fn create(namespace: &'a str, pod: &'a Json) -> Self {
        let operation = PodOperation::Create;
        Self { namespace, operation, subresource: "", user: "", groups: &[], pod, old_pod: &Json::Null }
    }
}

/// How the profiles of one namespace mutate its pods.
#[derive(Clone, Debug, Default)]
pub struct Plan<'a> {
    profiles: Vec<Profile<'a>>,
}

/// How one profile mutates, with the values of its parameters.
#[derive(Clone, Debug)]
struct Profile<'a> {
    mutation: &'a Mutation,
    redirector: Option<Redirector>,
    values: Values,
    excepted: BTreeSet<String>,
}

impl<'a> Plan<'a> {
    /// The plan of a namespace: the mutations of the profiles that select it, each with its `ToolSecurityParams` there.
    /// A profile with parameters mutates nothing where they are missing or state a problem: validation denies every pod
    /// there.
    pub fn new<'p>(profiles: impl IntoIterator<Item = (&'a Mutation, Option<&'p ToolSecurityParamsSpec>)>) -> Self {
        let mut profiles: Vec<_> =
            profiles.into_iter().filter_map(|(mutation, params)| Profile::new(mutation, params)).collect();
        profiles.sort_by(|one, other| one.mutation.profile.cmp(&other.mutation.profile));
        let redirecting = profiles.iter_mut().filter(|profile| profile.redirector.is_some());
        for profile in redirecting.skip(1) {
            profile.redirector = None;
        }
        Self { profiles }
    }

    /// True if it mutates no pod.
    pub fn is_empty(&self) -> bool {
        self.profiles.is_empty()
    }

    /// The patch for a request. It mutates only new pods and new ephemeral containers; not those of nodes or exempt
    /// users, and in the probe namespace only pods that ask who mutates them. An object that does not look like a pod
    /// stays as it is.
    pub fn patch(&self, request: &MutationRequest<'_>) -> Patch {
        let ephemeral = match (request.operation, request.subresource) {
            (PodOperation::Create, "") => false,
            (PodOperation::Update, "ephemeralcontainers") => true,
            _ => return Patch::default(),
        };
        let mut patch = Patch::default();
        let mut changed: Option<Json> = None;
        let mut profiles = self.profiles.iter().filter(|profile| !profile.is_exempt(request)).peekable();
        while let Some(profile) = profiles.next() {
            let pod = changed.as_ref().unwrap_or(request.pod);
            let of_profile = profile.patch(&MutationRequest { pod, ..*request }, ephemeral);
            // So that the next profile sees it. The patch was made for this pod and fits it; and if a part did not, the
            // whole patch would fail.
            if profiles.peek().is_some() {
                let mut pod = pod.clone();
                if of_profile.apply(&mut pod).is_err() {
                    continue;
                }
                changed = Some(pod);
            }
            patch.operations.extend(of_profile.operations);
            patch.changes.extend(of_profile.changes);
            patch.skipped.extend(of_profile.skipped);
        }
        patch
    }
}

impl<'a> Profile<'a> {
    fn new(mutation: &'a Mutation, params: Option<&ToolSecurityParamsSpec>) -> Option<Self> {
        let params = params.filter(|params| params.problem.is_empty());
        if mutation.parameterized && params.is_none() {
            return None;
        }
        let values = params.map(ToolSecurityParamsSpec::values).unwrap_or_default();
        // Parameters of an older generation may lack a value, and the value in its place would mean root.
        let known =
            |(name, kind): (&String, &ParameterType)| values.get(name).is_some_and(|value| value.kind() == *kind);
        if !mutation.parameters.iter().all(known) {
            return None;
        }
        Some(Self {
            mutation,
            redirector: mutation.redirect.as_ref().map(|redirect| redirect.resolve(&values)),
            excepted: params.into_iter().flat_map(|params| params.exceptions.keys().cloned()).collect(),
            values,
        })
    }

    fn is_exempt(&self, request: &MutationRequest<'_>) -> bool {
        let Exemptions { users, groups, runtime_classes } = &self.mutation.exemptions;
        let of_node = || {
            request.user.starts_with("system:node:")
                && request.groups.iter().any(|group| group == "system:nodes")
                && !field(request.pod, &["metadata", "annotations", "kubernetes.io/config.mirror"]).is_null()
        };
        let class = field(request.pod, &["spec", "runtimeClassName"]).as_str();
        let asks = || !field(request.pod, &["metadata", "annotations", names::PROBE_MUTATION_ANNOTATION]).is_null();
        (request.namespace == names::PROBE_NAMESPACE && !asks())
            || users.iter().any(|user| user == request.user)
            || groups.iter().any(|group| request.groups.contains(group))
            || class.is_some_and(|class| runtime_classes.iter().any(|exempt| exempt == class))
            || of_node()
    }

    fn patch(&self, request: &MutationRequest<'_>, ephemeral: bool) -> Patch {
        let pod = request.pod;
        // Validation denies it, and the API server's own engine leaves it alone, too.
        if !self.mutation.bounds().iter().all(|bound| bound.holds(pod)) {
            return Patch::default();
        }
        let (patch, with_containers) = if ephemeral { (Patch::default(), None) } else { self.added(pod) };
        let pod = with_containers.as_ref().unwrap_or(pod);
        let mut changing = Changing { profile: self, pod, patch };
        let of_ephemeral = if ephemeral { self.mutation.of_ephemeral() } else { vec![] };
        let defaults = if ephemeral { &of_ephemeral } else { &self.mutation.defaults };
        let of_container =
            |default: &FieldDefault| matches!(default.of, Subject::Container | Subject::LastingContainer);
        let (of_containers, of_pod): (Vec<_>, Vec<_>) =
            defaults.iter().filter(|_| !is_windows(pod)).partition(|(_, default)| ephemeral || of_container(default));
        changing.set_defaults(&Defaults::new(of_pod), "/spec", "pod", field(pod, &["spec"]), &Json::Null);
        let of_containers = Defaults::new(of_containers);
        if !ephemeral {
            changing.inject();
        }
        let lists = if ephemeral { &CONTAINER_LISTS[2..] } else { &CONTAINER_LISTS[..2] };
        let old: BTreeSet<_> =
            containers(request.old_pod, CONTAINER_LISTS[2]).filter_map(|(_, one)| name(one)).collect();
        for list in lists {
            for (index, container) in containers(pod, list) {
                if ephemeral && name(container).is_some_and(|name| old.contains(name)) {
                    continue;
                }
                let (at, of) =
                    (format!("/spec/{list}/{index}"), format!("container \"{}\"", name(container).unwrap_or_default()));
                changing.set_defaults(&of_containers, &at, &of, container, container);
                changing.redirect(&at, &of, container, &["image"]);
            }
        }
        for (index, volume) in containers(pod, "volumes").filter(|_| !ephemeral) {
            let of = format!("volume \"{}\"", name(volume).unwrap_or_default());
            changing.redirect(&format!("/spec/volumes/{index}"), &of, volume, &["image", "reference"]);
        }
        changing.patch
    }

    /// The patch that adds containers, and the pod with them; none if it adds none.
    fn added(&self, pod: &Json) -> (Patch, Option<Json>) {
        let mut adding = Changing { profile: self, pod, patch: Patch::default() };
        adding.push(self.mutation.injections.containers(pod, &self.values));
        if adding.patch.is_empty() {
            return (adding.patch, None);
        }
        let mut changed = pod.clone();
        match adding.patch.apply(&mut changed) {
            Ok(()) => (adding.patch, Some(changed)),
            // The patch was made for this pod and fits it.
            Err(_) => (Patch::default(), None),
        }
    }
}

/// The elements of a list of a pod.
fn containers<'a>(pod: &'a Json, list: &str) -> impl Iterator<Item = (usize, &'a Json)> {
    field(pod, &["spec", list]).as_array().into_iter().flatten().enumerate()
}

fn name(object: &Json) -> Option<&str> {
    field(object, &["name"]).as_str()
}

/// Fields to default.
struct Defaults<'a> {
    defaults: Vec<&'a (Option<String>, FieldDefault)>,
    steps: Vec<Step<'a>>,
}

impl<'a> Defaults<'a> {
    fn new(defaults: Vec<&'a (Option<String>, FieldDefault)>) -> Self {
        let only: Vec<_> = defaults.iter().map(|(_, default)| default).collect();
        Self { steps: defaults::steps(&only), defaults }
    }

    /// The check that a step is for.
    fn check(&self, step: &Step<'_>) -> Option<String> {
        self.defaults.iter().find(|(_, default)| default.path == step.path).and_then(|(check, _)| check.clone())
    }
}

/// A patch in the making.
struct Changing<'a> {
    profile: &'a Profile<'a>,
    pod: &'a Json,
    patch: Patch,
}

impl Changing<'_> {
    fn set_defaults(&mut self, defaults: &Defaults<'_>, at: &str, of: &str, object: &Json, container: &Json) {
        let Profile { mutation, values, excepted, .. } = self.profile;
        let context = ConditionContext { values, excepted, pod: self.pod, container };
        for step in &defaults.steps {
            let Some(value) = step.of(object, context) else { continue };
            if step.value.is_some() {
                self.patch.changes.push(Change {
                    profile: mutation.profile.clone(),
                    check: defaults.check(step),
                    of: of.to_owned(),
                    field: step.path.join("."),
                    before: None,
                    value: value.clone(),
                });
            }
            self.patch.operations.push(PatchOperation::Add { path: format!("{at}{}", step.pointer()), value });
        }
    }

    fn inject(&mut self) {
        let Profile { mutation, values, .. } = self.profile;
        self.push(mutation.injections.changes(self.pod, values));
        let skipped = mutation.injections.skipped_volumes(self.pod, values).into_iter().map(|name| {
            format!(
                "ToolSecurityProfile {}: volume {name}, its mounts and containers that mount it are not added, because the \
                 pod has another volume with this name",
                mutation.profile
            )
        });
        self.patch.skipped.extend(skipped);
    }

    fn push(&mut self, changes: Vec<InjectedChange>) {
        let mutation = self.profile.mutation;
        for change in changes {
            let path = change.pointer;
            let (before, value) = match change.does {
                Injecting::Add(value) => {
                    self.patch.operations.push(PatchOperation::Add { path, value: value.clone() });
                    (None, value)
                }
                Injecting::Replace(before, value) => {
                    self.patch.operations.push(PatchOperation::Replace { path, value: value.clone() });
                    (Some(before), value)
                }
                Injecting::Remove(before) => {
                    self.patch.operations.push(PatchOperation::Remove { path });
                    (Some(before), Json::Null)
                }
            };
            if !change.field.is_empty() {
                let (profile, check) = (mutation.profile.clone(), None);
                self.patch.changes.push(Change { profile, check, of: change.of, field: change.field, before, value });
            }
        }
    }

    fn redirect(&mut self, at: &str, of: &str, object: &Json, path: &[&str]) {
        let found = field(object, path);
        let redirected =
            self.profile.redirector.as_ref().zip(found.as_str()).and_then(|(to, image)| to.redirect(image));
        let Some(value) = redirected.map(Json::String) else { return };
        self.patch
            .operations
            .push(PatchOperation::Replace { path: format!("{at}/{}", path.join("/")), value: value.clone() });
        self.patch.changes.push(Change {
            profile: self.profile.mutation.profile.clone(),
            check: None,
            of: of.to_owned(),
            field: path.join("."),
            before: Some(found.clone()),
            value,
        });
    }
}
