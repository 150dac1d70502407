//! URLs (apiserver `pkg/cel/library/urls.go`).

use super::{EvalResult, text};
use super::{Function, cost, estimate, function, member};
use crate::types::Decl::{self, Bool, List, Map, Object, String};
use crate::{
    library::url as library,
    value::{Entries, Error, Kind, Value},
};

/// The type of a URL.
pub const URL: Decl = Object("kubernetes.URL");

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function::new("url", &[function("string_to_url", &[String], URL).eval(parse)])
        .cost(cost::TRAVERSAL)
        .estimate(estimate::COPY_OF_ARGUMENT),
    Function::new("getScheme", &[member("url_get_scheme", &[URL], String).eval(scheme)]),
    Function::new("getHost", &[member("url_get_host", &[URL], String).eval(host)]),
    Function::new("getHostname", &[member("url_get_hostname", &[URL], String).eval(hostname)]),
    Function::new("getPort", &[member("url_get_port", &[URL], String).eval(port)]),
    Function::new("getEscapedPath", &[member("url_get_escaped_path", &[URL], String).eval(escaped_path)]),
    Function::new("getQuery", &[member("url_get_query", &[URL], Map(&String, &List(&String))).eval(query)]),
    Function::new("isURL", &[function("is_url_string", &[String], Bool).eval(is_url)]),
];

// Evaluation.

fn url<'v>(args: &'v [Value<'_>]) -> Result<&'v library::Url, Error> {
    match &args[0] {
        Value::Opaque(opaque) => match opaque.kind() {
            Kind::Url(url) => Ok(url),
            _ => Err(Error::no_such_overload()),
        },
        _ => Err(Error::no_such_overload()),
    }
}

fn parse<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Kind::Url(library::Url::parse(text(args, 0)?)?).into())
}

fn is_url<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(library::parse_request_uri(text(args, 0)?).is_ok().into())
}

fn scheme<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(url(args)?.scheme().to_owned().into())
}

fn host<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(url(args)?.host().into())
}

fn hostname<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(url(args)?.hostname().into())
}

fn port<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(url(args)?.port().into())
}

fn escaped_path<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(url(args)?.escaped_path().into())
}

fn query<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let mut query = Entries::default();
    for (name, values) in url(args)?.query() {
        let values: Vec<Value<'_>> = values.into_iter().map(Value::from).collect();
        query.insert(name.into(), values.into());
    }
    Ok(query.into())
}
