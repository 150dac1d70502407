//! Advice for an author about an error. cel-go gives none.

use crate::{
    environment::{Environment, Fields},
    functions::{LIBRARIES, Overload},
    types::Type,
};

/// For a name that is not a variable: neither one of the environment nor of these, which macros bind.
pub(super) fn variable<'a>(
    name: &str,
    locals: impl Iterator<Item = &'a str>,
    environment: &'a Environment,
) -> Option<String> {
    did_you_mean(name, locals.filter(|local| !local.starts_with(['@', '#'])).chain(environment.variables()))
}

/// For a name that is not a function.
pub(super) fn function(name: &str, member: bool, environment: &Environment) -> Option<String> {
    const MACROS: &[&str] = &["has", "all", "exists", "exists_one", "map", "filter", "optMap", "optFlatMap"];
    if let Some(macros) = arguments_of_macro(name) {
        return Some(macros.to_owned());
    }
    if let Some(since) = first_minor(name) {
        return Some(if since <= environment.minor().number() {
            format!(
                "'{name}' is available from Kubernetes 1.{since} on, but new expressions may use it only from 1.{} on",
                since + 1
            )
        } else {
            format!("'{name}' is available from Kubernetes 1.{since} on")
        });
    }
    let of_style = |name: &&str| {
        let overloads = environment.function(name).unwrap_or_default();
        overloads.iter().any(|overload| overload.member == member)
    };
    let names: Vec<&str> = environment.functions().filter(of_style).chain(MACROS.iter().copied()).collect();
    did_you_mean(name, names.into_iter().filter(|name| !name.starts_with(['_', '@', '!', '-'])))
}

/// A macro called in a way that is none.
fn arguments_of_macro(name: &str) -> Option<&'static str> {
    Some(match name {
        "has" => "write `has(x.field)`",
        "all" | "exists" | "exists_one" | "filter" => {
            "write `list.all(element, condition)`: a name, then a condition; the same for exists, exists_one and filter"
        }
        "map" => "write `list.map(element, value)` or `list.map(element, condition, value)`",
        "optMap" | "optFlatMap" => "write `optional.optMap(name, value)`",
        _ => return None,
    })
}

/// The first minor whose environment has the function.
fn first_minor(name: &str) -> Option<u8> {
    let rows = LIBRARIES.iter().copied().flatten().filter(|function| function.name == name);
    rows.flat_map(|function| function.overloads).map(|overload| overload.since).min().filter(|since| *since > 0)
}

/// For arguments that fit no overload.
pub(super) fn overload(function: &str, overloads: &[&Overload], types: &[Type], member: bool) -> Option<String> {
    if let ("_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" | "_+_" | "_-_" | "@in" | "_?_:_", [.., one, other]) =
        (function, types)
    {
        return Some(between(one, other));
    }
    if overloads.iter().all(|overload| overload.member != member) {
        let style = if member { format!("{function}(x)") } else { format!("x.{function}()") };
        return Some(format!("call it as `{style}`"));
    }
    let known: Vec<String> = overloads
        .iter()
        .filter(|overload| overload.member == member)
        .map(|overload| {
            let args: Vec<String> = overload.args.iter().map(|arg| arg.to_type().to_string()).collect();
            match args.split_first() {
                Some((target, args)) if member => format!("{target}.{function}({})", args.join(", ")),
                _ => format!("{function}({})", args.join(", ")),
            }
        })
        .collect();
    (!function.starts_with(['_', '@', '!', '-'])).then(|| format!("use {}", known.join(", ")))
}

/// How values of two types can be made to meet.
fn between(one: &Type, other: &Type) -> String {
    match (one, other) {
        (Type::Optional(_), _) | (_, Type::Optional(_)) => "read the optional with `.orValue(default)`".to_owned(),
        (Type::List(_), Type::List(_)) => "wrap one of the lists in `dyn(...)` if their elements are alike".to_owned(),
        (number, string) | (string, number)
            if *string == Type::String && matches!(number, Type::Int | Type::Uint | Type::Double | Type::Bool) =>
        {
            "convert the other value with `string(...)`".to_owned()
        }
        _ => format!("convert one of them (`string(...)`, `int(...)`), or wrap '{other}' in `dyn(...)`"),
    }
}

/// For a value of a wrong type.
pub(super) fn mismatch(expected: &Type, found: &Type) -> Option<String> {
    match (expected, found) {
        (Type::Bool, Type::Optional(_)) => Some("read the optional with `.orValue(false)`".to_owned()),
        (_, Type::Error) | (Type::Error, _) => None,
        _ => Some("convert it, or wrap it in `dyn(...)`".to_owned()),
    }
}

/// For a selection from a type that has no fields.
pub(super) fn no_fields(of: &Type) -> Option<String> {
    match of {
        Type::List(_) => Some("read an element of the list: `[0]`, or `.exists(e, e.field == ...)`".to_owned()),
        _ => None,
    }
}

/// For a type without declared fields.
pub(super) fn failed_resolution(name: &str, field: &str) -> Option<String> {
    (name == "kubernetes.authorization.Authorizer" && field == "requestResource").then(|| {
        "the API server's type checking does not know `authorizer.requestResource` and always warns; \
         the expression works"
            .to_owned()
    })
}

/// For a comprehension over something else.
pub(super) fn not_a_range(of: &Type) -> Option<String> {
    matches!(of, Type::Optional(_)).then(|| "read the optional first: `.orValue([])`".to_owned())
}

/// For a field that a struct does not have.
pub(super) fn field(field: &str, of: &str, fields: &Fields, environment: &Environment) -> Option<String> {
    if let Some(similar) = did_you_mean(field, fields.keys().map(|name| &**name)) {
        return Some(similar);
    }
    if of == "kubernetes.variables" {
        return Some("a variable can read only earlier variables, by their exact names".to_owned());
    }
    let mut others: Vec<&str> =
        environment.structs().filter(|(_, fields)| fields.contains_key(field)).map(|(name, _)| name).collect();
    // Types of the request and the namespace are no alternative for an object. Types of the same kind come before others.
    let root = of.split('.').next().unwrap_or(of);
    others.retain(|name| root == "kubernetes" || !name.starts_with("kubernetes."));
    if others.iter().any(|name| name.split('.').next() == Some(root)) {
        others.retain(|name| name.split('.').next() == Some(root));
    }
    others.sort_by_key(|name| (name.matches('.').count(), *name));
    match others.as_slice() {
        [] => None,
        some => Some(format!("it exists on {}", some[..some.len().min(3)].join(", "))),
    }
}

/// The name that is written almost so, letter case apart.
fn did_you_mean<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let limit = (wrong.chars().count() / 3).clamp(1, 3);
    let lower = wrong.to_lowercase();
    let close = names.map(|name| (strsim::osa_distance(&lower, &name.to_lowercase()), name));
    let closest = close.filter(|(distance, _)| *distance <= limit).min();
    closest.map(|(_, name)| format!("did you mean '{name}'?"))
}
