//! The controller's copy of the cluster, which watches and the answers to its own writes keep up to date. It is kept
//! small.
//!
//! Each event names the profiles that it concerns. An answer to our own write concerns none, and the event that
//! announces it later changes nothing, so that a write does not cause the next reconcile.

mod answers;
mod validating;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::{
    api::{
        admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
        core::v1::Namespace as CoreNamespace,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    core::{DeserializeGuard, PartialObjectMeta},
    runtime::watcher::Event,
};
use palisade_api::{
    ToolSecurityParams, ToolSecurityParamsSpec, ToolSecurityProfile,
    names::{self, Part},
};
use palisade_compiler::{Namespace, selects};

pub use self::validating::ValidatingObject;
use crate::object_kind::ObjectKind;
use crate::object_name::ProfileName;
use crate::watch::{
    exception_store::{ExceptionStore, ObservedException},
    json_box::JsonBox,
    object_store::ObjectStore,
    watch_cache::{Change, Table, feed, identity, slim},
};

/// The longest annotation that is kept. 64 texts of 256 characters are the longest value of a parameter.
const MAX_ANNOTATION: usize = 16 * 1024;
/// The placeholder for a longer one: no parameter of any type can have this value.
const TOO_LONG: &str = "(an annotation of more than 16 KiB)";

#[derive(Clone, Debug, PartialEq)]
pub struct ObservedProfile {
    /// Its metadata, without `managedFields`.
    pub meta: ObjectMeta,
    /// The profile, or why it cannot be read.
    pub profile: Result<Arc<ToolSecurityProfile>, String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ObservedNamespace {
    /// The parts that parameters and selectors read.
    pub namespace: JsonBox<Namespace>,
    /// True if it is being deleted.
    pub terminating: bool,
}

/// Parameters of a profile in a namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedParams {
    /// Their content; `None` if they cannot be read.
    pub spec: Option<JsonBox<ToolSecurityParamsSpec>>,
    /// True if another client has given them a finalizer or an owner, which can hold or delete them. Parameters that
    /// the controller writes have neither.
    pub held: bool,
}

/// A policy and its bindings in the cluster.
#[derive(Clone, Debug, Default)]
pub struct ObservedPair {
    pub policy: Option<Arc<ValidatingAdmissionPolicy>>,
    /// The bindings that there are, by name.
    pub bindings: BTreeMap<String, Arc<ValidatingAdmissionPolicyBinding>>,
}

impl ObservedPair {
    /// The metadata of the existing objects.
    pub fn metadata(&self) -> impl Iterator<Item = &ObjectMeta> {
        let policy = self.policy.as_ref().map(|policy| &policy.metadata);
        policy.into_iter().chain(self.bindings.values().map(|binding| &binding.metadata))
    }

    /// The binding in the cluster with the name of a desired one.
    pub fn binding(&self, desired: &ValidatingAdmissionPolicyBinding) -> Option<&ValidatingAdmissionPolicyBinding> {
        self.bindings.get(desired.metadata.name.as_deref()?).map(AsRef::as_ref)
    }
}

/// The profiles, namespaces, parameters, policies and bindings in the cluster, as far as the controller needs them.
#[derive(Debug, Default)]
pub struct Store {
    /// The exceptions that tenants ask for.
    pub exceptions: ExceptionStore,
    /// The objects of `spec.generate`.
    pub objects: ObjectStore,
    inner: Mutex<Inner>,
}

/// The content of the store.
#[derive(Debug, Default)]
pub struct Inner {
    profiles: Table<String, Arc<ObservedProfile>>,
    namespaces: Table<String, Arc<ObservedNamespace>>,
    /// Parameters by profile and namespace.
    params: Table<(String, String), Arc<ObservedParams>>,
    policies: Table<String, Arc<ValidatingAdmissionPolicy>>,
    bindings: Table<String, Arc<ValidatingAdmissionPolicyBinding>>,
    /// The generations of profiles that are in effect: not always the last written ones.
    in_force: BTreeMap<String, Arc<ToolSecurityProfile>>,
    /// The namespaces that have changed, or whose parameters have, since they were last taken, by profile.
    changed: BTreeMap<String, BTreeSet<String>>,
}

pub type ProfileNames = BTreeSet<ProfileName>;

impl Store {
    /// A store that also has the generated objects of these kinds.
    pub fn new(kinds: &[ObjectKind]) -> Self {
        Self { objects: ObjectStore::new(kinds), ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if every watch has read its list once. That the list of parameters could be read also shows that
    /// their CustomResourceDefinition is established and served.
    pub fn synced(&self) -> bool {
        let inner = self.lock();
        inner.profiles.synced()
            && inner.namespaces.synced()
            && inner.params.synced()
            && inner.policies.synced()
            && inner.bindings.synced()
            && self.exceptions.synced()
    }

    pub fn profiles(&self) -> ProfileNames {
        self.lock().profiles.iter().map(|(name, _)| ProfileName::new(name)).collect()
    }

    pub fn profile(&self, name: &str) -> Option<Arc<ObservedProfile>> {
        self.lock().profiles.get(name).cloned()
    }

    /// The policy and bindings of a profile for a part.
    pub fn pair(&self, profile: &str, part: Part) -> ObservedPair {
        let inner = self.lock();
        ObservedPair {
            policy: inner.policies.get(&names::policy(profile, part)).cloned(),
            bindings: names::bindings(profile, part)
                .filter_map(|name| Some((name.clone(), Arc::clone(inner.bindings.get(&name)?))))
                .collect(),
        }
    }

    /// The policies and bindings of a profile for all parts.
    pub fn pairs(&self, profile: &str) -> [ObservedPair; Part::ALL.len()] {
        Part::ALL.map(|part| self.pair(profile, part))
    }

    /// The namespaces, and the parameters of a profile in them.
    pub fn tenants(&self, profile: &str) -> Tenants {
        let inner = self.lock();
        let namespaces = inner.namespaces.iter().map(|(_, namespace)| Arc::clone(namespace)).collect();
        let params = inner
            .params
            .range((profile.to_owned(), String::new())..)
            .take_while(|((owner, _), _)| owner == profile)
            .map(|((_, namespace), params)| (namespace.clone(), Arc::clone(params)))
            .collect();
        Tenants { namespaces, params, exceptions: self.exceptions.of_profile(profile) }
    }

    pub fn namespaces(&self) -> Vec<Arc<ObservedNamespace>> {
        self.lock().namespaces.iter().map(|(_, namespace)| Arc::clone(namespace)).collect()
    }

    /// From now on the store remembers which namespaces and parameters of a profile change.
    pub fn follow(&self, profile: &str) {
        self.lock().changed.entry(profile.to_owned()).or_default();
    }

    /// The namespaces that have changed, or whose parameters have, since the last time.
    pub fn take_changed(&self, profile: &str) -> BTreeSet<String> {
        self.lock().changed.get_mut(profile).map(std::mem::take).unwrap_or_default()
    }

    /// The parameters of a profile in a namespace may have to change.
    pub fn touch(&self, profile: &str, namespace: &str) {
        self.lock().params_changed(&(profile.to_owned(), namespace.to_owned()));
    }

    /// A namespace, and the parameters of a profile in it.
    pub fn tenant(
        &self,
        profile: &str,
        namespace: &str,
    ) -> (Option<Arc<ObservedNamespace>>, Option<Arc<ObservedParams>>) {
        let inner = self.lock();
        let key = (profile.to_owned(), namespace.to_owned());
        (inner.namespaces.get(namespace).cloned(), inner.params.get(&key).cloned())
    }

    /// True if a namespace exists and is not being deleted.
    pub fn has_namespace(&self, name: &str) -> bool {
        self.lock().namespaces.get(name).is_some_and(|namespace| !namespace.terminating)
    }

    /// True if a namespace exists, or is being deleted.
    pub fn knows_namespace(&self, name: &str) -> bool {
        self.lock().namespaces.get(name).is_some()
    }

    /// From now on this generation of the profile is in effect.
    pub fn set_in_force(&self, profile: &Arc<ToolSecurityProfile>) {
        let name = profile.metadata.name.clone().unwrap_or_default();
        self.lock().in_force.insert(name, Arc::clone(profile));
    }

    /// The other profiles in effect, by name.
    pub fn others_in_force(&self, name: &str) -> Vec<(String, Arc<ToolSecurityProfile>)> {
        let inner = self.lock();
        let others = inner.in_force.iter().filter(|(other, _)| *other != name);
        others.map(|(other, profile)| (other.clone(), Arc::clone(profile))).collect()
    }

    /// The profile is gone.
    pub fn forget(&self, profile: &str) {
        let mut inner = self.lock();
        inner.in_force.remove(profile);
        inner.changed.remove(profile);
    }

    /// A watch has shown a profile.
    pub fn observe_profile(&self, event: Event<DeserializeGuard<ToolSecurityProfile>>) -> ProfileNames {
        let mut inner = self.lock();
        let changes = feed(&mut inner.profiles, event, |guard| {
            let (meta, profile) = match guard.0 {
                Ok(mut profile) => {
                    profile.metadata.managed_fields = None;
                    (profile.metadata.clone(), Ok(Arc::new(profile)))
                }
                Err(invalid) => (invalid.metadata, Err(invalid.error)),
            };
            let (name, version) = identity(&meta);
            (name, version, Arc::new(ObservedProfile { meta: slim(meta), profile: profile.map(without_version) }))
        });
        changes.into_iter().map(|change| ProfileName::new(change.key)).collect()
    }

    /// A watch has shown a namespace.
    pub fn observe_namespace(&self, event: Event<PartialObjectMeta<CoreNamespace>>) -> ProfileNames {
        let mut inner = self.lock();
        let changes = feed(&mut inner.namespaces, event, namespace_row);
        inner.namespaces_changed(&changes)
    }

    /// A watch has shown parameters.
    pub fn observe_params(&self, event: Event<DeserializeGuard<ToolSecurityParams>>) -> ProfileNames {
        let mut inner = self.lock();
        let changes = feed(&mut inner.params, event, |guard| {
            let (meta, spec) = match guard.0 {
                Ok(params) => (params.metadata, Some(params.spec)),
                Err(invalid) => (invalid.metadata, None),
            };
            params_row(&meta, spec.as_ref())
        });
        for change in &changes {
            inner.params_changed(&change.key);
        }
        changes.into_iter().map(|change| ProfileName::new(change.key.0)).collect()
    }
}

/// The namespaces, and the parameters of one profile in them.
#[derive(Debug, Default)]
pub struct Tenants {
    /// All namespaces in order.
    pub namespaces: Vec<Arc<ObservedNamespace>>,
    /// The profile's parameters by namespace.
    pub params: BTreeMap<String, Arc<ObservedParams>>,
    /// Exception requests, by namespace.
    pub exceptions: BTreeMap<String, Vec<Arc<ObservedException>>>,
}

impl Inner {
    fn params_changed(&mut self, (profile, namespace): &(String, String)) {
        if let Some(namespaces) = self.changed.get_mut(profile) {
            namespaces.insert(namespace.clone());
        }
    }

    /// Remembers which namespaces have changed. Returns the profiles that this concerns.
    fn namespaces_changed(&mut self, changes: &[Change<String, Arc<ObservedNamespace>>]) -> ProfileNames {
        for namespaces in self.changed.values_mut() {
            namespaces.extend(changes.iter().map(|change| change.key.clone()));
        }
        changes.iter().flat_map(|change| self.concerned_by(change)).collect()
    }

    /// The profiles that select or selected the namespace, in their last or their effective generation.
    fn concerned_by(&self, change: &Change<String, Arc<ObservedNamespace>>) -> ProfileNames {
        if change.key == names::PROBE_NAMESPACE {
            // Its labels change with each probe, and it has parameters whatever they are.
            let appeared = |namespace: &Option<Arc<ObservedNamespace>>| namespace.as_ref().map(|n| n.terminating);
            let concerned = appeared(&change.before) != appeared(&change.after);
            let all = self.profiles.iter().filter(|_| concerned);
            return all.map(|(name, _)| ProfileName::new(name)).collect();
        }
        let written = self.profiles.iter().filter_map(|(name, observed)| Some((name, observed.profile.as_ref().ok()?)));
        let sides = [&change.before, &change.after];
        let sides: Vec<_> = sides.into_iter().flatten().map(|observed| observed.namespace.get()).collect();
        written
            .chain(&self.in_force)
            .filter(|(_, profile)| sides.iter().any(|namespace| selects(&profile.spec, namespace)))
            .map(|(name, _)| ProfileName::new(name))
            .collect()
    }

    /// The profile that a policy or binding of this name belongs to.
    fn owner_of(&self, object: &str) -> Option<ProfileName> {
        // The policies are named like bindings.
        let is_of = |profile: &&String| {
            Part::ALL.into_iter().flat_map(|part| names::bindings(profile, part)).any(|name| name == object)
        };
        self.profiles.iter().map(|(name, _)| name).find(is_of).map(ProfileName::new)
    }
}

fn without_version(profile: Arc<ToolSecurityProfile>) -> Arc<ToolSecurityProfile> {
    let mut profile = Arc::unwrap_or_clone(profile);
    profile.metadata = slim(profile.metadata);
    Arc::new(profile)
}

fn namespace_row(object: PartialObjectMeta<CoreNamespace>) -> (String, u64, Arc<ObservedNamespace>) {
    let (name, version) = identity(&object.metadata);
    (name, version, Arc::new(namespace(object.metadata)))
}

fn namespace(meta: ObjectMeta) -> ObservedNamespace {
    let mut annotations = meta.annotations.unwrap_or_default();
    annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    for value in annotations.values_mut().filter(|value| value.len() > MAX_ANNOTATION) {
        // Not cut: the rest could be a valid, but wrong value.
        *value = TOO_LONG.repeat(10);
    }
    let namespace =
        Namespace { name: meta.name.unwrap_or_default(), labels: meta.labels.unwrap_or_default(), annotations };
    ObservedNamespace { namespace: JsonBox::new(&namespace), terminating: meta.deletion_timestamp.is_some() }
}

type ParamsRow = ((String, String), u64, Arc<ObservedParams>);

fn params_row(meta: &ObjectMeta, spec: Option<&ToolSecurityParamsSpec>) -> ParamsRow {
    let (name, version) = identity(meta);
    let key = (name, meta.namespace.clone().unwrap_or_default());
    let some = |one: Option<usize>| one.is_some_and(|count| count > 0);
    let held = some(meta.finalizers.as_ref().map(Vec::len)) || some(meta.owner_references.as_ref().map(Vec::len));
    (key, version, Arc::new(ObservedParams { spec: spec.map(JsonBox::new), held }))
}
