//! Compiles a profile into what the API server enforces.
//!
//! `ToolSecurityProfile -> Compiled`: one policy and one binding, whatever the number of namespaces. What is
//! the same in all namespaces is a constant in the policy; what differs is read from the namespace's
//! `ToolSecurityParams`, which [`Resolver`] makes. Nothing here may be applied: only the harness can turn a
//! [`Compiled`] into something that may.
//!
//! This crate is pure: no I/O, no clock, no environment. The same input gives the same bytes.

mod policy;
mod probes;
mod resolve;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use palisade_api::{
    Diagnostic, ParameterName, ParameterType, PssEquivalent, Settings, Stage, ToolSecurityParams, ToolSecurityProfile,
    ToolSecurityProfileSpec,
    catalogue::{self, Implied},
    names,
};

pub use policy::owner_reference;
pub use probes::{Probe, Probes};
pub use resolve::{Namespace, Resolver};

/// The objects that a profile becomes in the API server, besides the parameters in each namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// What pods are judged by.
    pub policy: ValidatingAdmissionPolicy,
    /// What puts the policy in force.
    pub binding: ValidatingAdmissionPolicyBinding,
}

/// A compiled profile. It has not been checked.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The profile's name.
    pub profile: String,
    /// The profile's stage.
    pub stage: Stage,
    /// The ids of the checks that the policy makes, in order.
    pub checks: Vec<&'static str>,
    /// The declared parameters. Without any there are no `ToolSecurityParams`.
    pub parameters: BTreeMap<ParameterName, ParameterType>,
    /// What the API server enforces.
    pub bundle: Bundle,
    /// What the parameters are in a namespace.
    pub resolver: Resolver,
    /// Pods that tell whether the policy is in force.
    pub probes: Probes,
    /// Which level of the Pod Security Standards the profile implies.
    pub implied: PssEquivalent,
}

impl Compiled {
    /// What must be in `namespace`, or `None` if the profile has no parameters.
    ///
    /// A parameter that is missing or malformed makes parameters that deny every pod and say why
    /// (`spec.problem`).
    ///
    /// They have neither labels nor an owner, which in thousands of objects the API server would keep in memory twice
    /// (ADR 11). Their name is the profile's, all of the kind are Palisade's, and the profile's finalizer
    /// stands for what an owner reference would do.
    pub fn params(&self, namespace: &Namespace) -> Option<ToolSecurityParams> {
        (!self.parameters.is_empty()).then(|| {
            let mut params = ToolSecurityParams::new(&names::params(&self.profile), self.resolver.params(namespace));
            params.metadata.namespace = Some(namespace.name.clone());
            params
        })
    }
}

/// Compiles a profile.
///
/// # Errors
/// All mistakes in the profile, each with its place.
pub fn compile(profile: &ToolSecurityProfile) -> Result<Compiled, Vec<Diagnostic>> {
    let name = profile.metadata.name.clone().unwrap_or_default();
    let spec = &profile.spec;
    let (resolver, mut diagnostics) = Resolver::new(spec);
    let parameters = resolver.types();
    let settings = spec.effective_settings();
    let (lowered, found) = policy::lower(&settings, &parameters);
    diagnostics.extend(found);
    diagnostics.extend(names_too_long(&name));
    diagnostics.extend(selects_everything(spec));
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let checks = lowered.iter().map(|(id, _)| *id).collect();
    let bundle = policy::bundle(profile, &lowered, !parameters.is_empty());
    let probes = Probes::new(&name, spec, &settings, &resolver);
    let implied = implied(spec, &settings);
    Ok(Compiled { profile: name, stage: spec.enforcement.pods, checks, parameters, bundle, resolver, probes, implied })
}

fn implied(spec: &ToolSecurityProfileSpec, settings: &Settings) -> PssEquivalent {
    let minimums = spec.parameters.iter().filter_map(|of| Some((of.name.clone(), of.minimum?))).collect();
    let Implied { level, reason } = catalogue::implied(settings, spec.baseline_version, &minimums);
    // The version that was meant: what "latest" is changes.
    PssEquivalent { level, version: format!("v1.{}", spec.baseline_version.minor()), reason }
}

fn names_too_long(name: &str) -> Option<Diagnostic> {
    // The CRD says the same; a file that never met an API server has not been told.
    (name.is_empty() || name.len() > 50).then(|| {
        Diagnostic::new("metadata.name", format!("{name:?} has {} characters", name.len()))
            .help("a profile's name has 1 to 50 characters")
    })
}

fn selects_everything(spec: &ToolSecurityProfileSpec) -> Option<Diagnostic> {
    let selector = &spec.namespace_selector;
    let labels = selector.match_labels.as_ref().is_some_and(|labels| !labels.is_empty());
    let expressions = selector.match_expressions.as_ref().is_some_and(|expressions| !expressions.is_empty());
    (!labels && !expressions).then(|| {
        Diagnostic::new("spec.namespaceSelector", "names no label").help(
            "to select every namespace, write matchExpressions: \
             [{key: kubernetes.io/metadata.name, operator: Exists}]",
        )
    })
}

/// Whether the profile selects the namespace. Protected and excluded namespaces, and the one for probes, never
/// are.
pub fn selects(spec: &ToolSecurityProfileSpec, namespace: &Namespace) -> bool {
    let excluded: BTreeSet<&str> = spec.exclude_namespaces.iter().map(String::as_str).collect();
    !names::PROTECTED_NAMESPACES.contains(&namespace.name.as_str())
        && namespace.name != names::PROBE_NAMESPACE
        && !excluded.contains(namespace.name.as_str())
        && palisade_api::selector::matches(&spec.namespace_selector, &namespace.labels)
}
