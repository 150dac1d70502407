//! Quantities (apiserver `pkg/cel/library/quantity.go`).

use super::{EvalResult, int, text};
use super::{Function, comparisons, cost, estimate, function, member};
use crate::types::Decl::{self, Bool, Double, Int, Object, String};
use crate::{
    library::quantity::Quantity,
    value::{Error, Kind, Value},
};

/// The type of a quantity.
pub const QUANTITY: Decl = Object("kubernetes.Quantity");

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function::new("quantity", &[function("string_to_quantity", &[String], QUANTITY).since(28).eval(parse)])
        .cost(cost::TRAVERSAL)
        .estimate(estimate::READING),
    Function::new("isQuantity", &[function("is_quantity_string", &[String], Bool).since(28).eval(is_quantity)])
        .cost(cost::TRAVERSAL)
        .estimate(estimate::READING),
    Function::new("sign", &[function("quantity_sign", &[QUANTITY], Int).since(28).eval(sign)]),
    Function::new(
        "isGreaterThan",
        &[member("quantity_is_greater_than", &[QUANTITY, QUANTITY], Bool).since(28).eval(is_greater_than)],
    ),
    Function::new(
        "isLessThan",
        &[member("quantity_is_less_than", &[QUANTITY, QUANTITY], Bool).since(28).eval(is_less_than)],
    ),
    Function::new("compareTo", &[member("quantity_compare_to", &[QUANTITY, QUANTITY], Int).since(28).eval(compare_to)]),
    Function::new(
        "asApproximateFloat",
        &[member("quantity_get_float", &[QUANTITY], Double).since(28).eval(as_approximate_float)],
    ),
    Function::new("asInteger", &[member("quantity_get_int", &[QUANTITY], Int).since(28).eval(as_integer)]),
    Function::new("isInteger", &[member("quantity_is_integer", &[QUANTITY], Bool).since(28).eval(is_integer)]),
    Function::new(
        "add",
        &[
            member("quantity_add", &[QUANTITY, QUANTITY], QUANTITY).since(28).eval(add),
            member("quantity_add_int", &[QUANTITY, Int], QUANTITY).since(28).eval(add_int),
        ],
    ),
    Function::new(
        "sub",
        &[
            member("quantity_sub", &[QUANTITY, QUANTITY], QUANTITY).since(28).eval(sub),
            member("quantity_sub_int", &[QUANTITY, Int], QUANTITY).since(28).eval(sub_int),
        ],
    ),
];

// Evaluation.

fn quantity<'v>(args: &'v [Value<'_>], index: usize) -> Result<&'v Quantity, Error> {
    match &args[index] {
        Value::Opaque(opaque) => match opaque.kind() {
            Kind::Quantity(quantity) | Kind::Computed(quantity) => Ok(quantity),
            _ => Err(Error::no_such_overload()),
        },
        _ => Err(Error::no_such_overload()),
    }
}

fn parse<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Kind::Quantity(Quantity::parse(text(args, 0)?)?).into())
}

fn is_quantity<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Quantity::parse(text(args, 0)?).is_ok().into())
}

fn sign<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(quantity(args, 0)?.sign().into())
}

comparisons!(quantity);

fn as_approximate_float<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Value::Double(quantity(args, 0)?.as_approximate_float()))
}

fn as_integer<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(quantity(args, 0)?.as_integer()?.into())
}

fn is_integer<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(quantity(args, 0)?.as_integer().is_ok().into())
}

fn add<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Kind::Computed(quantity(args, 0)?.add(quantity(args, 1)?)?).into())
}

fn add_int<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Kind::Computed(quantity(args, 0)?.add_int(int(args, 1)?)?).into())
}

fn sub<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Kind::Computed(quantity(args, 0)?.sub(quantity(args, 1)?)?).into())
}

fn sub_int<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Kind::Computed(quantity(args, 0)?.sub_int(int(args, 1)?)?).into())
}
