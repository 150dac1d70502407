//! How a profile mutates pods: who does it, and what it changes, as data that the webhook and the API server's own
//! engine both follow.

use std::collections::BTreeMap;

use k8s_openapi::{api::admissionregistration::v1::MatchResources, apimachinery::pkg::apis::meta::v1::LabelSelector};
use palisade_api::{Diagnostic, Exemptions, ParameterName, ParameterType, Settings, ToolSecurityProfileSpec};
use palisade_cel::Minor;
use palisade_checks::{
    Condition, Field, FieldDefault, Subject,
    bounds::{self, Bound, Counted},
    catalogue, defaults,
    inject::Injections,
    settings::{
        mutation::{Engine, FailurePolicy},
        redirect::Redirect,
    },
};

use crate::{
    Custom, Resolver,
    exceptions::excepted_checks,
    matching::{matching, namespace_selector, rule},
};

/// How a profile mutates pods.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutation {
    /// The profile's name.
    pub profile: String,
    /// The namespaces: those that the profile selects.
    pub namespaces: LabelSelector,
    /// The engine that mutates pods.
    pub engine: Engine,
    /// The effect on a pod if mutation fails.
    pub failure_policy: FailurePolicy,
    /// The defaults of unset fields, each with its check, if any.
    pub defaults: Vec<(Option<String>, FieldDefault)>,
    /// The redirect of images.
    pub redirect: Option<Redirect>,
    /// The additions to new pods.
    pub injections: Injections,
    /// Requests and pods that are not mutated.
    pub exemptions: Exemptions,
    /// The declared parameters. Without their values nothing is mutated.
    pub parameters: BTreeMap<ParameterName, ParameterType>,
    /// Whether each namespace has parameters, be it only for exceptions.
    pub parameterized: bool,
    /// Whether a match condition excludes pods that need no change.
    pub fast_path: bool,
}

/// The engine that mutates pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangedBy {
    /// The API server, by a policy in this version of `admissionregistration.k8s.io`.
    Policy(&'static str),
    /// Palisade's webhook.
    Webhook,
    /// No engine: the profile demands the API server, which does not support it.
    Nobody,
}

impl Mutation {
    /// How the profile mutates pods, and the errors in that; `None` if it does not.
    pub(crate) fn new(
        profile: &str,
        spec: &ToolSecurityProfileSpec,
        settings: &Settings,
        customs: &[Custom],
        declared: &BTreeMap<ParameterName, ParameterType>,
        parameterized: bool,
    ) -> (Option<Self>, Vec<Diagnostic>) {
        let redirect = settings.images.redirect.clone();
        let of_checks = catalogue::ALL.iter().flat_map(|check| {
            (check.defaults)(settings, declared).into_iter().map(|default| (Some(check.id.to_owned()), default))
        });
        let unchecked = defaults::unchecked(settings).into_iter().map(|default| (None, default));
        let mut defaults: Vec<_> = of_checks.chain(unchecked).collect();
        let mut diagnostics = Vec::new();
        for custom in customs {
            let Some(default) = custom.field_default() else { continue };
            match defaults.iter().find(|(_, other)| overlap(&default, other)) {
                Some((check, other)) => diagnostics.push(taken(custom, check.as_deref(), other)),
                None => defaults.push((Some(custom.check.id.clone()), default)),
            }
        }
        let excepted = excepted_checks(spec);
        for (check, default) in &mut defaults {
            default.when.extend(check.clone().filter(|id| excepted.contains(id.as_str())).map(Condition::NoException));
        }
        let found = Self {
            profile: profile.to_owned(),
            namespaces: namespace_selector(spec),
            engine: settings.mutation.engine,
            failure_policy: settings.mutation.failure_policy,
            defaults,
            redirect,
            injections: Injections::new(&settings.mutation.inject),
            exemptions: spec.exemptions.clone(),
            parameters: declared.clone(),
            parameterized,
            fast_path: true,
        };
        diagnostics.extend(found.injections.mistakes());
        (found.changes_pods().then_some(found), diagnostics)
    }

    fn changes_pods(&self) -> bool {
        let changes = !self.defaults.is_empty() || self.redirect.is_some() || !self.injections.is_empty();
        self.engine != Engine::Off && changes
    }

    /// Who mutates pods on this minor of Kubernetes. 1.34 and 1.35 serve MutatingAdmissionPolicy only where an admin
    /// turns it on; the engine `Native` says that it is on.
    pub fn by(&self, minor: Minor) -> ChangedBy {
        match self.engine {
            Engine::Auto | Engine::Native if minor >= Minor::V1_36 => ChangedBy::Policy("v1"),
            Engine::Native if minor >= Minor::V1_34 => ChangedBy::Policy("v1beta1"),
            Engine::Auto | Engine::Webhook => ChangedBy::Webhook,
            Engine::Native | Engine::Off => ChangedBy::Nobody,
        }
    }

    /// The requests to mutate: `matchConstraints` of the policy and rules of the webhook's registration.
    pub fn match_constraints(&self) -> MatchResources {
        let rules = vec![rule("", &["CREATE"], &["pods"]), rule("", &["UPDATE"], &["pods/ephemeralcontainers"])];
        matching(self.namespaces.clone(), rules)
    }

    /// The bounds within which a pod is mutated: all lists, because the merge of a change into a pod reads all of
    /// it, and the texts that the mutation reads. Nothing is lost: validation denies a pod beyond them.
    pub fn bounds(&self) -> Vec<&'static Bound> {
        let redirected = |of: &Field| matches!(of, Field::Container("image") | Field::Volume("image.reference"));
        let wanted = |bound: &&Bound| match bound.counted {
            Counted::Elements => true,
            Counted::Characters => self.redirect.is_some() && redirected(&bound.of),
        };
        bounds::BOUNDS.iter().filter(wanted).collect()
    }

    /// The defaults of a new ephemeral container: those of containers, and the pod's where the container does not
    /// inherit them, because nothing else of its pod can change.
    pub fn of_ephemeral(&self) -> Vec<(Option<String>, FieldDefault)> {
        let may_have = |default: &FieldDefault| matches!(default.of, Subject::PodOrContainer | Subject::Container);
        let mut defaults: Vec<_> = self.defaults.iter().filter(|(_, default)| may_have(default)).cloned().collect();
        for (_, default) in defaults.iter_mut().filter(|(_, default)| default.of == Subject::PodOrContainer) {
            default.when.push(Condition::PodUnset(default.path.clone()));
        }
        defaults
    }
}

/// Whether two defaults of one object set the same field, or one sets a part of the other's.
fn overlap(one: &FieldDefault, other: &FieldDefault) -> bool {
    let of_pod = |default: &FieldDefault| matches!(default.of, Subject::Pod | Subject::PodOrContainer);
    let of_container = |default: &FieldDefault| default.of != Subject::Pod;
    (of_pod(one) && of_pod(other) || of_container(one) && of_container(other))
        && (one.path.starts_with(&other.path) || other.path.starts_with(&one.path))
}

/// The error that another part of the profile defaults the same field.
fn taken(custom: &Custom, check: Option<&str>, other: &FieldDefault) -> Diagnostic {
    let by = check.map_or("spec.mutation.additionalDefaults".to_owned(), |check| format!("check {check}"));
    let message = format!("{} is defaulted for {by}", other.path.join("."));
    Diagnostic::new(custom.path.child("default").child("path"), message)
        .help("a field can have only one default: remove this default or the other one")
}

/// Whether one of two profiles redirects the images that the other has redirected. Where both select a namespace, an
/// image then ends up where neither wants it, because the API server runs policies and webhooks again after a change.
/// Parameters get values that they could have.
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
