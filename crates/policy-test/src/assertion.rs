//! Expressions of a suite about the object in the end.

use std::sync::Arc;

use palisade_admission::requests::{Request, Review};
use palisade_cel::{
    Environment, Issue, Minor, Mode, ResultType,
    eval::{Activation, PER_CALL_LIMIT, Program},
    types::Type,
    value::Value,
};
use serde_json::Value as Json;

use crate::expect::Difference;

/// An expression that has to be true.
#[derive(Clone, Debug)]
pub(crate) struct Assertion {
    source: String,
    program: Arc<Program>,
}

impl Assertion {
    /// Compiles an expression. It has the functions of this minor.
    ///
    /// # Errors
    /// The errors in it, by position.
    pub fn new(source: &str, minor: Minor) -> Result<Self, Vec<Issue>> {
        let base = Environment::kubernetes(minor, Mode::Stored);
        let environment = base.declare("object", Type::Dyn).declare("oldObject", Type::Dyn);
        let program = Arc::new(environment.compile(source, ResultType::Bool)?);
        Ok(Self { source: source.to_owned(), program })
    }

    /// The difference, if it is not true.
    pub fn fails(&self, request: &Request, review: &Review) -> Option<Difference> {
        let json = |object: &'_ Option<Json>| object.clone().unwrap_or_default();
        let (object, old) = (json(&review.object), json(&request.old_object));
        let activation =
            Activation::new().bind("object", Value::from_json(&object)).bind("oldObject", Value::from_json(&old));
        let got = match self.program.evaluate(&activation, PER_CALL_LIMIT).result {
            Ok(value) if value.as_bool() == Some(true) => return None,
            Ok(value) => value.to_string(),
            Err(error) => format!("error: {error}"),
        };
        Some(Difference::new(&format!("assert {}", self.source), "true", got))
    }
}
