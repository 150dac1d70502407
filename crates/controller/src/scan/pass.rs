//! One pass over the objects of the cluster: evaluates changes since the previous pass, and keeps the other results.
//! Pure.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use palisade_api::{ObjectKind, ToolSecurityParams};
use palisade_compiler::{Namespace, selects};
use palisade_kube_json::owners::Reference;
use serde_json::Value as Json;

use super::{
    needed::{self, Needs},
    snapshot::{Snapshot, Subject},
};
use crate::{
    evaluation::{Evaluation, Existing, ListedKind, Tenant},
    watch::exception_store::Needed,
};

/// Result for an object.
#[derive(Debug, Default)]
pub struct Outcomes {
    /// The verdicts by profile, without profiles with which it complies.
    pub evaluations: Vec<(String, Evaluation)>,
    /// The uids of the exceptions that it needs, without which it would violate a profile.
    pub needs: Vec<String>,
}

/// An object that does not comply.
#[derive(Clone, Debug)]
pub struct Found {
    pub namespace: String,
    pub object: Reference,
    /// Its controller.
    pub owner: Option<Reference>,
    pub outcomes: Arc<Outcomes>,
}

/// Results of previous passes: an object is evaluated again only if it or its inputs have changed.
#[derive(Debug, Default)]
pub struct Memory {
    known: HashMap<u128, Known>,
    pass: u32,
}

#[derive(Debug)]
struct Known {
    version: u64,
    inputs: u64,
    pass: u32,
    /// `None` if it complies, and needs no exception for that.
    outcomes: Option<Arc<Outcomes>>,
}

#[derive(Debug)]
pub struct Pass {
    snapshot: Snapshot,
    memory: Memory,
    found: BTreeMap<Arc<ListedKind>, Vec<Found>>,
    /// The uids of the exceptions that something needs.
    needed: BTreeSet<String>,
    /// Number of objects that at least one profile evaluates.
    pub objects: usize,
    /// Number of objects that were evaluated in this pass.
    pub evaluated: usize,
}

impl Pass {
    pub fn new(snapshot: Snapshot, mut memory: Memory) -> Self {
        memory.pass = memory.pass.wrapping_add(1);
        Self { snapshot, memory, found: BTreeMap::new(), needed: BTreeSet::new(), objects: 0, evaluated: 0 }
    }

    /// The kinds of other objects that a profile evaluates, each once.
    pub fn object_kinds(&self) -> Vec<ObjectKind> {
        let mut kinds: Vec<ObjectKind> = Vec::new();
        for kind in self.snapshot.subjects.iter().flat_map(|subject| subject.evaluator.object_kinds()) {
            let is_known = |known: &ObjectKind| (&known.group, &known.resource) == (&kind.group, &kind.resource);
            if !kinds.iter().any(is_known) {
                kinds.push(kind.clone());
            }
        }
        kinds
    }

    /// Removes the results for a kind, whose list starts again.
    pub fn restart(&mut self, kind: &ListedKind) {
        self.found.remove(kind);
    }

    /// Evaluates some objects, preferably ordered by namespace, like lists of the API server.
    pub fn evaluate(&mut self, page: &[Existing]) {
        let Self { snapshot, memory, found, needed, objects, evaluated } = self;
        let mut place: Option<Place<'_>> = None;
        for existing @ Existing { of, object } in page {
            let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
            let namespace = text("/metadata/namespace");
            if place.as_ref().is_none_or(|place| place.name != namespace) {
                place = Some(Place::new(snapshot, namespace));
            }
            let Some(place) = place.as_mut().filter(|place| !place.subjects.is_empty()) else { continue };
            *objects += 1;
            let (uid, version) = (number(text("/metadata/uid")), digest(text("/metadata/resourceVersion")));
            let known = memory.known.get_mut(&uid);
            let known = known.filter(|known| known.version == version && known.inputs == place.inputs);
            let outcomes = if let Some(known) = known {
                known.pass = memory.pass;
                known.outcomes.clone()
            } else {
                *evaluated += 1;
                let outcomes = place.evaluate(existing);
                let (inputs, pass) = (place.inputs, memory.pass);
                memory.known.insert(uid, Known { version, inputs, pass, outcomes: outcomes.clone() });
                outcomes
            };
            let Some(outcomes) = outcomes else { continue };
            needed.extend(outcomes.needs.iter().cloned());
            if !outcomes.evaluations.is_empty() {
                // The controller of another object is not what violates the profile.
                let owner = Reference::to_controller(object).filter(|_| of.is_pods() || of.is_workload());
                let (namespace, object) = (namespace.to_owned(), Reference::to(&of.kind, object));
                found.entry(Arc::clone(of)).or_default().push(Found { namespace, object, owner, outcomes });
            }
        }
    }

    /// Ends the pass. Returns non-compliant objects, with workloads before pods in the order of evaluation; the needed
    /// exceptions; and the memory for the next pass.
    pub fn end(self) -> (Snapshot, Vec<Found>, Needed, Memory) {
        let Self { snapshot, mut memory, mut found, needed, .. } = self;
        memory.known.retain(|_, known| known.pass == memory.pass);
        memory.known.shrink_to_fit();
        let pods = found.extract_if(.., |of, _| of.is_pods()).collect::<Vec<_>>();
        let all = found.into_iter().chain(pods).flat_map(|(_, found)| found).collect();
        let needed = needed::all(&snapshot, &needed);
        (snapshot, all, needed, memory)
    }

    /// The memory of an incomplete pass.
    pub fn abandon(self) -> Memory {
        self.memory
    }
}

/// A namespace, and the profiles that select it.
struct Place<'a> {
    snapshot: &'a Snapshot,
    name: String,
    namespace: Option<Namespace>,
    subjects: Vec<(&'a Subject, Option<ToolSecurityParams>)>,
    /// A digest of all inputs of a verdict except the object.
    inputs: u64,
    /// Created with the first object.
    tenants: Vec<ProfileScanner<'a>>,
}

/// The evaluates of one profile in a namespace.
struct ProfileScanner<'a> {
    profile: &'a str,
    tenant: Tenant<'a>,
    needs: Option<Needs<'a>>,
}

impl<'a> Place<'a> {
    fn new(snapshot: &'a Snapshot, name: &str) -> Self {
        let namespace = snapshot.namespaces.get(name).filter(|namespace| !namespace.terminating);
        let namespace = namespace.map(|observed| observed.namespace.get());
        let subjects = snapshot.subjects.iter().filter_map(|subject| {
            let namespace = namespace.as_ref()?;
            let selected = selects(&subject.accepted.profile.spec, namespace);
            selected.then(|| (subject, subject.params(namespace, snapshot.now)))
        });
        let subjects: Vec<_> = subjects.collect();
        let mut hasher = DefaultHasher::new();
        if let Some(namespace) = &namespace {
            (&namespace.labels, &namespace.annotations).hash(&mut hasher);
        }
        for (subject, params) in &subjects {
            for one in subject.approved(name, snapshot.now) {
                (&one.uid, one.generation).hash(&mut hasher);
            }
            let profile = &subject.accepted.profile;
            (subject.name(), &profile.metadata.uid, profile.metadata.generation).hash(&mut hasher);
            serde_json::to_string(&params.as_ref().map(|params| &params.spec)).unwrap_or_default().hash(&mut hasher);
        }
        Self { snapshot, name: name.to_owned(), namespace, subjects, inputs: hasher.finish(), tenants: Vec::new() }
    }

    fn evaluate(&mut self, existing: &Existing) -> Option<Arc<Outcomes>> {
        let namespace = self.namespace.as_ref()?;
        if self.tenants.is_empty() {
            let seats = self.subjects.iter().map(|(subject, params)| ProfileScanner {
                profile: subject.name(),
                tenant: subject.evaluator.tenant(&subject.accepted, namespace, params.as_ref()),
                needs: Needs::of(subject, namespace, self.snapshot),
            });
            self.tenants = seats.collect();
        }
        let mut outcomes = Outcomes::default();
        for ProfileScanner { profile, tenant, needs } in &self.tenants {
            let evaluation = tenant.evaluate(existing);
            if evaluation != Evaluation::Complies {
                outcomes.evaluations.push(((*profile).to_owned(), evaluation));
            }
            outcomes.needs.extend(needs.iter().flat_map(|needs| needs.by(existing)));
        }
        let complies = outcomes.evaluations.is_empty() && outcomes.needs.is_empty();
        (!complies).then(|| Arc::new(outcomes))
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// A uid as a number, which takes less memory than the text.
fn number(uid: &str) -> u128 {
    let digits = uid.chars().filter(|char| *char != '-');
    let hex: String = digits.collect();
    u128::from_str_radix(&hex, 16).unwrap_or_else(|_| {
        // Not a UUID: no API server does that.
        u128::from(digest(uid)) << 64 | u128::from(digest(&format!("{uid}-")))
    })
}
