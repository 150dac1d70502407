//! What a profile changes in pods: who does it, and what, as data that the webhook and the API server's own engine
//! both follow.

use std::collections::BTreeMap;

use k8s_openapi::{api::admissionregistration::v1::MatchResources, apimachinery::pkg::apis::meta::v1::LabelSelector};
use palisade_api::{Diagnostic, Exemptions, ParameterName, ParameterType, Settings, ToolSecurityProfileSpec};
use palisade_checks::{
    Condition, Fill, Lowering, Subject,
    catalogue::{
        self,
        mutation::{self, Engine, FailurePolicy},
        redirect::Redirect,
    },
};

use crate::bundle;

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
    /// The fields that are filled where they are unset, each with the check that it is for, if any.
    pub fills: Vec<(Option<&'static str>, Fill)>,
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
        declared: &BTreeMap<ParameterName, ParameterType>,
        parameterized: bool,
    ) -> (Option<Self>, Vec<Diagnostic>) {
        let mut cx = Lowering::new(declared);
        let redirect = settings.images.redirect.clone();
        if let Some(redirect) = &redirect {
            redirect.lower(&mut cx, "[]");
        }
        let of_checks = catalogue::ALL
            .iter()
            .flat_map(|check| (check.fills)(settings, declared).into_iter().map(|fill| (Some(check.id), fill)));
        let unchecked = mutation::unchecked(settings).into_iter().map(|fill| (None, fill));
        let mut fills: Vec<_> = of_checks.chain(unchecked).collect();
        let excepted = |id| spec.exceptions.iter().flat_map(|exception| &exception.checks).any(|check| check == id);
        for (check, fill) in &mut fills {
            fill.when.extend(check.filter(|id| excepted(*id)).map(Condition::NoException));
        }
        let found = Self {
            profile: profile.to_owned(),
            namespaces: bundle::namespace_selector(spec),
            engine: settings.mutation.engine,
            failure_policy: settings.mutation.failure_policy,
            fills,
            redirect,
            exemptions: spec.exemptions.clone(),
            parameters: declared.clone(),
            parameterized,
        };
        let changes = found.engine != Engine::Off && (!found.fills.is_empty() || found.redirect.is_some());
        (changes.then_some(found), cx.finish())
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

    /// The fields that are filled in a new ephemeral container: those of containers, and what it does not inherit, for
    /// nothing else of its pod can change.
    pub fn of_ephemeral(&self) -> Vec<(Option<&'static str>, Fill)> {
        let mut fills: Vec<_> = self.fills.iter().filter(|(_, fill)| fill.of != Subject::Pod).cloned().collect();
        for (_, fill) in fills.iter_mut().filter(|(_, fill)| fill.of == Subject::PodOrContainer) {
            fill.when.push(Condition::PodUnset(fill.path));
        }
        fills
    }
}
