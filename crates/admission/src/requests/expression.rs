//! Expressions of a policy: compiled, and evaluated with budgets (apiserver `pkg/admission/plugin/cel`).

use std::sync::Arc;

use palisade_cel::{
    Admission, Environment, Issue, IssueKind, Minor, Mode, ResultType,
    check::Reference,
    eval::{Activation, PER_CALL_LIMIT, Program, Watch},
    types::Type,
    value::Value,
};
use serde_json::Value as Json;

use super::{Evaluation, PolicyKind, refusal::MatchError};

/// An expression of a policy, compiled.
#[derive(Debug)]
pub(crate) struct Expression {
    /// Its path: `validations[0].expression`.
    pub path: String,
    /// Its text.
    pub source: String,
    program: Result<Program, Vec<Issue>>,
    reads_namespace: bool,
}

/// A variable of a policy.
#[derive(Debug)]
pub(crate) struct Variable {
    pub name: String,
    pub expression: Expression,
}

/// Compiles the expressions of one policy.
pub(crate) struct Compiler {
    environment: Environment,
    of_messages: Environment,
    variables: Vec<Variable>,
}

impl Compiler {
    /// For a policy that has parameters, or has none.
    pub fn new(minor: Minor, mode: Mode, has_params: bool, watches: bool) -> Self {
        let environment = |authorizer| {
            let params = has_params.then_some(Type::Dyn);
            let admission = Admission { params, authorizer, ..Admission::default() };
            let environment = Environment::kubernetes(minor, mode).with_admission(&admission);
            if watches { environment.watching() } else { environment }
        };
        Self { environment: environment(true), of_messages: environment(false), variables: vec![] }
    }

    /// Compiles the next variable. Expressions that are compiled later can read it.
    pub fn variable(&mut self, name: &str, source: &str) {
        let path = format!("variables[{}].expression", self.variables.len());
        let expression = self.expression(path, source, ResultType::Any);
        let output = expression.program.as_ref().ok().map(Program::output_type);
        for environment in [&mut self.environment, &mut self.of_messages] {
            *environment = environment.clone().compose(name, output);
        }
        self.variables.push(Variable { name: name.to_owned(), expression });
    }

    /// Compiles an expression.
    pub fn expression(&self, path: String, source: &str, result: ResultType) -> Expression {
        compile(&self.environment, path, source, result)
    }

    /// Compiles a message, which does not see the authorizer.
    pub fn message(&self, path: String, source: &str) -> Expression {
        compile(&self.of_messages, path, source, ResultType::String)
    }

    /// Compiles a mutation, which can construct patches.
    pub fn mutation(&self, path: String, source: &str, result: ResultType) -> Expression {
        compile(&self.environment.clone().with_mutation(), path, source, result)
    }

    /// The variables.
    pub fn into_variables(self) -> Vec<Variable> {
        self.variables
    }
}

fn compile(environment: &Environment, path: String, source: &str, result: ResultType) -> Expression {
    let mut reads_namespace = false;
    let program = environment.check(source).and_then(|checked| {
        if let Some(issue) = result.refuses(checked.output_type()) {
            return Err(vec![issue]);
        }
        let read =
            |one: &Option<Reference>| matches!(one, Some(Reference::Variable(name)) if **name == *"namespaceObject");
        reads_namespace = checked.references.iter().any(read);
        Program::new(&checked, environment).map_err(|issue| vec![issue])
    });
    Expression { path, source: source.to_owned(), program, reads_namespace }
}

impl Expression {
    /// The recorded values of its parts; empty if they are not recorded.
    pub fn watches(&self) -> &[Arc<Watch>] {
        self.program.as_ref().map_or(&[], Program::watches)
    }

    /// Its errors.
    pub fn issues(&self) -> &[Issue] {
        self.program.as_ref().err().map_or(&[], Vec::as_slice)
    }

    /// Whether its value may depend on the namespace of the request.
    pub fn reads_namespace(&self) -> bool {
        self.reads_namespace
    }

    /// Why it has no verdict, if it has none.
    pub fn unsupported(&self) -> Option<MatchError> {
        let issue = self.issues().iter().find(|issue| issue.kind == IssueKind::Unsupported)?;
        Some(MatchError::NoVerdict(format!("{}: {issue}", self.path)))
    }

    /// The API server's text about an expression that it accepted once and does not any longer.
    fn refused(&self) -> String {
        let issues: Vec<_> = self.issues().iter().map(|issue| issue.display(&self.source).to_string()).collect();
        format!("compilation failed: {}", issues.join("\n"))
    }
}

/// The input of expressions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inputs<'a> {
    pub object: &'a Json,
    pub old_object: &'a Json,
    pub request: &'a Json,
    pub params: &'a Json,
    pub namespace: &'a Json,
    pub variables: &'a [Variable],
}

impl<'a> Inputs<'a> {
    /// An activation, whose variables are not evaluated yet. The API server makes a new one for match conditions,
    /// validations, messages and audit annotations each.
    pub fn activation(&self) -> Activation<'a> {
        let bound = [
            ("object", self.object),
            ("oldObject", self.old_object),
            ("request", self.request),
            ("params", self.params),
            ("namespaceObject", self.namespace),
        ];
        let activation = bound
            .into_iter()
            .fold(Activation::new(), |activation, (name, value)| activation.bind(name, Value::from_json(value)));
        self.variables.iter().fold(activation.with_variables(), |activation, variable| {
            match &variable.expression.program {
                Ok(program) => activation.variable(variable.name.as_str(), program, PER_CALL_LIMIT),
                Err(_) => activation.broken_variable(variable.name.as_str(), &variable.expression.refused()),
            }
        })
    }
}

/// The message of an evaluation that exceeds its budget.
pub(crate) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// A budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfBudget;

/// Evaluates expressions for one policy, binding and set of parameters, and notes what came of each.
#[derive(Debug)]
pub(crate) struct Evaluator<'l> {
    pub kind: PolicyKind,
    pub policy: &'l str,
    pub binding: &'l str,
    pub param: Option<&'l str>,
    pub log: &'l mut Vec<Evaluation>,
}

impl Evaluator<'_> {
    /// Evaluates an expression, and takes its cost and that of the variables that it used from the budget
    /// (`evaluationActivation.Evaluate`).
    pub fn evaluate<'a>(
        &mut self,
        expression: &'a Expression,
        inputs: &Inputs<'a>,
        activation: &Activation<'a>,
        budget: &mut u64,
    ) -> Result<Result<Value<'a>, String>, OutOfBudget> {
        let Ok(program) = &expression.program else {
            return Ok(Err(format!("compilation error: {}", expression.refused())));
        };
        let evaluation = program.evaluate(activation, PER_CALL_LIMIT);
        for (name, evaluated) in activation.take_evaluated() {
            if let Some(variable) = inputs.variables.iter().find(|variable| *variable.name == *name) {
                let result = evaluated.result.map_err(|error| error.to_string());
                self.note(&variable.expression, result, evaluated.cost);
            }
        }
        let result = evaluation.result.map_err(|error| error.to_string());
        self.note(expression, result.clone(), evaluation.cost);
        for cost in [activation.take_variables_cost(), evaluation.cost] {
            *budget = budget.checked_sub(cost).ok_or(OutOfBudget)?;
        }
        Ok(result.map_err(|error| format!("expression '{}' resulted in error: {error}", expression.source)))
    }

    fn note(&mut self, expression: &Expression, result: Result<Value<'_>, String>, cost: u64) {
        self.log.push(Evaluation {
            kind: self.kind,
            policy: self.policy.to_owned(),
            binding: self.binding.to_owned(),
            param: self.param.map(str::to_owned),
            path: expression.path.clone(),
            result: result.map(Value::into_owned),
            cost,
        });
    }
}
