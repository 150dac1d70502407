//! Functions for mutations only (apiserver `pkg/cel/library/jsonpatch.go`).

use super::{EvalResult, Function, cost, estimate, function, text};
use crate::{types::Decl::String, value::Value};

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function::new(
    "jsonpatch.escapeKey",
    &[function("string_jsonpatch_escapeKey_string", &[String], String).eval(escape_key).cost(cost::TRAVERSAL)],
)
.estimate(estimate::COPY_OF_ARGUMENT)];

/// A key as a part of a JSON pointer (RFC 6901, section 3).
fn escape_key<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(text(args, 0)?.replace('~', "~0").replace('/', "~1").into())
}
