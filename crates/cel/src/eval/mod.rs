//! Evaluation: equal to that of cel-go v0.26.0 as kube-apiserver 1.36 configures it, in results, errors and costs.

mod activation;
mod attributes;
mod calls;
mod machine;
mod node;
mod plan;
mod structs;
mod watch;
mod watches;

use std::sync::Arc;

use crate::{check::Checked, environment::Environment, issue::Issue, types::Type, value::Value};

pub use crate::value::Error;
pub use activation::Activation;
pub use watch::{Seen, Watch, WatchKind};

/// The most that one expression may cost when it is evaluated (apiserver `pkg/apis/cel/config.go`, `PerCallLimit`).
pub const PER_CALL_LIMIT: u64 = 1_000_000;

/// An expression that is ready to be evaluated.
#[derive(Debug)]
pub struct Program {
    root: node::Node,
    slots: usize,
    /// Whether an optional in an optional stays one when it is passed on, as from cel-go 0.29 on.
    boxed: bool,
    output: Type,
    watches: Vec<Arc<Watch>>,
}

/// The outcome of an evaluation.
#[derive(Clone, Debug)]
pub struct Evaluation<'a> {
    /// The value, or why there is none.
    pub result: Result<Value<'a>, Error>,
    /// Its cost, errors included, without the cost of the policy's variables.
    pub cost: u64,
}

impl Program {
    /// Makes a program of a checked expression, and evaluates constant parts ahead of time.
    ///
    /// # Errors
    /// A constant part fails, which the API server rejects as `program instantiation failed`.
    pub fn new(checked: &Checked, environment: &Environment) -> Result<Self, Issue> {
        plan::plan(checked, environment)
    }

    /// The type of the result, as the checker found it.
    pub fn output_type(&self) -> &Type {
        &self.output
    }

    /// The outcomes of the parts of the expression in all evaluations so far: the whole first, then by position. Empty
    /// unless the program was compiled in an environment that is [`watching`](Environment::watching).
    pub fn watches(&self) -> &[Arc<Watch>] {
        &self.watches
    }

    /// Evaluates the expression. It ends with an error as soon as it has cost more than the limit.
    pub fn evaluate<'a>(&'a self, activation: &Activation<'a>, limit: u64) -> Evaluation<'a> {
        machine::run(self, activation, limit)
    }
}
