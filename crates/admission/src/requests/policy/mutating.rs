//! A compiled `MutatingAdmissionPolicy` (`compilePolicy` in apiserver `pkg/admission/plugin/policy/mutating`), and the
//! policies in force.

use std::{
    collections::{BTreeMap, btree_map},
    sync::{Arc, OnceLock},
};

use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingAdmissionPolicyBindingSpec,
    MutatingAdmissionPolicySpec,
};
use palisade_cel::{
    Minor, Mode, ResultType,
    schema::{Kind, Schemas},
};
use serde_json::Value as Json;

use crate::requests::expression::{Compiler, Expression, Variable};

/// Policies and bindings in force, and the schemas that patches are merged by.
#[derive(Clone, Debug)]
pub(crate) struct Mutations {
    minor: Minor,
    policies: BTreeMap<String, Arc<Policy>>,
    /// By the name of their policy and their own.
    bindings: BTreeMap<String, BTreeMap<String, Binding>>,
    definitions: Vec<Json>,
    schemas: OnceLock<Schemas>,
}

/// A `MutatingAdmissionPolicy`.
#[derive(Debug)]
pub(crate) struct Policy {
    pub name: String,
    pub spec: MutatingAdmissionPolicySpec,
    pub variables: Vec<Variable>,
    pub match_conditions: Vec<Expression>,
    pub mutations: Vec<Mutation>,
}

/// A mutation of an object.
#[derive(Debug)]
pub(crate) struct Mutation {
    pub kind: PatchKind,
    pub expression: Expression,
}

/// The form of a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    ApplyConfiguration,
    JsonPatch,
}

/// A `MutatingAdmissionPolicyBinding`.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub name: String,
    pub spec: MutatingAdmissionPolicyBindingSpec,
}

impl Mutations {
    /// None at all.
    pub fn new(minor: Minor) -> Self {
        let (policies, bindings, definitions) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self { minor, policies, bindings, definitions, schemas: OnceLock::new() }
    }

    /// Adds a policy; if it `watches`, its expressions remember what their parts came to.
    pub fn add_policy(&mut self, policy: MutatingAdmissionPolicy, watches: bool) {
        self.replace(Policy::compile(policy, self.minor, watches));
    }

    pub fn replace(&mut self, policy: Policy) {
        self.policies.insert(policy.name.clone(), Arc::new(policy));
    }

    /// All policies, by name.
    pub fn all(&self) -> impl Iterator<Item = &Policy> {
        self.policies.values().map(|policy| &**policy)
    }

    pub fn add_binding(&mut self, binding: MutatingAdmissionPolicyBinding) {
        let name = binding.metadata.name.unwrap_or_default();
        for bindings in self.bindings.values_mut() {
            bindings.remove(&name);
        }
        let spec = binding.spec.unwrap_or_default();
        let policy = spec.policy_name.clone().unwrap_or_default();
        self.bindings.entry(policy).or_default().insert(name.clone(), Binding { name, spec });
    }

    pub fn add_crd(&mut self, definition: &Json) {
        self.definitions.retain(|one| one["metadata"]["name"] != definition["metadata"]["name"]);
        self.definitions.push(definition.clone());
        self.schemas = OnceLock::new();
    }

    /// Whether a kind is one of a definition.
    pub(crate) fn is_custom(&self, kind: &Kind) -> bool {
        let of = |one: &Json| one["spec"]["group"] == *kind.group && one["spec"]["names"]["kind"] == *kind.kind;
        self.definitions.iter().any(of)
    }

    /// The policies that have bindings. The API server's order is random each time that a policy or binding changes;
    /// here it is that of their names.
    pub fn policies(&self) -> impl Iterator<Item = (&Policy, btree_map::Values<'_, String, Binding>)> {
        self.policies.values().filter_map(|policy| Some((&**policy, self.bindings.get(&policy.name)?.values())))
    }

    /// Schemas of the built-in kinds and of those of definitions.
    pub(crate) fn schemas(&self) -> &Schemas {
        self.schemas.get_or_init(|| {
            let mut schemas = Schemas::builtin(self.minor).unwrap_or_default();
            self.definitions.iter().for_each(|definition| schemas.add_crd(definition));
            schemas
        })
    }
}

impl Policy {
    /// Compiles a policy; if it `watches`, its expressions remember what their parts came to.
    pub fn compile(policy: MutatingAdmissionPolicy, minor: Minor, watches: bool) -> Self {
        let spec = policy.spec.unwrap_or_default();
        let mut compiler = Compiler::new(minor, Mode::Stored, spec.param_kind.is_some(), watches);
        for variable in spec.variables.iter().flatten() {
            compiler.variable(&variable.name, &variable.expression);
        }
        let mut match_conditions = Vec::new();
        for (index, condition) in spec.match_conditions.iter().flatten().enumerate() {
            let path = format!("matchConditions[{index}].expression");
            match_conditions.push(compiler.expression(path, &condition.expression, ResultType::Bool));
        }
        let mut mutations = Vec::new();
        for (index, mutation) in spec.mutations.iter().flatten().enumerate() {
            let apply = mutation.apply_configuration.as_ref().and_then(|apply| apply.expression.as_deref());
            let patch = mutation.json_patch.as_ref().and_then(|patch| patch.expression.as_deref());
            let (kind, name, source, result) = match mutation.patch_type.as_str() {
                "JSONPatch" => (PatchKind::JsonPatch, "jsonPatch", patch, ResultType::JsonPatch),
                _ => (PatchKind::ApplyConfiguration, "applyConfiguration", apply, ResultType::ApplyConfiguration),
            };
            let path = format!("mutations[{index}].{name}.expression");
            let expression = compiler.mutation(path, source.unwrap_or_default(), result);
            mutations.push(Mutation { kind, expression });
        }
        Self {
            name: policy.metadata.name.unwrap_or_default(),
            variables: compiler.into_variables(),
            match_conditions,
            mutations,
            spec,
        }
    }

    /// All expressions of the policy.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let variables = self.variables.iter().map(|variable| &variable.expression);
        variables.chain(&self.match_conditions).chain(self.mutations.iter().map(|mutation| &mutation.expression))
    }

    /// Whether errors are followed by a denial.
    pub fn fails_closed(&self) -> bool {
        self.spec.failure_policy.as_deref() != Some("Ignore")
    }

    /// Whether it runs again if something changed the object after it.
    pub fn is_reinvoked(&self) -> bool {
        self.spec.reinvocation_policy.as_deref() == Some("IfNeeded")
    }
}
