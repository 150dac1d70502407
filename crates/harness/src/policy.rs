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
pub(crate) const OLDEST: u8 = 33;

/// What is done to an object.
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
    /// The kind of the object.
    pub kind: &'a str,
    /// `ephemeralcontainers` or the like; empty for the object itself.
    pub subresource: &'a str,
    /// Who asks.
    pub user: &'a str,
    /// The groups of who asks.
    pub groups: &'a [&'a str],
    /// The object as it would be.
    pub object: &'a Json,
    /// The object as it is; null on creation.
    pub old_object: &'a Json,
    /// The parameters of the namespace, if the policy has some.
    pub params: Option<&'a Json>,
}

impl<'a> Request<'a> {
    /// Somebody without special rights creates `object` in a namespace `tenant`, where there are no parameters.
    pub fn create(kind: &'a str, object: &'a Json) -> Self {
        Self {
            namespace: "tenant",
            operation: Operation::Create,
            kind,
            subresource: "",
            user: "tenant",
            groups: &["system:authenticated"],
            object,
            old_object: &Json::Null,
            params: None,
        }
    }
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

/// The most that judging a request may cost, all expressions of a policy together (apiserver
/// `pkg/apis/cel/config.go`, `RuntimeCELCostBudget`).
pub const BUDGET: u64 = 10_000_000;

/// What a policy says of a request, and what it cost to find that out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What it says.
    pub decision: Decision,
    /// In the API server's units, of which a policy has [`BUDGET`] for one request.
    pub cost: u64,
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
        self.judge(request).map(|judgement| judgement.decision)
    }

    /// What the policy says of a request, and what that costs.
    ///
    /// # Errors
    /// As [`Self::evaluate`]; an expression that costs more than one may is an error, and so is a policy that costs
    /// more than its budget.
    pub fn judge(&self, request: &Request<'_>) -> Result<Judgement, Diagnostic> {
        let mut attributes = json!({
            "namespace": request.namespace,
            "kind": {"kind": request.kind},
            "userInfo": {"username": request.user, "groups": request.groups},
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
        let mut meter = Meter { activation: &activation, cost: 0 };
        let decision = self.decide(&mut meter)?;
        if meter.cost > BUDGET {
            let message = format!("validations and messages cost {} of the budget of {BUDGET}", meter.cost);
            return Err(Diagnostic::new("policy.spec", message));
        }
        Ok(Judgement { decision, cost: meter.cost })
    }

    fn decide<'a>(&'a self, meter: &mut Meter<'a, '_>) -> Result<Decision, Diagnostic> {
        for (index, validation) in self.validations.iter().enumerate() {
            let at = format!("validations[{index}]");
            let value = meter.run(&at, &validation.program)?;
            let passes = value
                .as_bool()
                .ok_or_else(|| failed(&at, &format!("must evaluate to bool but is {}", value.type_name())))?;
            let message = message(meter, &at, validation)?;
            if !passes {
                let reason = validation.source.reason.clone().unwrap_or_else(|| "Invalid".to_owned());
                return Ok(Decision::Deny { message, reason });
            }
        }
        Ok(Decision::Admit)
    }
}

/// Evaluates, and adds up what it costs.
struct Meter<'a, 'b> {
    activation: &'b Activation<'a>,
    cost: u64,
}

impl<'a> Meter<'a, '_> {
    fn run(&mut self, at: &str, program: &'a Program) -> Result<Value<'a>, Diagnostic> {
        let evaluation = program.evaluate(self.activation, PER_CALL_LIMIT);
        self.cost = self.cost.saturating_add(evaluation.cost).saturating_add(self.activation.take_variables_cost());
        evaluation.result.map_err(|error| failed(at, &error.to_string()))
    }
}

/// The message, which the API server evaluates for passing requests too. One that it would drop is an error.
fn message<'a>(meter: &mut Meter<'a, '_>, at: &str, validation: &'a Compiled) -> Result<String, Diagnostic> {
    let at = format!("{at}.messageExpression");
    let Some(program) = &validation.message else {
        return Ok(validation
            .source
            .message
            .clone()
            .unwrap_or_else(|| format!("failed expression: {}", validation.source.expression.trim())));
    };
    let value = meter.run(&at, program)?;
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

/// A mistake in an expression, with its place.
pub(crate) fn diagnostic(at: &str, issue: &Issue) -> Diagnostic {
    let at = if issue.position == Position::NONE { at.to_owned() } else { format!("{at}:{}", issue.position) };
    let diagnostic = Diagnostic::new(at, issue.message.clone());
    match &issue.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    }
}
