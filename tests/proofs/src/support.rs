//! Profiles and their policies.

use palisade_api::{ToolSecurityProfile, crd, names::Shape};
use palisade_cel::{
    Minor,
    schema::{Kind, Schemas},
};
use palisade_compiler::Compiled;
use palisade_kube_json::workload::WORKLOADS;
use palisade_prove::{
    Operation, Policy, Requests,
    universe::{self, Type},
};
use serde_json::{Value as Json, json};

/// A profile with these settings.
pub fn profile(spec: &Json) -> ToolSecurityProfile {
    let mut whole = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "x"},
        "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged",
            "enforcement": {"pods": "Deny", "workloads": "Deny"}},
    });
    palisade_kube_json::pod::merge(&mut whole["spec"], spec);
    serde_json::from_value(whole).unwrap()
}

/// The example profiles.
pub fn examples() -> Vec<(&'static str, ToolSecurityProfile)> {
    let read = |text: &str| serde_saphyr::from_str(text).unwrap();
    vec![
        ("restricted", profile(&json!({"baseline": "Restricted"}))),
        ("baseline", profile(&json!({"baseline": "Baseline"}))),
        ("toolforge", read(include_str!("../../../examples/toolforge/profile.yaml"))),
        ("custom-checks", read(include_str!("../../../examples/custom-checks/profile.yaml"))),
        ("gitops", read(include_str!("../../../examples/gitops/profiles/tools.yaml"))),
    ]
}

/// A profile, compiled and not checked.
pub fn compile(profile: &ToolSecurityProfile) -> Compiled {
    palisade_compiler::compile(profile).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// The policy of a shape.
pub fn policy(compiled: &Compiled, shape: Shape) -> Option<Policy> {
    let spec = compiled.bundle.pair(shape)?.policy.spec.as_ref()?;
    let variables = spec.variables.iter().flatten().map(|one| (&*one.name, &*one.expression));
    let conditions = spec.match_conditions.iter().flatten().map(|one| &*one.expression);
    let validations = spec.validations.iter().flatten().map(|one| &*one.expression);
    Some(Policy::parse(variables, conditions, validations).unwrap())
}

/// The types of objects and parameters.
pub struct Types {
    schemas: Schemas,
    /// That of parameters.
    pub params: Type,
}

impl Types {
    /// Those of a minor.
    pub fn of(minor: Minor) -> Self {
        let mut schemas = Schemas::builtin(minor).unwrap();
        schemas.add_crd(&serde_json::to_value(crd::params()).unwrap());
        let params = schemas.kinds().find(|kind| kind.kind == "ToolSecurityParams").cloned().unwrap();
        let params = universe::of_kind(&schemas, &params).unwrap();
        Self { schemas, params }
    }

    /// The type of a kind.
    pub fn kind(&self, kind: &str) -> Type {
        universe::of_kind(&self.schemas, &Kind::parse(kind).unwrap()).unwrap()
    }
}

/// The kinds of a shape's requests: `apps/v1/Deployment` and `Deployment`.
pub fn kinds(shape: Shape) -> Vec<(String, &'static str)> {
    match shape {
        Shape::Pods => vec![("v1/Pod".to_owned(), "Pod")],
        Shape::Workloads => {
            WORKLOADS.iter().map(|one| (format!("{}/{}", one.api_version, one.kind), one.kind)).collect()
        }
        Shape::Objects => Vec::new(),
    }
}

/// The requests of a kind.
pub fn requests<'a>(object: &'a Type, kind: &'a str, operation: Operation, params: &'a Type) -> Requests<'a> {
    Requests { object, kind, operation, params: Some(params) }
}
