//! A ValidatingAdmissionPolicy, ready to judge requests as
//! `k8s.io/apiserver/pkg/admission/plugin/policy/validating` does.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, Validation};
use palisade_api::Diagnostic;
use palisade_cel::{Environment, Expression, Value};
use serde_json::{Value as Json, json};

/// The longest message that the API server shows, in bytes (`pkg/apis/cel`,
/// `MaxEvaluatedMessageExpressionSizeBytes`).
pub(crate) const MAX_MESSAGE: usize = 5 * 1024;

/// The variables that the API server declares for every policy.
const DECLARED: [&str; 5] = ["object", "oldObject", "request", "namespaceObject", "authorizer"];

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

/// A policy with all expressions parsed.
#[derive(Debug)]
pub struct Policy {
    variables: Vec<(String, Expression)>,
    validations: Vec<Parsed>,
}

#[derive(Debug)]
struct Parsed {
    source: Validation,
    expression: Expression,
    message: Option<Expression>,
}

impl Policy {
    /// Parses a policy and checks the names in it.
    ///
    /// # Errors
    /// All expressions that do not parse, or use a name or function that is not there.
    pub fn new(policy: &ValidatingAdmissionPolicy) -> Result<Self, Vec<Diagnostic>> {
        let mut diagnostics = Vec::new();
        let spec = policy.spec.clone().unwrap_or_default();
        let has_params = spec.param_kind.is_some();
        let mut known: Vec<String> = Vec::new();
        let mut parse = |at: String, source: &str, known: &[String]| match parse(&at, source, has_params, known) {
            Ok(expression) => Some(expression),
            Err(found) => {
                diagnostics.extend(found);
                None
            }
        };
        let mut variables = Vec::new();
        for (index, variable) in spec.variables.into_iter().flatten().enumerate() {
            let at = format!("policy.spec.variables[{index}].expression");
            let expression = parse(at, &variable.expression, &known);
            known.push(variable.name.clone());
            variables.extend(expression.map(|expression| (variable.name, expression)));
        }
        let mut validations = Vec::new();
        for (index, source) in spec.validations.into_iter().flatten().enumerate() {
            let at = format!("policy.spec.validations[{index}]");
            let expression = parse(format!("{at}.expression"), &source.expression, &known);
            let message = source
                .message_expression
                .as_ref()
                .map(|message| parse(format!("{at}.messageExpression"), message, &known));
            if let (Some(expression), Some(message)) = (expression, message.map_or(Some(None), |m| m.map(Some))) {
                validations.push(Parsed { source, expression, message });
            }
        }
        if diagnostics.is_empty() { Ok(Self { variables, validations }) } else { Err(diagnostics) }
    }

    /// What the policy says of a request.
    ///
    /// # Errors
    /// An expression that fails, or has a value of the wrong type: the API server would follow failurePolicy.
    pub fn evaluate(&self, request: &Request<'_>) -> Result<Decision, Diagnostic> {
        let mut environment = Environment::new();
        environment.set("object", request.object.into());
        environment.set("oldObject", request.old_object.into());
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
        environment.set("request", (&attributes).into());
        if let Some(params) = request.params {
            environment.set("params", params.into());
        }
        let mut values = BTreeMap::new();
        let mut first_failure = None;
        environment.set("variables", Value::object(&values));
        for (index, (name, expression)) in self.variables.iter().enumerate() {
            match environment.evaluate(expression) {
                Ok(value) => {
                    values.insert(name.clone(), value);
                    environment.set("variables", Value::object(&values));
                }
                // The API server evaluates a variable when it is used, so one that fails and is not used does no
                // harm; one that is used makes its user fail, for it is not there.
                Err(error) => {
                    first_failure
                        .get_or_insert_with(|| failed(&format!("variables[{index}] ({name})"), &error.to_string()));
                }
            }
        }
        self.judge(&environment).map_err(|diagnostic| first_failure.unwrap_or(diagnostic))
    }

    fn judge(&self, environment: &Environment) -> Result<Decision, Diagnostic> {
        for (index, validation) in self.validations.iter().enumerate() {
            let at = format!("validations[{index}]");
            let value =
                environment.evaluate(&validation.expression).map_err(|error| failed(&at, &error.to_string()))?;
            let passes = value
                .as_bool()
                .ok_or_else(|| failed(&at, &format!("must evaluate to bool but is {}", value.type_name())))?;
            let message = message(environment, &at, validation)?;
            if !passes {
                let reason = validation.source.reason.clone().unwrap_or_else(|| "Invalid".to_owned());
                return Ok(Decision::Deny { message, reason });
            }
        }
        Ok(Decision::Admit)
    }
}

/// The message, which the API server evaluates for passing requests too. One that it would drop is an error.
fn message(environment: &Environment, at: &str, validation: &Parsed) -> Result<String, Diagnostic> {
    let at = format!("{at}.messageExpression");
    let Some(expression) = &validation.message else {
        return Ok(validation
            .source
            .message
            .clone()
            .unwrap_or_else(|| format!("failed expression: {}", validation.source.expression.trim())));
    };
    let value = environment.evaluate(expression).map_err(|error| failed(&at, &error.to_string()))?;
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

/// Parses an expression and checks its names.
fn parse(at: &str, source: &str, has_params: bool, variables: &[String]) -> Result<Expression, Vec<Diagnostic>> {
    let expression = Expression::parse(source)
        .map_err(|error| vec![Diagnostic::new(format!("{at}:{}", error.position), error.message)])?;
    let mut diagnostics = Vec::new();
    let mut report = |id: u64, message: String| {
        let place = expression.position(id).map_or_else(|| at.to_owned(), |position| format!("{at}:{position}"));
        diagnostics.push(Diagnostic::new(place, message));
    };
    let references = expression.references();
    for (name, id) in references.variables {
        let declared = DECLARED.contains(&name)
            || name == "variables"
            || (name == "params" && has_params)
            // The accumulator of a macro, which cel-go names so.
            || name.starts_with('@');
        if !declared {
            report(id, format!("undeclared reference to '{name}'"));
        }
    }
    for (variable, field, id) in references.fields {
        if variable == "variables" && !variables.iter().any(|known| known == field) {
            report(id, format!("undefined field '{field}': no variable before this one has that name"));
        }
    }
    for (name, id) in references.functions {
        if !Environment::has_function(name) {
            report(id, format!("function '{name}' is not one that the offline check knows: no verdict"));
        }
    }
    if diagnostics.is_empty() { Ok(expression) } else { Err(diagnostics) }
}
