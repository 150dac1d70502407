//! A ValidatingAdmissionPolicy, compiled (`compilePolicy` in apiserver
//! `pkg/admission/plugin/policy/validating/plugin.go`).

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec,
};
use palisade_cel::{Minor, Mode, ResultType};

use crate::requests::expression::{Compiler, Expression, Variable};

/// A ValidatingAdmissionPolicy, compiled.
#[derive(Debug)]
pub(crate) struct Policy {
    pub name: String,
    pub spec: ValidatingAdmissionPolicySpec,
    pub variables: Vec<Variable>,
    pub match_conditions: Vec<Expression>,
    pub validations: Vec<Expression>,
    /// Of each validation.
    pub messages: Vec<Option<Expression>>,
    pub audit_annotations: Vec<Expression>,
}

/// A `ValidatingAdmissionPolicyBinding`.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub name: String,
    pub spec: ValidatingAdmissionPolicyBindingSpec,
}

impl Policy {
    /// Compiles a policy. Expressions that do not compile are kept with their errors.
    pub fn new(policy: ValidatingAdmissionPolicy, minor: Minor, mode: Mode) -> Self {
        Self::compile(policy, minor, mode, false)
    }

    /// Compiles a policy; if it `watches`, its expressions remember what their parts came to.
    pub fn compile(policy: ValidatingAdmissionPolicy, minor: Minor, mode: Mode, watches: bool) -> Self {
        let spec = policy.spec.unwrap_or_default();
        let mut compiler = Compiler::new(minor, mode, spec.param_kind.is_some(), watches);
        for variable in spec.variables.iter().flatten() {
            compiler.variable(&variable.name, &variable.expression);
        }
        let mut match_conditions = Vec::new();
        for (index, condition) in spec.match_conditions.iter().flatten().enumerate() {
            let path = format!("matchConditions[{index}].expression");
            match_conditions.push(compiler.expression(path, &condition.expression, ResultType::Bool));
        }
        let (mut validations, mut messages) = (Vec::new(), Vec::new());
        for (index, validation) in spec.validations.iter().flatten().enumerate() {
            let path = format!("validations[{index}].expression");
            validations.push(compiler.expression(path, &validation.expression, ResultType::Bool));
            let message = validation.message_expression.as_deref().filter(|message| !message.is_empty());
            let path = format!("validations[{index}].messageExpression");
            messages.push(message.map(|message| compiler.message(path, message)));
        }
        let mut audit_annotations = Vec::new();
        for (index, annotation) in spec.audit_annotations.iter().flatten().enumerate() {
            let path = format!("auditAnnotations[{index}].valueExpression");
            audit_annotations.push(compiler.expression(path, &annotation.value_expression, ResultType::StringOrNull));
        }
        Self {
            name: policy.metadata.name.unwrap_or_default(),
            variables: compiler.into_variables(),
            match_conditions,
            validations,
            messages,
            audit_annotations,
            spec,
        }
    }

    /// All expressions of the policy.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let variables = self.variables.iter().map(|variable| &variable.expression);
        variables
            .chain(&self.match_conditions)
            .chain(&self.validations)
            .chain(self.messages.iter().flatten())
            .chain(&self.audit_annotations)
    }

    /// Whether errors are followed by a denial.
    pub fn fails_closed(&self) -> bool {
        self.spec.failure_policy.as_deref() != Some("Ignore")
    }
}
