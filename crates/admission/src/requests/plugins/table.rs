//! All plugins that a supported minor has on by default, in their order (`AllOrderedPlugins` and
//! `DefaultOffAdmissionPlugins` in `pkg/kubeapiserver/options/plugins.go`). Adding one is a line here, and its file.

use super::{
    Mutate, Validate, certificate_approval, certificate_signing, certificate_subject, cluster_trust_bundles,
    default_ingress_class, default_storage_class, limit_ranger, namespace_lifecycle, node_declared_features,
    pod_resize, pod_security, pod_topology_labels, priority, resource_quota, runtime_class, service_account,
    storage_protection, taint_nodes, tolerations, volume_resize, webhooks,
};

pub(crate) const MUTATING_POLICIES: &str = "MutatingAdmissionPolicy";
pub(crate) const VALIDATING_POLICIES: &str = "ValidatingAdmissionPolicy";
pub(crate) const MUTATING_WEBHOOKS: &str = "MutatingAdmissionWebhook";

/// A built-in admission plugin.
#[derive(Clone, Copy, Debug)]
pub struct Plugin {
    /// Its name, as flags of kube-apiserver have it.
    pub name: &'static str,
    /// The first minor that has it on by default; 32 if an earlier one had.
    pub since: u8,
    /// The last one.
    pub until: u8,
    /// How far it is modelled here.
    pub done: &'static str,
    pub(super) mutate: Option<Mutate>,
    pub(super) validate: Option<Validate>,
}

impl Plugin {
    /// Whether it evaluates policies.
    pub(super) fn is_policies(&self) -> bool {
        matches!(self.name, MUTATING_POLICIES | VALIDATING_POLICIES)
    }

    const fn new(name: &'static str, done: &'static str) -> Self {
        Self { name, since: 32, until: u8::MAX, done, mutate: None, validate: None }
    }

    const fn since(mut self, minor: u8) -> Self {
        self.since = minor;
        self
    }

    const fn until(mut self, minor: u8) -> Self {
        self.until = minor;
        self
    }

    const fn mutates(mut self, mutate: Mutate) -> Self {
        self.mutate = Some(mutate);
        self
    }

    const fn validates(mut self, validate: Validate) -> Self {
        self.validate = Some(validate);
        self
    }
}

/// The message for a plugin that does nothing unless a feature gate is turned on that no minor has on.
const INERT: &str = "does nothing: its feature gate is off by default";

/// The plugins.
pub const ALL: &[Plugin] = &[
    Plugin::new("NamespaceLifecycle", "modelled; a namespace that is in no file is assumed to exist")
        .mutates(namespace_lifecycle::mutate),
    Plugin::new("LimitRanger", "modelled").mutates(limit_ranger::mutate).validates(limit_ranger::validate),
    Plugin::new("ServiceAccount", "modelled; default exists in each namespace")
        .mutates(service_account::mutate)
        .validates(service_account::validate),
    Plugin::new("TaintNodesByCondition", "modelled").mutates(taint_nodes::mutate),
    Plugin::new("PodSecurity", "modelled; without a configuration, so there are no exemptions")
        .validates(pod_security::validate),
    Plugin::new("Priority", "modelled").mutates(priority::mutate).validates(priority::validate),
    Plugin::new("DefaultTolerationSeconds", "modelled").mutates(tolerations::mutate),
    Plugin::new("DefaultStorageClass", "modelled").mutates(default_storage_class::mutate),
    Plugin::new("StorageObjectInUseProtection", "modelled").mutates(storage_protection::mutate),
    Plugin::new("PodGroupProtection", INERT).since(36),
    Plugin::new("PersistentVolumeClaimResize", "modelled").validates(volume_resize::validate),
    Plugin::new("RuntimeClass", "modelled").mutates(runtime_class::mutate).validates(runtime_class::validate),
    Plugin::new("CertificateApproval", "modelled; only the permissions of the group system:masters are known")
        .validates(certificate_approval::validate),
    Plugin::new("CertificateSigning", "modelled; only the permissions of the group system:masters are known")
        .validates(certificate_signing::validate),
    Plugin::new("ClusterTrustBundleAttest", "modelled; only the permissions of the group system:masters are known")
        .validates(cluster_trust_bundles::validate),
    Plugin::new("CertificateSubjectRestriction", "no verdict on a request that names the group system:masters")
        .validates(certificate_subject::validate),
    Plugin::new("DefaultIngressClass", "modelled").mutates(default_ingress_class::mutate),
    Plugin::new("PodTopologyLabels", "modelled; a node that is in no file has no labels")
        .since(33)
        .mutates(pod_topology_labels::mutate),
    Plugin::new("PodGroupWorkloadExists", INERT).since(36).until(36),
    Plugin::new("NodeDeclaredFeatureValidator", "no verdict on the resize of a pod on a node")
        .since(35)
        .validates(node_declared_features::validate),
    Plugin::new("JobValidation", INERT).since(36).until(36),
    Plugin::new("PodResizeValidator", "modelled").since(36).validates(pod_resize::validate),
    Plugin::new(MUTATING_POLICIES, "evaluates the policies in the files"),
    Plugin::new(MUTATING_WEBHOOKS, "no verdict on a request that a webhook in the files would handle")
        .mutates(webhooks::mutate),
    Plugin::new(VALIDATING_POLICIES, "evaluates the policies in the files"),
    Plugin::new("ValidatingAdmissionWebhook", "no verdict on a request that a webhook in the files would handle")
        .validates(webhooks::validate),
    Plugin::new("ResourceQuota", "modelled; no verdict if it depends on what is in use and a quota lacks status.used")
        .validates(resource_quota::validate),
];
