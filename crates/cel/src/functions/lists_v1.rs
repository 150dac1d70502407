//! What version 1 of the library of lists adds (apiserver `pkg/cel/library/lists.go` of Kubernetes 1.37).

use super::{Function, Outcome, list, member};
use crate::{
    types::Decl::{Bool, Dyn},
    value::Value,
};

/// The functions.
pub const FUNCTIONS: &[Function] =
    &[Function::new("includes", &[member("list_includes_dyn_dyn", &[Dyn, Dyn], Bool).since(37).eval(includes)])];

// Evaluation.

fn includes<'a>(args: &mut [Value<'a>]) -> Outcome<'a> {
    Ok(list(args, 0)?.contains(&args[1]).into())
}
