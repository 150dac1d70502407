//! Updates of the store from responses to the controller's own requests, before a watch shows the change.
//!
//! A response may arrive after newer events of the watch, and may contain more than the written fields. Neither must
//! hide a change by another client.

use std::sync::Arc;

use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    core::v1::Namespace as CoreNamespace,
};
use kube::core::PartialObjectMeta;
use palisade_api::{ToolSecurityParams, ToolSecurityProfile, ToolSecurityProfileStatus};

use super::{ObservedProfile, ProfileNames, Store, binding_row, namespace_row, params_row, policy_row};

impl Store {
    /// A namespace was written. The response has its new state, which may differ in more than the written fields.
    pub fn wrote_namespace(&self, written: PartialObjectMeta<CoreNamespace>) -> ProfileNames {
        let mut inner = self.lock();
        let (name, version, value) = namespace_row(written);
        let change = inner.namespaces.wrote(name, version, value);
        inner.namespaces_changed(change.as_slice())
    }

    pub fn wrote_status(&self, observed: &ObservedProfile, version: u64, status: ToolSecurityProfileStatus) {
        let Ok(profile) = &observed.profile else { return };
        let name = observed.meta.name.clone().unwrap_or_default();
        let profile = ToolSecurityProfile { status: Some(status), ..profile.as_ref().clone() };
        let value = ObservedProfile { meta: observed.meta.clone(), profile: Ok(Arc::new(profile)) };
        let mut inner = self.lock();
        // This one must not hide a newer generation that the watch has shown since.
        if inner.profiles.get(&name).is_some_and(|now| now.meta == observed.meta) {
            inner.profiles.set(name, version, Arc::new(value));
        }
    }

    /// Parameters were written. The answer has their new state.
    pub fn wrote_params(&self, params: &ToolSecurityParams) {
        let (key, version, value) = params_row(&params.metadata, Some(&params.spec));
        let mut inner = self.lock();
        inner.params_changed(&key);
        inner.params.wrote(key, version, value);
    }

    /// The version of parameters, for [`Self::deleted_params`].
    pub fn params_version(&self, profile: &str, namespace: &str) -> u64 {
        self.lock().params.version_of(&(profile.to_owned(), namespace.to_owned()))
    }

    /// Parameters with this version, or newer ones that no watch has shown yet, were deleted. Later ones are kept: if
    /// they are not the deleted ones, they were created since; otherwise the watch shows the deletion.
    pub fn deleted_params(&self, profile: &str, namespace: &str, version: u64) {
        let key = (profile.to_owned(), namespace.to_owned());
        let mut inner = self.lock();
        inner.params_changed(&key);
        inner.params.remove(key, version);
    }

    pub fn wrote_policy(&self, policy: ValidatingAdmissionPolicy) {
        let (key, version, value) = policy_row(policy);
        self.lock().policies.wrote(key, version, value);
    }

    /// The version of a policy, for [`Self::deleted_policy`].
    pub fn policy_version(&self, name: &str) -> u64 {
        self.lock().policies.version_of(&name.to_owned())
    }

    /// A policy was deleted that had this version before, as [`Self::deleted_params`].
    pub fn deleted_policy(&self, name: &str, version: u64) {
        self.lock().policies.remove(name.to_owned(), version);
    }

    /// The version of a binding, for [`Self::deleted_binding`].
    pub fn binding_version(&self, name: &str) -> u64 {
        self.lock().bindings.version_of(&name.to_owned())
    }

    /// A binding was deleted that had this version before, as [`Self::deleted_params`].
    pub fn deleted_binding(&self, name: &str, version: u64) {
        self.lock().bindings.remove(name.to_owned(), version);
    }

    pub fn wrote_binding(&self, binding: ValidatingAdmissionPolicyBinding) {
        let (key, version, value) = binding_row(binding);
        self.lock().bindings.wrote(key, version, value);
    }
}
