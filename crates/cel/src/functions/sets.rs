//! Lists as sets (cel-go `ext/sets.go`).

use super::{EvalResult, list};
use super::{Function, T, cost, estimate, function};
use crate::types::Decl::{Bool, List};
use crate::value::{Error, Value};

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function::new(
        "sets.contains",
        &[function("list_sets_contains_list", &[List(&T), List(&T)], Bool)
            .since(29)
            .eval(contains)
            .cost(cost::PRODUCT)],
    )
    .estimate(estimate::PRODUCT),
    Function::new(
        "sets.equivalent",
        &[function("list_sets_equivalent_list", &[List(&T), List(&T)], Bool)
            .since(29)
            .eval(equivalent)
            .cost(cost::DOUBLE_PRODUCT)],
    )
    .estimate(estimate::DOUBLE_PRODUCT),
    Function::new(
        "sets.intersects",
        &[function("list_sets_intersects_list", &[List(&T), List(&T)], Bool)
            .since(29)
            .eval(intersects)
            .cost(cost::PRODUCT)],
    )
    .estimate(estimate::PRODUCT),
];

// Evaluation.

/// Whether the list at one index has all elements of the list at another.
fn includes(args: &[Value<'_>], whole: usize, part: usize) -> Result<bool, Error> {
    let whole = list(args, whole)?;
    Ok(list(args, part)?.iter().all(|element| whole.contains(&element)))
}

fn contains<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(includes(args, 0, 1)?.into())
}

fn equivalent<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok((includes(args, 0, 1)? && includes(args, 1, 0)?).into())
}

fn intersects<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let other = list(args, 1)?;
    Ok(list(args, 0)?.iter().any(|element| other.contains(&element)).into())
}
