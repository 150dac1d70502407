//! Stage resolve: the parameters that a namespace must have, and the action to get there. Pure.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::jiff::Timestamp;
use palisade_api::{ParameterType, Stage, ToolSecurityParams, ToolSecurityParamsSpec, ToolSecurityProfile, names};
use palisade_compiler::{Compiled, Namespace, selects};

use super::retained::RetainedParams;
use crate::watch::{
    exception_store::ObservedException,
    json_box::JsonBox,
    store::{ObservedNamespace, ObservedParams},
};

#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The desired parameters.
    pub params: JsonBox<ToolSecurityParamsSpec>,
    /// The parameters in the cluster.
    pub observed: Option<Arc<ObservedParams>>,
}

impl Write {
    /// The problem that the namespace gets now, by the desired parameters, and did not have before.
    pub fn new_problem<'a>(&self, desired: &'a ToolSecurityParamsSpec) -> Option<&'a str> {
        let known = || self.observed.as_ref()?.spec.as_ref().map(|spec| spec.get().problem);
        let problem = desired.problem.as_str();
        (!problem.is_empty() && known().as_deref() != Some(problem)).then_some(problem)
    }
}

/// The plan for one namespace that the profile selects, or that still has its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct NamespacePlan {
    /// The stage at which it is; `None` if the profile does not select it.
    pub stage: Option<Stage>,
    /// Why every pod of the namespace violates the profile, if it does.
    pub problem: Option<String>,
    /// True if the parameters have values that only the policy before this one reads.
    pub carried: bool,
    /// The work to do.
    pub action: ParamsAction,
}

/// The work to do in a namespace.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamsAction {
    /// Nothing: the parameters are right, or none are needed.
    Nothing(Option<Arc<ObservedParams>>),
    Write(Arc<Write>),
    /// Remove parameters that should not be there.
    Remove,
}

impl NamespacePlan {
    /// The plan for parameters that remain in a deleted namespace. Kubernetes empties a namespace of the kinds that its
    /// API server lists, and an API server that has just started lists this kind with a delay. A new namespace of the
    /// same name would be evaluated with them until it has its own.
    pub fn without_namespace() -> Self {
        Self { stage: None, problem: None, carried: false, action: ParamsAction::Remove }
    }
}

/// How to compute the parameters of namespaces.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    pub profile: &'a ToolSecurityProfile,
    pub compiled: &'a Compiled,
    /// The parameters to keep for policies in the cluster.
    pub keep: &'a RetainedParams,
    /// The time, because exceptions end.
    pub now: Timestamp,
}

impl Rules<'_> {
    /// The plan for a namespace; `None` if the profile has nothing to do there.
    pub fn plan(
        self,
        namespace: &ObservedNamespace,
        observed: Option<&Arc<ObservedParams>>,
        exceptions: &[Arc<ObservedException>],
    ) -> Option<NamespacePlan> {
        // Touch nothing in a terminating namespace: its pods are validated until they are gone.
        if namespace.terminating {
            return None;
        }
        let namespace = &namespace.namespace.get();
        let selected = selects(&self.profile.spec, namespace);
        let stage = selected.then(|| self.compiled.stages_in(namespace).pods);
        let desired = if namespace.name == names::PROBE_NAMESPACE {
            probe_params(self.compiled, namespace, self.now)
        } else {
            let requests = exceptions.iter().map(|one| &one.request);
            selected.then(|| self.compiled.params(namespace, requests, self.now)).flatten()
        };
        let nothing = NamespacePlan { stage, problem: None, carried: false, action: ParamsAction::Nothing(None) };
        match (desired, observed) {
            (Some(desired), _) => Some(self.compare(desired, observed, stage)),
            (None, Some(_)) => Some(NamespacePlan { action: ParamsAction::Remove, ..nothing }),
            (None, None) => selected.then_some(nothing),
        }
    }

    fn compare(
        self,
        mut desired: ToolSecurityParams,
        observed: Option<&Arc<ObservedParams>>,
        stage: Option<Stage>,
    ) -> NamespacePlan {
        let (mut problem, mut carried) = (None, false);
        if !desired.spec.problem.is_empty() {
            // Every policy denies because of the problem, and reads nothing else.
            problem = Some(desired.spec.problem.clone());
        } else if let Some(spec) = observed.and_then(|observed| observed.spec.as_ref()) {
            carried = carry(&mut desired.spec, &spec.get(), self.keep);
        }
        let desired = JsonBox::new(&desired.spec);
        let action = match observed {
            Some(observed) if is_as_desired(&desired, observed) => ParamsAction::Nothing(Some(Arc::clone(observed))),
            _ => ParamsAction::Write(Arc::new(Write { params: desired, observed: observed.map(Arc::clone) })),
        };
        NamespacePlan { stage, problem, carried, action }
    }
}

impl NamespacePlan {
    /// True if pods are validated with the desired parameters.
    pub fn is_ready(&self) -> bool {
        // Parameters that should not be there do no harm.
        self.stage.is_some() && self.problem.is_none() && !matches!(self.action, ParamsAction::Write(_))
    }
}

/// True if the parameters are as desired, and belong to the controller alone.
pub fn is_as_desired(desired: &JsonBox<ToolSecurityParamsSpec>, observed: &ObservedParams) -> bool {
    observed.spec.as_ref() == Some(desired) && !observed.held
}

fn probe_params(compiled: &Compiled, namespace: &Namespace, now: Timestamp) -> Option<ToolSecurityParams> {
    let mut params = compiled.params(namespace, [], now)?;
    params.spec = compiled.probes.params.clone()?;
    Some(params)
}

/// Adds values to keep. Returns whether there were any.
fn carry(desired: &mut ToolSecurityParamsSpec, observed: &ToolSecurityParamsSpec, keep: &RetainedParams) -> bool {
    // Destructured, so that a new type of parameter cannot be forgotten. Exceptions are read where they are there.
    let ToolSecurityParamsSpec {
        problem: _,
        integers,
        strings,
        booleans,
        string_lists,
        exceptions: _,
        workload_exceptions: _,
        container_exceptions: _,
    } = observed;
    let carried = [
        carry_map(&mut desired.integers, integers, ParameterType::Integer, keep),
        carry_map(&mut desired.strings, strings, ParameterType::String, keep),
        carry_map(&mut desired.booleans, booleans, ParameterType::Boolean, keep),
        carry_map(&mut desired.string_lists, string_lists, ParameterType::StringList, keep),
    ];
    carried.contains(&true)
}

fn carry_map<V: Clone>(
    desired: &mut BTreeMap<String, V>,
    observed: &BTreeMap<String, V>,
    type_: ParameterType,
    keep: &RetainedParams,
) -> bool {
    let mut carried = false;
    for (name, value) in observed {
        if !desired.contains_key(name) && keep.has(name, type_) {
            desired.insert(name.clone(), value.clone());
            carried = true;
        }
    }
    carried
}
