//! What a profile changes in pods: who does it, and what, as data that the webhook and the API server's own engine
//! both follow.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{api::admissionregistration::v1::MatchResources, apimachinery::pkg::apis::meta::v1::LabelSelector};
use palisade_api::{Diagnostic, Exemptions, ParameterName, ParameterType, Settings, ToolSecurityProfileSpec};
use palisade_checks::{
    Condition, Field, FieldDefault, Lowering, Subject,
    bounds::{self, Bound, Counted},
    catalogue,
    settings::{
        mutation::{self, Engine, FailurePolicy},
        redirect::Redirect,
    },
};

use crate::{Custom, Resolver, bundle};

/// What a profile changes in pods.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutation {
    /// The profile's name.
    pub profile: String,
    /// In which namespaces: those that the profile selects.
    pub namespaces: LabelSelector,
    /// Who does it.
    pub engine: Engine,
    /// What happens to a pod where that fails.
    pub failure_policy: FailurePolicy,
    /// The fields that are defaulted where they are unset, each with the check that it is for, if any.
    pub defaults: Vec<(Option<String>, FieldDefault)>,
    /// Where images are taken from.
    pub redirect: Option<Redirect>,
    /// Whose requests, and what, is left alone.
    pub exemptions: Exemptions,
    /// The declared parameters, without which nothing is changed.
    pub parameters: BTreeMap<ParameterName, ParameterType>,
    /// Whether there are parameters in each namespace, be it only for exceptions.
    pub parameterized: bool,
}

/// Who changes pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangedBy {
    /// The API server, by a policy in this version of `admissionregistration.k8s.io`.
    Policy(&'static str),
    /// Palisade's webhook.
    Webhook,
    /// Nobody: the profile wants the API server to do it, which cannot.
    Nobody,
}

impl Mutation {
    /// What the profile changes, and the mistakes in that; `None` if it changes nothing.
    pub(crate) fn new(
        profile: &str,
        spec: &ToolSecurityProfileSpec,
        settings: &Settings,
        customs: &[Custom],
        declared: &BTreeMap<ParameterName, ParameterType>,
        parameterized: bool,
    ) -> (Option<Self>, Vec<Diagnostic>) {
        let mut cx = Lowering::new(declared);
        let redirect = settings.images.redirect.clone();
        if let Some(redirect) = &redirect {
            redirect.lower(&mut cx, "[]");
        }
        let of_checks = catalogue::ALL.iter().flat_map(|check| {
            (check.defaults)(settings, declared).into_iter().map(|default| (Some(check.id.to_owned()), default))
        });
        let unchecked = mutation::unchecked(settings).into_iter().map(|default| (None, default));
        let mut defaults: Vec<_> = of_checks.chain(unchecked).collect();
        let mut diagnostics = Vec::new();
        for custom in customs {
            let Some(default) = custom.field_default() else { continue };
            match defaults.iter().find(|(_, other)| overlap(&default, other)) {
                Some((check, other)) => diagnostics.push(taken(custom, check.as_deref(), other)),
                None => defaults.push((Some(custom.check.id.clone()), default)),
            }
        }
        let excepted: BTreeSet<_> = spec.exceptions.iter().flat_map(|exception| &exception.checks).collect();
        for (check, default) in &mut defaults {
            default.when.extend(check.clone().filter(|id| excepted.contains(id)).map(Condition::NoException));
        }
        let found = Self {
            profile: profile.to_owned(),
            namespaces: bundle::namespace_selector(spec),
            engine: settings.mutation.engine,
            failure_policy: settings.mutation.failure_policy,
            defaults,
            redirect,
            exemptions: spec.exemptions.clone(),
            parameters: declared.clone(),
            parameterized,
        };
        let changes = found.engine != Engine::Off && (!found.defaults.is_empty() || found.redirect.is_some());
        diagnostics.extend(cx.finish());
        (changes.then_some(found), diagnostics)
    }

    /// Who changes pods where the API server is of Kubernetes 1.`minor`. 1.34 and 1.35 serve MutatingAdmissionPolicy only
    /// where it is turned on, which an engine means that is `Native`.
    pub fn by(&self, minor: u8) -> ChangedBy {
        match (self.engine, minor) {
            (Engine::Auto | Engine::Native, 36..) => ChangedBy::Policy("v1"),
            (Engine::Native, 34..) => ChangedBy::Policy("v1beta1"),
            (Engine::Auto | Engine::Webhook, _) => ChangedBy::Webhook,
            (Engine::Native | Engine::Off, _) => ChangedBy::Nobody,
        }
    }

    /// The requests that it is about: `matchConstraints` of the policy, and what the webhook is registered for.
    pub fn match_constraints(&self) -> MatchResources {
        MatchResources {
            match_policy: Some("Equivalent".to_owned()),
            namespace_selector: Some(self.namespaces.clone()),
            object_selector: Some(LabelSelector::default()),
            resource_rules: Some(vec![
                bundle::rule("", &["CREATE"], &["pods"]),
                bundle::rule("", &["UPDATE"], &["pods/ephemeralcontainers"]),
            ]),
            exclude_resource_rules: None,
        }
    }

    /// How long a pod's lists may be for anything to be changed: all of them, because whoever merges a change into a pod
    /// reads all of it, and the texts that are looked at. Where validation denies what is longer, nothing is lost.
    pub fn bounds(&self) -> Vec<&'static Bound> {
        let redirected = |of: &Field| matches!(of, Field::Container("image") | Field::Volume("image.reference"));
        let wanted = |bound: &&Bound| match bound.counted {
            Counted::Elements => true,
            Counted::Characters => self.redirect.is_some() && redirected(&bound.of),
        };
        bounds::BOUNDS.iter().filter(wanted).collect()
    }

    /// The fields that are defaulted in a new ephemeral container: those of containers, and what it does not inherit, for
    /// nothing else of its pod can change.
    pub fn of_ephemeral(&self) -> Vec<(Option<String>, FieldDefault)> {
        let may_have = |default: &FieldDefault| matches!(default.of, Subject::PodOrContainer | Subject::Container);
        let mut defaults: Vec<_> = self.defaults.iter().filter(|(_, default)| may_have(default)).cloned().collect();
        for (_, default) in defaults.iter_mut().filter(|(_, default)| default.of == Subject::PodOrContainer) {
            default.when.push(Condition::PodUnset(default.path.clone()));
        }
        defaults
    }
}

/// Whether two fields are one, or one is in the other, in something.
fn overlap(one: &FieldDefault, other: &FieldDefault) -> bool {
    let of_pod = |default: &FieldDefault| matches!(default.of, Subject::Pod | Subject::PodOrContainer);
    let of_container = |default: &FieldDefault| default.of != Subject::Pod;
    (of_pod(one) && of_pod(other) || of_container(one) && of_container(other))
        && (one.path.starts_with(&other.path) || other.path.starts_with(&one.path))
}

/// A default for a field that something else of the profile defaults.
fn taken(custom: &Custom, check: Option<&str>, other: &FieldDefault) -> Diagnostic {
    let by = check.map_or("spec.mutation.additionalDefaults".to_owned(), |check| format!("check {check}"));
    let message = format!("{} is defaulted for {by}", other.path.join("."));
    Diagnostic::new(format!("{}.default.path", custom.path), message)
        .help("a field has one default: leave this one out, or what defaults the field now")
}

/// Whether two profiles redirect images, and one of them redirects what the other has redirected. Where both select a
/// namespace, an image then ends where neither wants it: policies and webhooks are asked again after a change. Parameters
/// are taken to have values that they could have.
pub fn redirect_each_other(one: &ToolSecurityProfileSpec, other: &ToolSecurityProfileSpec) -> bool {
    let redirector = |spec: &ToolSecurityProfileSpec| {
        let settings = spec.effective_settings();
        let redirect = settings.images.redirect.filter(|_| settings.mutation.engine != Engine::Off)?;
        Some(redirect.resolve(&Resolver::new(spec).0.sample()))
    };
    match (redirector(one), redirector(other)) {
        (Some(one), Some(other)) => !one.leaves_alone(&other) || !other.leaves_alone(&one),
        _ => false,
    }
}
