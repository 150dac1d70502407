//! A ValidatingAdmissionPolicy, ready to judge requests as
//! `k8s.io/apiserver/pkg/admission/plugin/policy/validating` does.

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, Validation};
use palisade_api::Diagnostic;
use palisade_cel::{
    Admission, Environment, Issue, Mode, Position, ResultType,
    eval::{Activation, PER_CALL_LIMIT, Program},
    types::Type,
    value::Value,
};
use serde_json::{Value as Json, json};

/// The longest message that the API server shows, in bytes (`pkg/apis/cel`,
/// `MaxEvaluatedMessageExpressionSizeBytes`).
pub(crate) const MAX_MESSAGE: usize = 5 * 1024;

/// The oldest minor of Kubernetes that is supported: what it accepts, the later ones accept.
const OLDEST: u8 = 33;

/// What is done to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change of an object.
    Update,
}

/// A request to judge.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// In which namespace.
    pub namespace: &'a str,
    /// What is done.
    pub operation: Operation,
    /// `ephemeralcontainers` or the like; empty for the pod itself.
    pub subresource: &'a str,
    /// The object as it would be.
    pub object: &'a Json,
    /// The object as it is; null on creation.
    pub old_object: &'a Json,
    /// The parameters of the namespace, if the policy has some.
    pub params: Option<&'a Json>,
}

/// What a policy says of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing is violated.
    Admit,
    /// The first validation that failed.
    Deny {
        /// What the user reads.
        message: String,
        /// The reason that stands in the API server's answer.
        reason: String,
    },
}

/// A policy with all expressions compiled.
#[derive(Debug)]
pub struct Policy {
    variables: Vec<(String, Program)>,
    validations: Vec<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    source: Validation,
    program: Program,
    message: Option<Program>,
}

impl Policy {
    /// Compiles a policy: syntax, names, types, results and constants of each expression.
    ///
    /// # Errors
    /// All mistakes for which the API server would refuse the policy, and what gets no verdict.
    pub fn new(policy: &ValidatingAdmissionPolicy) -> Result<Self, Vec<Diagnostic>> {
        let spec = policy.spec.clone().unwrap_or_default();
        let params = spec.param_kind.is_some().then_some(Type::Dyn);
        let environment = |authorizer| {
            let admission = Admission { params: params.clone(), authorizer, ..Admission::default() };
            Environment::kubernetes(OLDEST, Mode::New).with_admission(&admission)
        };
        // Messages do not see the authorizer.
        let (mut environment, mut of_messages) = (environment(true), environment(false));
        let mut diagnostics = Vec::new();
        let mut compile = |at: String, environment: &Environment, source: &str, result| {
            let program = environment.compile(source, result);
            program.map_err(|issues| diagnostics.extend(issues.iter().map(|issue| diagnostic(&at, issue)))).ok()
        };
        let mut variables = Vec::new();
        for (index, variable) in spec.variables.into_iter().flatten().enumerate() {
            let at = format!("policy.spec.variables[{index}].expression");
            let program = compile(at, &environment, &variable.expression, ResultType::Any);
            let output = program.as_ref().map(Program::output_type);
            environment = environment.compose(&variable.name, output);
            of_messages = of_messages.compose(&variable.name, output);
            variables.extend(program.map(|program| (variable.name, program)));
        }
        let mut validations = Vec::new();
        for (index, source) in spec.validations.into_iter().flatten().enumerate() {
            let at = format!("policy.spec.validations[{index}]");
            let program = compile(format!("{at}.expression"), &environment, &source.expression, ResultType::Bool);
            let message = source
                .message_expression
                .as_ref()
                .map(|message| compile(format!("{at}.messageExpression"), &of_messages, message, ResultType::String));
            if let (Some(program), Some(message)) = (program, message.map_or(Some(None), |m| m.map(Some))) {
                validations.push(Compiled { source, program, message });
            }
        }
        if diagnostics.is_empty() { Ok(Self { variables, validations }) } else { Err(diagnostics) }
    }

    /// What the policy says of a request.
    ///
    /// # Errors
    /// An expression that fails, or has a value of the wrong type: the API server would follow failurePolicy.
    pub fn evaluate(&self, request: &Request<'_>) -> Result<Decision, Diagnostic> {
        let mut attributes = json!({
            "namespace": request.namespace,
            "operation": match request.operation {
                Operation::Create => "CREATE",
                Operation::Update => "UPDATE",
            },
        });
        if !request.subresource.is_empty() {
            attributes["subResource"] = request.subresource.into();
        }
        let mut activation = Activation::new()
            .bind("object", Value::from_json(request.object))
            .bind("oldObject", Value::from_json(request.old_object))
            .bind("request", Value::from_json(&attributes))
            .with_variables();
        if let Some(params) = request.params {
            activation = activation.bind("params", Value::from_json(params));
        }
        // Like the API server this evaluates a variable when it is used: one that fails and is not used does no harm.
        for (name, program) in &self.variables {
            activation = activation.variable(name.as_str(), program, PER_CALL_LIMIT);
        }
        self.judge(&activation)
    }

    fn judge<'a>(&'a self, activation: &Activation<'a>) -> Result<Decision, Diagnostic> {
        for (index, validation) in self.validations.iter().enumerate() {
            let at = format!("validations[{index}]");
            let value = run(&at, &validation.program, activation)?;
            let passes = value
                .as_bool()
                .ok_or_else(|| failed(&at, &format!("must evaluate to bool but is {}", value.type_name())))?;
            let message = message(activation, &at, validation)?;
            if !passes {
                let reason = validation.source.reason.clone().unwrap_or_else(|| "Invalid".to_owned());
                return Ok(Decision::Deny { message, reason });
            }
        }
        Ok(Decision::Admit)
    }
}

/// The message, which the API server evaluates for passing requests too. One that it would drop is an error.
fn message<'a>(activation: &Activation<'a>, at: &str, validation: &'a Compiled) -> Result<String, Diagnostic> {
    let at = format!("{at}.messageExpression");
    let Some(program) = &validation.message else {
        return Ok(validation
            .source
            .message
            .clone()
            .unwrap_or_else(|| format!("failed expression: {}", validation.source.expression.trim())));
    };
    let value = run(&at, program, activation)?;
    let text = value
        .as_str()
        .ok_or_else(|| failed(&at, &format!("must evaluate to string but is {}", value.type_name())))?
        .trim();
    if text.contains('\n') || text.len() > MAX_MESSAGE || text.is_empty() {
        return Err(failed(&at, &format!("the API server would drop this message: {text:?}")));
    }
    Ok(text.to_owned())
}

fn failed(at: &str, error: &str) -> Diagnostic {
    Diagnostic::new(format!("policy.spec.{at}"), format!("evaluation failed: {error}"))
}

fn run<'a>(at: &str, program: &'a Program, activation: &Activation<'a>) -> Result<Value<'a>, Diagnostic> {
    program.evaluate(activation, PER_CALL_LIMIT).result.map_err(|error| failed(at, &error.to_string()))
}

fn diagnostic(at: &str, issue: &Issue) -> Diagnostic {
    let at = if issue.position == Position::NONE { at.to_owned() } else { format!("{at}:{}", issue.position) };
    let diagnostic = Diagnostic::new(at, issue.message.clone());
    match &issue.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    }
}
