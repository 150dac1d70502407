//! Authorization checks (apiserver `pkg/cel/library/authz.go`).

use std::sync::Arc;

use super::{Cost, Function, cost, estimate, member};
use super::{EvalResult, text};
use crate::types::Decl::{self, Bool, Object, String};
use crate::{
    library::{
        authorization::{Attributes, Decision, User},
        format::Format,
        selector,
    },
    value::{Authorization, Error, Kind, ResourceCheck, Value},
};

/// The type of the variable `authorizer`.
pub const AUTHORIZER: Decl = Object("kubernetes.authorization.Authorizer");
/// The type of a check of a path under way.
pub const PATH_CHECK: Decl = Object("kubernetes.authorization.PathCheck");
/// The type of a check of a resource with a known API group.
pub const GROUP_CHECK: Decl = Object("kubernetes.authorization.GroupCheck");
/// The type of a check of a resource under way.
pub const RESOURCE_CHECK: Decl = Object("kubernetes.authorization.ResourceCheck");
/// The type of an authorizer's decision.
pub const DECISION: Decl = Object("kubernetes.authorization.Decision");

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function::new("path", &[member("authorizer_path", &[AUTHORIZER, String], PATH_CHECK).since(27).eval(path)]),
    Function::new("group", &[member("authorizer_group", &[AUTHORIZER, String], GROUP_CHECK).since(27).eval(group)]),
    Function::new(
        "serviceAccount",
        &[member("authorizer_serviceaccount", &[AUTHORIZER, String, String], AUTHORIZER)
            .since(27)
            .eval(service_account)],
    ),
    Function::new(
        "resource",
        &[member("groupcheck_resource", &[GROUP_CHECK, String], RESOURCE_CHECK).since(27).eval(resource)],
    ),
    Function::new(
        "subresource",
        &[member("resourcecheck_subresource", &[RESOURCE_CHECK, String], RESOURCE_CHECK).since(27).eval(subresource)],
    ),
    Function::new(
        "namespace",
        &[member("resourcecheck_namespace", &[RESOURCE_CHECK, String], RESOURCE_CHECK).since(27).eval(namespace)],
    ),
    Function::new(
        "name",
        &[member("resourcecheck_name", &[RESOURCE_CHECK, String], RESOURCE_CHECK).since(27).eval(name)],
    ),
    Function::new(
        "check",
        &[
            member("pathcheck_check", &[PATH_CHECK, String], DECISION).since(27).eval(check_path),
            member("resourcecheck_check", &[RESOURCE_CHECK, String], DECISION).since(27).eval(check_resource),
        ],
    )
    .cost(Cost::Fixed(350_000))
    .estimate(estimate::AUTHORIZATION),
    Function::new("errored", &[member("decision_errored", &[DECISION], Bool).since(27).eval(errored)]),
    Function::new("error", &[member("decision_error", &[DECISION], String).since(27).eval(error)]),
    Function::new("allowed", &[member("decision_allowed", &[DECISION], Bool).since(27).eval(allowed)]),
    Function::new("reason", &[member("decision_reason", &[DECISION], String).since(27).eval(reason)]),
    Function::new(
        "fieldSelector",
        &[member("authorizer_fieldselector", &[RESOURCE_CHECK, String], RESOURCE_CHECK).since(31).eval(field_selector)],
    )
    .cost(cost::SELECTOR)
    .estimate(estimate::SELECTOR),
    Function::new(
        "labelSelector",
        &[member("authorizer_labelselector", &[RESOURCE_CHECK, String], RESOURCE_CHECK).since(31).eval(label_selector)],
    )
    .cost(cost::SELECTOR)
    .estimate(estimate::SELECTOR),
];

// Evaluation.

/// The receiver and the text of its argument.
fn receiver<'v>(args: &'v [Value<'_>]) -> Result<(&'v Kind, &'v str), Error> {
    match &args[0] {
        Value::Opaque(opaque) => Ok((opaque.kind(), if args.len() > 1 { text(args, 1)? } else { "" })),
        _ => Err(Error::no_such_overload()),
    }
}

fn path<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let (Kind::Authorizer(by), path) = receiver(args)? else { return Err(Error::no_such_overload()) };
    if path.trim().is_empty() {
        return Err(Error::new("path must not be empty"));
    }
    Ok(Kind::PathCheck(by.clone(), path.into()).into())
}

fn group<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let (Kind::Authorizer(by), group) = receiver(args)? else { return Err(Error::no_such_overload()) };
    Ok(Kind::GroupCheck(by.clone(), group.into()).into())
}

fn service_account<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let (Kind::Authorizer(by), namespace) = receiver(args)? else { return Err(Error::no_such_overload()) };
    let name = text(args, 2)?;
    if !(Format::Dns1123Subdomain { prefix: false }).validate(name).is_empty() {
        return Err(Error::new("Invalid service account name"));
    }
    if !(Format::Dns1123Label { prefix: false }).validate(namespace).is_empty() {
        return Err(Error::new("Invalid service account namespace"));
    }
    let user = User {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
        ..User::default()
    };
    Ok(Kind::Authorizer(Authorization { user: Arc::new(user), ..by.clone() }).into())
}

fn resource<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let (Kind::GroupCheck(by, group), resource) = receiver(args)? else { return Err(Error::no_such_overload()) };
    if resource.trim().is_empty() {
        return Err(Error::new("resource must not be empty"));
    }
    let attributes = Attributes { group: (**group).to_owned(), resource: resource.to_owned(), ..Attributes::default() };
    Ok(Kind::ResourceCheck(ResourceCheck { by: by.clone(), attributes }).into())
}

/// A check with one attribute more.
fn with<'a>(args: &[Value<'a>], set: impl FnOnce(&mut Attributes, &str)) -> EvalResult<'a> {
    let (Kind::ResourceCheck(check), text) = receiver(args)? else { return Err(Error::no_such_overload()) };
    let mut check = check.clone();
    set(&mut check.attributes, text);
    Ok(Kind::ResourceCheck(check).into())
}

fn subresource<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    with(args, |attributes, text| text.clone_into(&mut attributes.subresource))
}

fn namespace<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    with(args, |attributes, text| text.clone_into(&mut attributes.namespace))
}

fn name<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    with(args, |attributes, text| text.clone_into(&mut attributes.name))
}

fn field_selector<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    with(args, |attributes, text| attributes.field_selector = selector::fields(text).into())
}

fn label_selector<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    with(args, |attributes, text| attributes.label_selector = selector::labels(text).into())
}

fn check_path<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let (Kind::PathCheck(by, path), verb) = receiver(args)? else { return Err(Error::no_such_overload()) };
    let attributes = Attributes { verb: verb.to_owned(), path: Some((**path).to_owned()), ..Attributes::default() };
    Ok(Kind::Decision(by.authorizer.authorize(&by.user, &attributes)).into())
}

fn check_resource<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let (Kind::ResourceCheck(check), verb) = receiver(args)? else { return Err(Error::no_such_overload()) };
    let attributes = Attributes { verb: verb.to_owned(), ..check.attributes.clone() };
    Ok(Kind::Decision(check.by.authorizer.authorize(&check.by.user, &attributes)).into())
}

fn decision<'v>(args: &'v [Value<'_>]) -> Result<&'v Decision, Error> {
    match receiver(args)?.0 {
        Kind::Decision(decision) => Ok(decision),
        _ => Err(Error::no_such_overload()),
    }
}

fn errored<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(decision(args)?.error.is_some().into())
}

fn error<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(decision(args)?.error.clone().unwrap_or_default().into())
}

fn allowed<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(decision(args)?.allowed.into())
}

fn reason<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(decision(args)?.reason.clone().into())
}
