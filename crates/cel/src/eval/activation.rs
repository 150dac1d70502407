//! The bindings of an expression's variables.

use std::cell::{Cell, RefCell};

use super::{Error, Evaluation, Program};
use crate::value::{Map, Str, Value};

/// The values of an expression's variables during an evaluation, and the policy's `variables`, which are evaluated at
/// their first use (apiserver `pkg/admission/plugin/cel/composition.go`).
///
/// One activation serves all expressions of a policy for one request: a variable is evaluated once.
#[derive(Debug, Default)]
pub struct Activation<'a> {
    bound: Vec<(Str<'a>, Value<'a>)>,
    composed: Option<Vec<Variable<'a>>>,
    spent: Cell<u64>,
    evaluated: RefCell<Vec<(Str<'a>, Evaluation<'a>)>>,
}

#[derive(Debug)]
struct Variable<'a> {
    name: Str<'a>,
    /// The program, or why there is none.
    program: Result<(&'a Program, u64), String>,
    state: RefCell<State<'a>>,
}

#[derive(Debug)]
enum State<'a> {
    Unknown,
    UnderWay,
    Known(Result<Value<'a>, Error>),
}

impl<'a> Activation<'a> {
    /// One without variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a variable, by its full name (`object`, `authorizer.requestResource`).
    #[must_use]
    pub fn bind(mut self, name: impl Into<Str<'a>>, value: Value<'a>) -> Self {
        self.bound.push((name.into(), value));
        self
    }

    /// Adds a policy's variable, `variables.<name>`, which may cost as much as an expression may (`limit`).
    #[must_use]
    pub fn variable(mut self, name: impl Into<Str<'a>>, program: &'a Program, limit: u64) -> Self {
        self.compose(name.into(), Ok((program, limit)));
        self
    }

    /// Adds a policy's variable that does not compile, with the API server's reason.
    #[must_use]
    pub fn broken_variable(mut self, name: impl Into<Str<'a>>, reason: &str) -> Self {
        let name = name.into();
        let error = format!("composited variable \"{}\" fails to compile: {reason}", &*name);
        self.compose(name, Err(error));
        self
    }

    fn compose(&mut self, name: Str<'a>, program: Result<(&'a Program, u64), String>) {
        let variable = Variable { name, program, state: RefCell::new(State::Unknown) };
        self.composed.get_or_insert_default().push(variable);
    }

    /// Declares that there are `variables`, even if there is none of them.
    #[must_use]
    pub fn with_variables(mut self) -> Self {
        self.composed.get_or_insert_default();
        self
    }

    /// The cost of evaluating variables since the last call. The API server subtracts it from the budget of the
    /// expressions that used them.
    pub fn take_variables_cost(&self) -> u64 {
        self.spent.take()
    }

    /// The policy's variables that were evaluated since the last call, in the order of evaluation.
    pub fn take_evaluated(&self) -> Vec<(Str<'a>, Evaluation<'a>)> {
        self.evaluated.take()
    }

    /// The value of a variable of the environment.
    pub(super) fn get(&self, name: &str) -> Option<Value<'a>> {
        if let ("variables", Some(composed)) = (name, &self.composed) {
            return Some(Value::Map(Map::Variables(composed.len())));
        }
        self.bound.iter().find(|(bound, _)| **bound == *name).map(|(_, value)| value.clone())
    }

    /// The value of a policy's variable.
    pub(super) fn composed(&self, name: &Value<'_>) -> Result<Option<Value<'a>>, Error> {
        let Value::String(name) = name else { return Err(Error::no_such_overload()) };
        let variable = self.composed.iter().flatten().find(|variable| *variable.name == **name);
        let Some(variable) = variable else { return Ok(None) };
        match &*variable.state.borrow() {
            State::Known(result) => return result.clone().map(Some),
            State::UnderWay => return Err(Error::new(format!("composited variable \"{}\" refers to itself", &**name))),
            State::Unknown => {}
        }
        let (program, limit) = variable.program.as_ref().map_err(|error| Error::new(error.clone()))?;
        variable.state.replace(State::UnderWay);
        let evaluation = program.evaluate(self, *limit);
        self.spent.set(self.spent.get().saturating_add(evaluation.cost));
        self.evaluated.borrow_mut().push((variable.name.clone(), evaluation.clone()));
        let result = evaluation
            .result
            .map_err(|error| Error::new(format!("composited variable \"{}\" fails to evaluate: {error}", &**name)));
        variable.state.replace(State::Known(result.clone()));
        result.map(Some)
    }
}
