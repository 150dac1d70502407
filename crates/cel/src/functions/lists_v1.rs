//! Functions that version 1 of the library of lists adds (apiserver `pkg/cel/library/lists.go` of Kubernetes 1.37).

use super::{EvalResult, Function, cost, estimate, member};
use crate::{
    types::Decl::{Bool, Dyn},
    value::Value,
};

/// The functions.
pub const FUNCTIONS: &[Function] =
    &[Function::new("includes", &[member("list_includes_dyn_dyn", &[Dyn, Dyn], Bool).since(37).eval(includes)])
        .cost(cost::DEEP_TRAVERSAL)
        .estimate(estimate::INCLUSION)];

// Evaluation.

fn includes<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Value::Bool(match &args[0] {
        Value::List(list) => list.iter().any(|element| element.equals(&args[1]) == Ok(true)),
        value => value.equals(&args[1]) == Ok(true),
    }))
}
