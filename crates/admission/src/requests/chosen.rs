//! Which admission plugins run.

use std::collections::BTreeSet;

/// Which admission plugins run: by default those that kube-apiserver runs by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plugins {
    /// If given, no others run, but for the policies.
    pub(super) only: Option<BTreeSet<&'static str>>,
    pub(super) without: BTreeSet<&'static str>,
}

impl Plugins {
    /// The same without `ServiceAccount`.
    pub(crate) fn without_service_accounts(mut self) -> Self {
        self.without.insert("ServiceAccount");
        self
    }
}
