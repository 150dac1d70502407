//! What a profile changes in pods: who does it, and what, as data that the webhook and the API server's own engine
//! both follow.

use std::collections::BTreeMap;

use palisade_api::{Diagnostic, Exemptions, ParameterName, ParameterType, Settings, ToolSecurityProfileSpec};
use palisade_checks::{
    Condition, Fill, Lowering, Subject,
    catalogue::{
        self,
        mutation::{self, Engine, FailurePolicy},
        redirect::Redirect,
    },
};

/// What a profile changes in pods.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutation {
    /// The profile's name.
    pub profile: String,
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
