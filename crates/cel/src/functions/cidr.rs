//! CIDR ranges (apiserver `pkg/cel/library/cidr.go`).

use super::ip::IP;
use super::{Cost, Function, cost, estimate, function, member};
use super::{EvalResult, text};
use crate::types::Decl::{self, Bool, Int, Opaque, String};
use crate::{
    library::{self, cidr::Cidr},
    value::{Error, Kind, Value},
};

/// The type of a CIDR range.
pub const CIDR: Decl = Opaque("net.CIDR");

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function::new("cidr", &[function("string_to_cidr", &[String], CIDR).since(30).eval(parse)])
        .cost(cost::TRAVERSAL)
        .estimate(estimate::READING),
    Function::new(
        "containsIP",
        &[
            member("cidr_contains_ip_string", &[CIDR, String], Bool)
                .since(30)
                .eval(contains_ip_text)
                .cost(cost::CONTAINS_IP_TEXT),
            member("cidr_contains_ip_ip", &[CIDR, IP], Bool).since(30).eval(contains_ip),
        ],
    )
    .cost(cost::CONTAINS_IP)
    .estimate(estimate::CONTAINS_IP),
    Function::new(
        "containsCIDR",
        &[
            member("cidr_contains_cidr_string", &[CIDR, String], Bool)
                .since(30)
                .eval(contains_cidr_text)
                .cost(cost::CONTAINS_CIDR_TEXT),
            member("cidr_contains_cidr", &[CIDR, CIDR], Bool).since(30).eval(contains_cidr),
        ],
    )
    .cost(cost::CONTAINS_CIDR)
    .estimate(estimate::CONTAINS_CIDR),
    Function::new("ip", &[member("cidr_ip", &[CIDR], IP).since(30).eval(ip).cost(Cost::Fixed(1))]),
    Function::new("prefixLength", &[member("cidr_prefix_length", &[CIDR], Int).since(30).eval(prefix_length)]),
    Function::new("masked", &[member("cidr_masked", &[CIDR], CIDR).since(30).eval(masked)]),
    Function::new("isCIDR", &[function("is_cidr", &[String], Bool).since(30).eval(is_cidr)])
        .cost(cost::TRAVERSAL)
        .estimate(estimate::READING),
    Function::new("string", &[function("cidr_to_string", &[CIDR], String).since(30).eval(to_text)]),
];

// Evaluation.

fn cidr(args: &[Value<'_>], index: usize) -> Result<Cidr, Error> {
    match &args[index] {
        Value::Opaque(opaque) => match opaque.kind() {
            Kind::Cidr(cidr) => Ok(*cidr),
            _ => Err(Error::no_such_overload()),
        },
        _ => Err(Error::no_such_overload()),
    }
}

fn parse<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Kind::Cidr(Cidr::parse(text(args, 0)?)?).into())
}

fn is_cidr<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Cidr::parse(text(args, 0)?).is_ok().into())
}

fn contains_ip<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(cidr(args, 0)?.contains_ip(super::ip::ip(args, 1)?).into())
}

/// A text that is not an address is an error of another type in Go, and its text is lost.
fn contains_ip_text<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(cidr(args, 0)?.contains_ip(library::ip::parse(text(args, 1)?).map_err(|_| Error::no_such_overload())?).into())
}

fn contains_cidr<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(cidr(args, 0)?.contains(cidr(args, 1)?).into())
}

fn contains_cidr_text<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(cidr(args, 0)?.contains(Cidr::parse(text(args, 1)?)?).into())
}

fn ip<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Kind::Ip(cidr(args, 0)?.ip()).into())
}

fn prefix_length<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(cidr(args, 0)?.prefix_length().into())
}

fn masked<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Kind::Cidr(cidr(args, 0)?.masked()).into())
}

fn to_text<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(cidr(args, 0)?.to_string().into())
}
