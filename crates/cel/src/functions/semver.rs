//! Semantic versions (apiserver `pkg/cel/library/semverlib.go`, version 1).

use super::{EvalResult, text};
use super::{Function, comparisons, cost, estimate, function, member};
use crate::types::Decl::{self, Bool, Int, Object, String};
use crate::{
    library::semver::Version,
    value::{Error, Kind, Value},
};

/// The type of a semantic version.
pub const SEMVER: Decl = Object("kubernetes.Semver");

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function::new(
        "semver",
        &[
            function("string_to_semver", &[String], SEMVER).since(33).eval(parse),
            function("string_bool_to_semver", &[String, Bool], SEMVER).since(33).eval(parse),
        ],
    )
    .cost(cost::TRAVERSAL)
    .estimate(estimate::READING),
    Function::new(
        "isSemver",
        &[
            function("is_semver_string", &[String], Bool).since(33).eval(is_semver),
            function("is_semver_string_bool", &[String, Bool], Bool).since(33).eval(is_semver),
        ],
    )
    .cost(cost::TRAVERSAL)
    .estimate(estimate::READING),
    Function::new(
        "isGreaterThan",
        &[member("semver_is_greater_than", &[SEMVER, SEMVER], Bool).since(33).eval(is_greater_than)],
    ),
    Function::new("isLessThan", &[member("semver_is_less_than", &[SEMVER, SEMVER], Bool).since(33).eval(is_less_than)]),
    Function::new("compareTo", &[member("semver_compare_to", &[SEMVER, SEMVER], Int).since(33).eval(compare_to)]),
    Function::new("major", &[member("semver_major", &[SEMVER], Int).since(33).eval(major)]),
    Function::new("minor", &[member("semver_minor", &[SEMVER], Int).since(33).eval(minor)]),
    Function::new("patch", &[member("semver_patch", &[SEMVER], Int).since(33).eval(patch)]),
];

// Evaluation.

fn version<'v>(args: &'v [Value<'_>], index: usize) -> Result<&'v Version, Error> {
    match &args[index] {
        Value::Opaque(opaque) => match opaque.kind() {
            Kind::Semver(version) => Ok(version),
            _ => Err(Error::no_such_overload()),
        },
        _ => Err(Error::no_such_overload()),
    }
}

fn parsed(args: &[Value<'_>]) -> Result<Result<Version, std::string::String>, Error> {
    let text = text(args, 0)?;
    let normalize = matches!(args.get(1), Some(Value::Bool(true)));
    Ok(if normalize { Version::parse_normalized(text) } else { Version::parse(text) })
}

fn parse<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Kind::Semver(parsed(args)??).into())
}

fn is_semver<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(parsed(args)?.is_ok().into())
}

comparisons!(version);

fn major<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(version(args, 0)?.major().into())
}

fn minor<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(version(args, 0)?.minor().into())
}

fn patch<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(version(args, 0)?.patch().into())
}
