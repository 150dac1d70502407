//! IP addresses (apiserver `pkg/cel/library/ip.go`).

use std::net::IpAddr;

use super::{EvalResult, text};
use super::{Function, cost, estimate, function, member};
use crate::types::Decl::{self, Bool, Int, Opaque, String};
use crate::{
    library::ip as library,
    value::{Error, Kind, Value},
};

/// The type of an IP address.
pub const IP: Decl = Opaque("net.IP");

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function::new("ip", &[function("string_to_ip", &[String], IP).since(30).eval(parse)])
        .cost(cost::TRAVERSAL)
        .estimate(estimate::ADDRESS),
    Function::new("family", &[member("ip_family", &[IP], Int).since(30).eval(family)]),
    Function::new("ip.isCanonical", &[function("ip_is_canonical", &[String], Bool).since(30).eval(is_canonical)])
        .cost(cost::DOUBLE_TRAVERSAL)
        .estimate(estimate::READING_TWICE),
    Function::new("isUnspecified", &[member("ip_is_unspecified", &[IP], Bool).since(30).eval(is_unspecified)]),
    Function::new("isLoopback", &[member("ip_is_loopback", &[IP], Bool).since(30).eval(is_loopback)]),
    Function::new(
        "isLinkLocalMulticast",
        &[member("ip_is_link_local_multicast", &[IP], Bool).since(30).eval(is_link_local_multicast)],
    ),
    Function::new(
        "isLinkLocalUnicast",
        &[member("ip_is_link_local_unicast", &[IP], Bool).since(30).eval(is_link_local_unicast)],
    ),
    Function::new("isGlobalUnicast", &[member("ip_is_global_unicast", &[IP], Bool).since(30).eval(is_global_unicast)]),
    Function::new("isIP", &[function("is_ip", &[String], Bool).since(30).eval(is_ip)])
        .cost(cost::TRAVERSAL)
        .estimate(estimate::READING),
    Function::new("string", &[function("ip_to_string", &[IP], String).since(30).eval(to_text)]),
];

// Evaluation.

pub(super) fn ip(args: &[Value<'_>], index: usize) -> Result<IpAddr, Error> {
    match &args[index] {
        Value::Opaque(opaque) => match opaque.kind() {
            Kind::Ip(ip) => Ok(*ip),
            _ => Err(Error::no_such_overload()),
        },
        _ => Err(Error::no_such_overload()),
    }
}

fn parse<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Kind::Ip(library::parse(text(args, 0)?)?).into())
}

fn is_ip<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(library::parse(text(args, 0)?).is_ok().into())
}

fn is_canonical<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(library::is_canonical(text(args, 0)?)?.into())
}

fn family<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(library::family(ip(args, 0)?).into())
}

fn is_unspecified<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(ip(args, 0)?.is_unspecified().into())
}

fn is_loopback<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(ip(args, 0)?.is_loopback().into())
}

fn is_link_local_multicast<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(library::is_link_local_multicast(ip(args, 0)?).into())
}

fn is_link_local_unicast<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(library::is_link_local_unicast(ip(args, 0)?).into())
}

fn is_global_unicast<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(library::is_global_unicast(ip(args, 0)?).into())
}

fn to_text<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(ip(args, 0)?.to_string().into())
}
