//! The kinds that validate requests: policies and their bindings. The store keeps both in the same way.

use std::{fmt::Debug, sync::Arc};

use k8s_openapi::{
    ClusterResourceScope,
    api::admissionregistration::v1::{
        ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
        ValidatingAdmissionPolicySpec,
    },
};
use kube::{Resource, runtime::watcher::Event};
use serde::{Serialize, de::DeserializeOwned};

use super::{Inner, ProfileNames, Store};
use crate::watch::watch_cache::{Table, feed, identity, slim};

/// A policy or a binding. The members are the differences between the two kinds for code that compares, writes, keeps or
/// deletes them.
pub trait ValidatingObject:
    Resource<DynamicType = (), Scope = ClusterResourceScope>
    + k8s_openapi::Resource
    + Clone
    + Debug
    + PartialEq
    + Serialize
    + DeserializeOwned
{
    /// The spec of the kind.
    type Spec: Serialize;
    /// The kind in log messages.
    const NOUN: &'static str;
    /// Whether API servers compile expressions when an object is written.
    const IS_COMPILED: bool;

    /// The spec.
    fn spec(&self) -> &Self::Spec;
    /// Removes the status.
    fn clear_status(&mut self);
    /// The objects of the kind in the store.
    fn table(store: &mut Inner) -> &mut Table<String, Arc<Self>>;
}

impl ValidatingObject for ValidatingAdmissionPolicy {
    type Spec = Option<ValidatingAdmissionPolicySpec>;
    const NOUN: &'static str = "policy";
    const IS_COMPILED: bool = true;

    fn spec(&self) -> &Self::Spec {
        &self.spec
    }

    fn clear_status(&mut self) {
        self.status = None;
    }

    fn table(store: &mut Inner) -> &mut Table<String, Arc<Self>> {
        &mut store.policies
    }
}

impl ValidatingObject for ValidatingAdmissionPolicyBinding {
    type Spec = ValidatingAdmissionPolicyBindingSpec;
    const NOUN: &'static str = "binding";
    const IS_COMPILED: bool = false;

    fn spec(&self) -> &Self::Spec {
        &self.spec
    }

    fn clear_status(&mut self) {}

    fn table(store: &mut Inner) -> &mut Table<String, Arc<Self>> {
        &mut store.bindings
    }
}

impl Store {
    /// A watch has shown a policy or a binding.
    pub fn observe_object<K: ValidatingObject>(&self, event: Event<K>) -> ProfileNames {
        let mut inner = self.lock();
        let changes = feed(K::table(&mut inner), event, row);
        changes.iter().filter_map(|change| inner.owner_of(&change.key)).collect()
    }
}

/// The row of an object in its table.
pub(super) fn row<K: ValidatingObject>(mut object: K) -> (String, u64, Arc<K>) {
    let (name, version) = identity(object.meta());
    *object.meta_mut() = slim(std::mem::take(object.meta_mut()));
    object.clear_status();
    (name, version, Arc::new(object))
}
