//! The exceptions that tenants ask for: the part of the controller's copy of the cluster that watches of
//! `ToolSecurityException` keep up to date. Of each, it keeps what its effect depends on.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{core::DeserializeGuard, runtime::watcher::Event};
use palisade_api::{
    RequestCounts, ToolSecurityException,
    conditions::{ExceptionCondition, ExceptionReason},
};
use palisade_compiler::Request;

use crate::object_name::{NamespaceName, ProfileName};
use crate::watch::watch_cache::{Table, feed, version};

/// An exception that a tenant asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedException {
    pub name: String,
    pub uid: String,
    pub generation: i64,
    pub request: Request,
    pub reported: Reported,
}

/// The status of an exception, as written by the controller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    pub conditions: Vec<Condition>,
    /// The generation that they are about.
    pub generation: Option<i64>,
}

impl Reported {
    pub fn condition(&self, type_: ExceptionCondition) -> Option<&Condition> {
        self.conditions.iter().find(|one| one.type_ == type_.to_string())
    }

    /// The reason why it is in effect or not; `None` if it was not reported.
    pub fn reason(&self) -> Option<ExceptionReason> {
        self.condition(ExceptionCondition::Ready)?.reason.parse().ok()
    }
}

/// Profiles and namespaces that a change concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AffectedProfiles {
    /// By name, the affected profiles, each with the namespaces.
    pub profiles: BTreeMap<ProfileName, BTreeSet<NamespaceName>>,
    pub namespaces: BTreeSet<NamespaceName>,
}

/// The namespace and the name.
type Key = (String, String);

/// The exceptions that tenants ask for.
#[derive(Debug, Default)]
pub struct ExceptionStore {
    table: Mutex<Table<Key, Arc<ObservedException>>>,
    needed: Mutex<Needed>,
}

/// By uid, the generation of an exception that the last background scan looked at, and whether something that exists
/// needs it.
pub type Needed = BTreeMap<String, (i64, bool)>;

impl ExceptionStore {
    fn lock(&self) -> MutexGuard<'_, Table<Key, Arc<ObservedException>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the watch has read its list once.
    pub fn synced(&self) -> bool {
        self.lock().synced()
    }

    /// Handles an event of the watch. An exception that cannot be read is treated as missing.
    pub fn observe(&self, event: Event<DeserializeGuard<ToolSecurityException>>) -> AffectedProfiles {
        let event = match event {
            Event::Init => Event::Init,
            Event::InitDone => Event::InitDone,
            Event::InitApply(guard) => match guard.0 {
                Ok(exception) => Event::InitApply(exception),
                Err(_) => return AffectedProfiles::default(),
            },
            Event::Apply(guard) => match guard.0 {
                Ok(exception) => Event::Apply(exception),
                Err(invalid) => return self.remove(&invalid.metadata),
            },
            Event::Delete(guard) => match guard.0 {
                Ok(exception) => Event::Delete(exception),
                Err(invalid) => return self.remove(&invalid.metadata),
            },
        };
        let changes = feed(&mut self.lock(), event, |exception| row(&exception));
        let mut concerned = AffectedProfiles::default();
        for change in changes {
            concerned.add(&change.key.0, change.before.iter().chain(&change.after));
        }
        concerned
    }

    fn remove(&self, meta: &kube::core::ObjectMeta) -> AffectedProfiles {
        let key = (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default());
        let mut concerned = AffectedProfiles::default();
        if let Some(change) = self.lock().remove(key, version(meta)) {
            concerned.add(&change.key.0, &change.before);
        }
        concerned
    }

    /// Handles the response to a write of the status.
    ///
    /// Only the written fields are taken over. The response may contain more, such as an approval that the watch has
    /// not received yet. Other lanes must learn of such a change, and the watch reports it.
    pub fn wrote(&self, namespace: &str, exception: &ObservedException, version: u64, reported: Reported) {
        let key = (namespace.to_owned(), exception.name.clone());
        let mut table = self.lock();
        let now = table.get(&key).filter(|now| now.uid == exception.uid).cloned();
        if let Some(now) = now {
            table.set(key, version, Arc::new(ObservedException { reported, ..now.as_ref().clone() }));
        }
    }

    /// Those of a namespace, in the order of their names.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<ObservedException>> {
        let table = self.lock();
        let from = table.range((namespace.to_owned(), String::new())..);
        from.take_while(|((of, _), _)| of == namespace).map(|(_, exception)| Arc::clone(exception)).collect()
    }

    /// Those of a namespace that ask for something of a profile.
    pub fn of(&self, profile: &str, namespace: &str) -> Vec<Arc<ObservedException>> {
        let mut found = self.in_namespace(namespace);
        found.retain(|exception| exception.request.profile == profile);
        found
    }

    /// The exceptions for a profile, by namespace.
    pub fn of_profile(&self, profile: &str) -> BTreeMap<String, Vec<Arc<ObservedException>>> {
        let mut found = BTreeMap::<String, Vec<_>>::new();
        for ((namespace, _), exception) in self.lock().iter() {
            if exception.request.profile == profile {
                found.entry(namespace.clone()).or_default().push(Arc::clone(exception));
            }
        }
        found
    }

    /// The namespaces with exceptions for a profile.
    pub fn namespaces_of(&self, profile: &str) -> BTreeSet<NamespaceName> {
        self.of_profile(profile).into_keys().map(NamespaceName::new).collect()
    }

    /// The namespaces with exceptions.
    pub fn namespaces(&self) -> BTreeSet<NamespaceName> {
        self.lock().iter().map(|((namespace, _), _)| NamespaceName::new(namespace)).collect()
    }

    /// Takes over the results of a background scan.
    pub fn set_needed(&self, needed: Needed) {
        *self.needed.lock().unwrap_or_else(PoisonError::into_inner) = needed;
    }

    /// True if an existing object needs an exception; `None` if no background scan has evaluated its current spec.
    pub fn is_needed(&self, exception: &ObservedException) -> Option<bool> {
        let needed = self.needed.lock().unwrap_or_else(PoisonError::into_inner);
        needed.get(&exception.uid).filter(|(generation, _)| *generation == exception.generation).map(|(_, is)| *is)
    }

    /// Counts of exceptions for a profile, by reported status; `None` if there are none.
    pub fn counts(&self, profile: &str) -> Option<RequestCounts> {
        let mut counts = RequestCounts::default();
        let mut any = false;
        for exception in self.of_profile(profile).values().flatten() {
            any = true;
            let unused =
                exception.reported.condition(ExceptionCondition::InUse).is_some_and(|one| one.status == "False");
            counts.unused += i64::from(unused);
            *match exception.reported.reason() {
                None
                | Some(
                    ExceptionReason::Pending | ExceptionReason::AwaitingApproval | ExceptionReason::ApprovalOutdated,
                ) => &mut counts.pending,
                Some(ExceptionReason::InForce) => &mut counts.approved,
                Some(ExceptionReason::Expired) => &mut counts.expired,
                Some(_) => &mut counts.invalid,
            } += 1;
        }
        any.then_some(counts)
    }
}

impl AffectedProfiles {
    fn add<'a>(&mut self, namespace: &str, of: impl IntoIterator<Item = &'a Arc<ObservedException>>) {
        let namespace = NamespaceName::new(namespace);
        self.namespaces.insert(namespace.clone());
        for exception in of {
            let profile = ProfileName::new(&exception.request.profile);
            self.profiles.entry(profile).or_default().insert(namespace.clone());
        }
    }
}

fn row(exception: &ToolSecurityException) -> (Key, u64, Arc<ObservedException>) {
    let meta = &exception.metadata;
    let key = (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default());
    let status = exception.status.as_ref();
    let observed = ObservedException {
        name: key.1.clone(),
        uid: meta.uid.clone().unwrap_or_default(),
        generation: meta.generation.unwrap_or_default(),
        request: Request::from(exception),
        reported: Reported {
            conditions: status.map(|status| status.conditions.clone()).unwrap_or_default(),
            generation: status.and_then(|status| status.observed_generation),
        },
    };
    (key, version(meta), Arc::new(observed))
}

#[cfg(test)]
mod tests {
    use palisade_api::ApprovalState;
    use serde_json::json;

    use super::*;

    fn exception(name: &str, profile: &str, version: u32) -> DeserializeGuard<ToolSecurityException> {
        serde_json::from_value(json!({
            "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityException",
            "metadata": {"name": name, "namespace": "a", "uid": "u", "generation": 1, "resourceVersion": version.to_string()},
            "spec": {
                "profile": profile, "checks": ["privileged"], "scope": {"kind": "Namespace"}, "reason": "x",
                "expires": "2027-01-31T00:00:00Z",
            },
        }))
        .unwrap()
    }

    #[test]
    fn approval_in_write_response_is_not_lost() {
        let approved = |version| {
            let mut exception = exception("x", "one", version);
            let status = json!({"approval": {"uid": "u", "generation": 1}, "observedGeneration": 1});
            exception.0.as_mut().unwrap().status = serde_json::from_value(status).unwrap();
            exception
        };
        let exceptions = ExceptionStore::default();
        exceptions.observe(Event::Apply(exception("x", "one", 1)));
        let before = exceptions.in_namespace("a").remove(0);
        // It was approved as version 2, and the conditions written after that.
        let reported = Reported { generation: Some(1), ..Reported::default() };
        exceptions.wrote("a", &before, 3, reported.clone());
        let known = exceptions.in_namespace("a").remove(0);
        assert_eq!((&known.reported, known.request.approval), (&reported, ApprovalState::Missing));
        assert_eq!(exceptions.observe(Event::Apply(approved(2))), AffectedProfiles::default());
        assert_eq!(exceptions.observe(Event::Apply(approved(3))).profiles.len(), 1);
        assert_eq!(exceptions.in_namespace("a")[0].request.approval, ApprovalState::Current);
        // If the watch was faster, what it has shown stays.
        exceptions.wrote("a", &before, 4, Reported::default());
        assert_eq!(exceptions.in_namespace("a")[0].request.approval, ApprovalState::Current);
        // A deleted exception is not restored.
        exceptions.observe(Event::Delete(approved(5)));
        exceptions.wrote("a", &before, 4, reported);
        assert!(exceptions.in_namespace("a").is_empty());
    }

    #[test]
    fn exception_change_affects_both_profiles() {
        let exceptions = ExceptionStore::default();
        exceptions.observe(Event::Init);
        exceptions.observe(Event::InitDone);
        assert!(exceptions.synced());
        exceptions.observe(Event::Apply(exception("x", "one", 1)));
        let concerned = exceptions.observe(Event::Apply(exception("x", "other", 2)));
        assert_eq!(concerned.profiles.keys().map(ProfileName::as_str).collect::<Vec<_>>(), ["one", "other"]);
        assert_eq!(
            (exceptions.of("one", "a").len(), exceptions.of("other", "a").len(), exceptions.of("other", "b").len()),
            (0, 1, 0)
        );
        assert_eq!(exceptions.counts("other"), Some(RequestCounts { pending: 1, ..RequestCounts::default() }));
        assert_eq!(exceptions.counts("one"), None);
        // A repeated event changes nothing.
        assert_eq!(exceptions.observe(Event::Apply(exception("x", "other", 2))), AffectedProfiles::default());
        let gone = exceptions.observe(Event::Delete(exception("x", "other", 3)));
        assert_eq!(gone.namespaces.len(), 1);
        assert!(exceptions.namespaces().is_empty());
    }
}
