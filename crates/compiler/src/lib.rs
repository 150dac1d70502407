//! Compiles a profile into policies and bindings for the API server.
//!
//! `ToolSecurityProfile -> Compiled`: two policies with at most ten bindings each, whatever the number of namespaces; a
//! third, if checks evaluate other objects than pods and workloads; one more for each with two bindings, if checks have a
//! separate stage; and one that guards what the profile reads from namespaces, if it asks for that.
//! Values that are the same in all namespaces are constants in the policy. The policy reads other values from the
//! namespace's `ToolSecurityParams`, which [`Resolver`] computes. A [`Compiled`] cannot be applied: only the gate can
//! turn it into objects that can.
//!
//! This crate is pure: no I/O, no clock, no environment. The same input gives the same bytes.
//!
//! Each module uses only modules before it:
//!
//! 1. Expressions in general: `tree`, `fold`, `style`, `used`.
//! 2. The parts of a profile: `exceptions`, `kinds`, `custom`, `exemptions`, `resolve`, `templates`, `rollout`, `own_stage`.
//! 3. The requests that policies match, and the fields that they read: `metadata`, `matching`, `reads`, `object_requests`,
//!    `workloads`, `updates`.
//! 4. The content of policies: `mutation`, `mutated`, `expressions`, `fast`, `objects`.
//! 5. Objects: `native`, `registration`, `bindings`, `guard`, `probes`, `bundle`.
#![warn(missing_docs)]

mod bindings;
mod bundle;
mod custom;
mod exceptions;
mod exemptions;
mod expressions;
mod fast;
mod fold;
mod guard;
mod kinds;
mod matching;
mod metadata;
mod mutated;
mod mutation;
mod native;
mod object_requests;
mod objects;
mod own_stage;
mod probes;
mod reads;
mod registration;
mod resolve;
mod rollout;
mod style;
mod templates;
mod tree;
mod updates;
mod used;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::admissionregistration::v1::ValidatingAdmissionPolicyBinding, apimachinery::pkg::apis::meta::v1::LabelSelector,
    jiff::Timestamp,
};
use palisade_api::{
    CustomTarget, Diagnostic, Enforcement, ObjectKind, ParameterName, ParameterType, PssEquivalent, Settings, Stage,
    Stages, ToolSecurityParams, ToolSecurityProfile, ToolSecurityProfileSpec, catalogue,
    names::{self, Part, Shape},
    settings::{self, Implied},
};
use palisade_cel::Minor;
use palisade_checks::{
    Check, FindingScope, Lowering, ObjectCheck, ObjectRule, Rule, Uses, inject::Injections, is_confidential,
};
use palisade_kube_json::selector::Labels;

pub use bundle::{Bundle, PolicyWithBindings};
pub use custom::{Custom, applies};
pub use exceptions::{Exceptions, Request};
pub use exemptions::exempt_tenants;
pub use expressions::{VIOLATIONS, violation};
pub use fast::MAY_VIOLATE;
pub use matching::namespace_selector;
pub use metadata::owner_reference;
pub use mutation::{ChangedBy, Mutation, redirect_each_other};
pub use native::{MutatingPair, match_conditions};
pub use probes::{Probe, Probes, Question};
pub use resolve::{Namespace, Resolver};
pub use style::ExpressionStyle;
pub use templates::{GeneratedObject, ObjectType, ResolvedTemplate, Templates};

/// A compiled profile. It has not been checked.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The profile's name.
    pub profile: String,
    /// At which stages namespaces are.
    pub enforcement: Enforcement,
    /// The ids of the checks that the policy makes, in order.
    pub checks: Vec<&'static str>,
    /// The ids of the checks that the policy for objects makes, in order.
    pub object_checks: Vec<&'static str>,
    /// The admin's own checks that the policies make, in order.
    pub customs: Vec<Custom>,
    /// The kinds that the settings name, with their paths in the profile.
    pub named_kinds: Vec<(String, ObjectKind)>,
    /// The declared parameters.
    pub parameters: BTreeMap<ParameterName, ParameterType>,
    /// The objects that the API server enforces.
    pub bundle: Bundle,
    /// Computes the parameters of a namespace.
    pub resolver: Resolver,
    /// The objects that the controller creates in each selected namespace.
    pub templates: Templates,
    /// How pods are mutated; `None` if they are not.
    pub mutation: Option<Mutation>,
    /// Where and until when checks are not made, and what tenants can ask for.
    pub exceptions: Exceptions,
    /// The selectors of the waves of the rollout, each with the index of its wave.
    pub wave_selectors: Vec<(usize, LabelSelector)>,
    /// The namespaces that are never selected, as the profile lists them.
    pub excluded: Vec<String>,
    /// Pods whose dry runs show whether the policy is active.
    pub probes: Probes,
    /// The level of the Pod Security Standards that the profile implies.
    pub implied: PssEquivalent,
    /// The oldest version of Kubernetes that the profile is for, if it names one.
    pub minimum: Option<Minor>,
}

impl Compiled {
    /// Whether each namespace has `ToolSecurityParams`: with parameters or exceptions.
    pub fn is_parameterized(&self) -> bool {
        !self.parameters.is_empty() || !self.exceptions.is_empty()
    }

    /// The stages that hold in a namespace that the profile selects.
    pub fn stages_in(&self, namespace: &Namespace) -> Stages {
        let label = namespace.labels.get(&names::stage_label(&self.profile));
        self.enforcement.stages(label.map(String::as_str))
    }

    /// The stage of the probe namespace: where namespaces have stages of their own, some may be in Deny.
    pub fn probed_stage(&self) -> Stage {
        if self.enforcement.namespace_stages.is_uniform() { self.enforcement.pods } else { Stage::Deny }
    }

    /// The stage of the checks with a separate stage, where that is not the stage of a shape anyway.
    pub fn checks_stage(&self) -> Option<Stage> {
        Shape::ALL.into_iter().find_map(|shape| self.bundle.part(Part::Checks(shape)))?;
        self.enforcement.checks.values().next().copied()
    }

    /// The kinds of other objects than pods and workloads that the policies evaluate, each resource once, without
    /// subresources and probes.
    pub fn object_kinds(&self) -> Vec<ObjectKind> {
        let mut kinds = BTreeMap::new();
        let specs = self.bundle.judging(Shape::Objects).filter_map(|(_, pair)| pair.policy.spec.as_ref());
        let rules = specs.filter_map(|spec| spec.match_constraints.as_ref()?.resource_rules.as_ref()).flatten();
        for rule in rules.filter(|rule| rule.resource_names.is_none()) {
            let versions = rule.api_versions.clone().unwrap_or_default();
            for group in rule.api_groups.iter().flatten() {
                for resource in rule.resources.iter().flatten().filter(|resource| !resource.contains('/')) {
                    kinds.entry((group.clone(), resource.clone())).or_insert_with(|| versions.clone());
                }
            }
        }
        let kind = |((group, resource), versions)| ObjectKind {
            group,
            versions,
            resource,
            subresources: Vec::new(),
            operations: Vec::new(),
        };
        kinds.into_iter().map(kind).collect()
    }

    /// The same, without kinds whose objects hold credentials: permission to list these is permission to read them. A
    /// custom check that names the kind includes it.
    pub fn listed_kinds(&self) -> Vec<ObjectKind> {
        let named = self.customs.iter().flat_map(|custom| &custom.check.kinds);
        let named: Vec<_> = named.map(|kind| (&kind.group, &kind.resource)).collect();
        let mut kinds = self.object_kinds();
        kinds.retain(|kind| {
            !is_confidential(&kind.group, &kind.resource) || named.contains(&(&kind.group, &kind.resource))
        });
        kinds
    }

    /// Whether the profile has a check of objects other than pods and workloads, at whatever stage.
    pub fn has_object_checks(&self) -> bool {
        !self.object_checks.is_empty() || self.customs.iter().any(|one| one.check.target == CustomTarget::Object)
    }

    /// The strictest stage, in the probe namespace, of the policies that evaluate a check of the catalogue or a custom
    /// check; `None` if none does: the profile restricts nothing.
    pub fn strictest_stage(&self) -> Option<Stage> {
        let parts = || Part::ALL.into_iter().filter(|part| self.probes.question(*part).is_some());
        Stage::ALL.into_iter().find(|stage| parts().any(|part| self.acts(part, (*stage).into())))
    }

    /// Whether a part denies in the probe namespace.
    pub fn denies(&self, part: Part) -> bool {
        self.acts(part, Stage::Deny.into())
    }

    fn acts(&self, part: Part, action: &str) -> bool {
        let actions = self.probed_binding(part).map(|binding| &binding.spec.validation_actions);
        actions.is_some_and(|actions| actions.iter().any(|one| one == action))
    }

    /// A part that denies a probe in the probe namespace; `None` if none does.
    pub fn denying_part(&self) -> Option<Part> {
        Part::ALL.into_iter().find(|part| self.denies(*part) && self.probes.question(*part).is_some())
    }

    /// The binding of a part that is active in the probe namespace.
    pub fn probed_binding(&self, part: Part) -> Option<&ValidatingAdmissionPolicyBinding> {
        let pair = self.bundle.part(part)?;
        let staged = names::staged(&names::policy(&self.profile, part), self.probed_stage());
        let staged = pair.others.iter().find(|binding| binding.metadata.name.as_ref() == Some(&staged));
        Some(staged.unwrap_or(&pair.binding))
    }

    /// Labels by which the profile selects the probe namespace, at [`Self::probed_stage`]; `None` if no labels do.
    pub fn probe_labels(&self) -> Option<Labels> {
        let mut labels = self.probes.labels.clone()?;
        if !self.enforcement.namespace_stages.is_uniform() {
            labels.insert(names::stage_label(&self.profile), self.probed_stage().to_string());
        }
        Some(labels)
    }

    /// The parameters that `namespace` must have from `now` on, until the next exception ends; `None` if the profile
    /// has neither parameters nor exceptions. `requests` are the exception requests in the namespace: those that are
    /// not approved, or are for another profile, have no effect.
    ///
    /// If a parameter is missing or malformed, every pod violates the result, which contains the reason
    /// (`spec.problem`).
    ///
    /// They have neither labels nor an owner, which in thousands of objects the API server would keep in memory twice
    /// (ADR 11). Their name is the profile's, all of the kind are Palisade's, and the profile's finalizer replaces an
    /// owner reference.
    pub fn params<'a>(
        &self,
        namespace: &Namespace,
        requests: impl IntoIterator<Item = &'a Request>,
        now: Timestamp,
    ) -> Option<ToolSecurityParams> {
        self.is_parameterized().then(|| {
            let mut params = ToolSecurityParams::new(&names::params(&self.profile), self.resolver.params(namespace));
            self.exceptions.add(&mut params.spec, &namespace.name, requests, now);
            params.metadata.namespace = Some(namespace.name.clone());
            params
        })
    }

    /// The objects that a namespace must have, if the profile selects it.
    pub fn generated(&self, namespace: &Namespace) -> Vec<ResolvedTemplate> {
        self.templates.resolve(&self.resolver, namespace)
    }
}

/// Compiles a profile.
///
/// # Errors
/// All errors in the profile, each with its place.
pub fn compile(profile: &ToolSecurityProfile) -> Result<Compiled, Vec<Diagnostic>> {
    compile_with(profile, Options::default())
}

/// How a profile is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How expressions are written. Only [`ExpressionStyle::Readable`] is ever applied.
    pub style: ExpressionStyle,
    /// Whether match conditions exclude requests that cannot violate anything, and pods that need no mutation. Verdicts
    /// are the same without them, but each request costs more. A profile turns them off by its own
    /// [`FAST_PATH_ANNOTATION`](names::FAST_PATH_ANNOTATION), too.
    pub fast_path: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { style: ExpressionStyle::default(), fast_path: true }
    }
}

/// Compiles a profile with options.
///
/// # Errors
/// All errors in the profile, each with its place.
pub fn compile_with(profile: &ToolSecurityProfile, options: Options) -> Result<Compiled, Vec<Diagnostic>> {
    let style = options.style;
    let name = profile.metadata.name.clone().unwrap_or_default();
    let spec = &profile.spec;
    let (mut resolver, mut diagnostics) = Resolver::new(spec);
    let (mut exceptions, found) = Exceptions::new(&name, spec);
    diagnostics.extend(found);
    let (customs, found) = custom::customs(spec, style);
    diagnostics.extend(found);
    let parameters = resolver.types();
    let (templates, found) = Templates::new(&name, spec, &parameters);
    diagnostics.extend(found);
    let settings = spec.effective_settings();
    let (lowered, objects, uses, found) = lower(&settings, &parameters);
    diagnostics.extend(found);
    diagnostics.extend(kinds::contradictions(spec, &objects));
    diagnostics.extend(resolver.restrict(spec, uses));
    diagnostics.extend(names_too_long(&name));
    diagnostics.extend(selects_everything(spec));
    diagnostics.extend(rollout::mistakes(spec));
    let minimum = spec.minimum_kube_version.as_deref().map(str::parse::<Minor>).transpose().unwrap_or_else(|unknown| {
        diagnostics.push(Diagnostic::new("spec.minimumKubeVersion", unknown.to_string()));
        None
    });
    let own = customs.iter().map(|one| one.check.id.as_str());
    let of_objects = objects.iter().map(|one| one.check.id);
    let made = lowered.iter().map(|one| one.check.id).chain(of_objects).chain(own).collect();
    diagnostics.extend(own_stage::mistakes(&spec.enforcement, &made));
    let parameterized = !parameters.is_empty() || !exceptions.is_empty();
    let (mut mutation, found) = Mutation::new(&name, spec, &settings, &customs, &parameters, parameterized);
    diagnostics.extend(found);
    let fast_path = match fast_path(profile) {
        Ok(on) => on && options.fast_path,
        Err(wrong) => {
            diagnostics.push(wrong);
            false
        }
    };
    if let Some(mutation) = &mut mutation {
        mutation.fast_path = fast_path;
    }
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let checks: Vec<_> = lowered.iter().map(|one| one.check.id).collect();
    let of_containers =
        lowered.iter().filter(|one| one.rule.findings.iter().any(|it| it.scope == FindingScope::Containers));
    let own = customs.iter().filter(|custom| custom.check.target == CustomTarget::Containers);
    exceptions
        .set_of_containers(of_containers.map(|one| one.check.id).chain(own.map(|custom| custom.check.id.as_str())));
    let object_checks: Vec<_> = objects.iter().map(|one| one.check.id).collect();
    let own = customs.iter().filter(|custom| custom.check.target == CustomTarget::Object);
    let own = own.map(|custom| custom.check.id.as_str());
    exceptions.set_of_objects(object_checks.iter().copied().chain(own));
    let options = Options { style, fast_path };
    let of_pods = customs.iter().filter(|custom| custom.check.target != CustomTarget::Object);
    let of_pods: Vec<_> = checks.iter().copied().chain(of_pods.map(|custom| custom.check.id.as_str())).collect();
    let probes = Probes::new(profile, &settings, &resolver, parameterized, &of_pods);
    let rules = (&lowered[..], &objects[..]);
    let bundle = bundle::bundle(profile, rules, &customs, mutation.as_ref(), parameterized, &probes, options);
    let implied = implied(spec, &settings);
    Ok(Compiled {
        profile: name,
        enforcement: spec.enforcement.clone(),
        checks,
        object_checks,
        customs,
        named_kinds: kinds::of_settings(spec),
        parameters,
        bundle,
        resolver,
        templates,
        mutation,
        exceptions,
        wave_selectors: rollout::selectors(spec),
        excluded: spec.exclude_namespaces.clone(),
        probes,
        implied,
        minimum,
    })
}

/// Whether a profile has a fast path.
///
/// # Errors
/// Its annotation has an unknown value.
pub fn fast_path(profile: &ToolSecurityProfile) -> Result<bool, Diagnostic> {
    let annotations = profile.metadata.annotations.as_ref();
    match annotations.and_then(|annotations| annotations.get(names::FAST_PATH_ANNOTATION)).map(String::as_str) {
        None | Some("On") => Ok(true),
        Some("Off") => Ok(false),
        Some(other) => {
            let path = format!("metadata.annotations[{}]", names::FAST_PATH_ANNOTATION);
            Err(Diagnostic::new(path, format!("{other:?} is not a valid value")).help("write On or Off"))
        }
    }
}

/// A check and the rule that the settings ask for.
#[derive(Clone)]
pub(crate) struct Lowered {
    pub check: &'static Check,
    pub rule: Rule,
    /// Whether the rule differs by namespace.
    pub reads_parameters: bool,
}

/// A check of objects and the rule that the settings ask for.
#[derive(Clone)]
pub(crate) struct LoweredObject {
    pub check: &'static ObjectCheck,
    pub rule: ObjectRule,
    /// Whether the rule differs by namespace.
    pub reads_parameters: bool,
}

impl Lowered {
    /// The expressions of the rule.
    fn texts(&self) -> impl Iterator<Item = &String> {
        let findings = self.rule.findings.iter().flat_map(|finding| [&finding.violated, &finding.says]);
        self.rule.variables.iter().map(|(_, text)| text).chain(findings)
    }
}

/// The rules that the settings ask for, what the settings use parameters for, and the errors in them.
fn lower(
    settings: &Settings,
    parameters: &BTreeMap<ParameterName, ParameterType>,
) -> (Vec<Lowered>, Vec<LoweredObject>, Uses, Vec<Diagnostic>) {
    let mut cx = Lowering::new(parameters);
    let mut rules = Vec::new();
    for check in catalogue::ALL {
        if let Some(rule) = (check.compile)(settings, &mut cx) {
            rules.push(Lowered { check, rule, reads_parameters: cx.take_reads_parameters() });
        }
    }
    let mut of_objects = Vec::new();
    for check in palisade_checks::objects::ALL {
        if let Some(rule) = (check.compile)(settings, &mut cx) {
            of_objects.push(LoweredObject { check, rule, reads_parameters: cx.take_reads_parameters() });
        }
    }
    if let Some(redirect) = &settings.images.redirect {
        redirect.lower(&mut cx, "[]");
    }
    Injections::new(&settings.mutation.inject).report(&mut cx);
    let uses = cx.take_uses();
    (rules, of_objects, uses, cx.finish())
}

fn implied(spec: &ToolSecurityProfileSpec, settings: &Settings) -> PssEquivalent {
    let minimums = spec.parameters.iter().filter_map(|of| Some((of.name.clone(), of.minimum?))).collect();
    let Implied { level, mut reason } = settings::implied(settings, spec.baseline_version, &minimums);
    if !spec.exceptions.is_empty() {
        reason.push_str("; except where spec.exceptions applies");
    }
    if spec.exception_requests.is_some() {
        reason.push_str("; except where a ToolSecurityException is approved");
    }
    // The resolved version: what "latest" means changes.
    PssEquivalent { level, version: format!("v1.{}", spec.baseline_version.minor()), reason }
}

fn names_too_long(name: &str) -> Option<Diagnostic> {
    // The CRD has the same rule, but a file may not have been sent to an API server.
    (name.is_empty() || name.len() > 50).then(|| {
        Diagnostic::new("metadata.name", format!("{name:?} has {} characters", name.len()))
            .help("the name of a profile must have 1 to 50 characters")
    })
}

fn selects_everything(spec: &ToolSecurityProfileSpec) -> Option<Diagnostic> {
    let selector = &spec.namespace_selector;
    let labels = selector.match_labels.as_ref().is_some_and(|labels| !labels.is_empty());
    let expressions = selector.match_expressions.as_ref().is_some_and(|expressions| !expressions.is_empty());
    (!labels && !expressions).then(|| {
        Diagnostic::new("spec.namespaceSelector", "must contain at least one label").help(
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
        && palisade_kube_json::selector::matches(&spec.namespace_selector, &namespace.labels)
}
