//! One mutation: from its expression to the changed object (`policy/mutating/patch`).

use palisade_cel::{
    Minor,
    eval::Activation,
    schema::Kind,
    value::{Struct, Value},
};
use serde_json::Value as Json;

use super::{
    Failure,
    json_patch::{self, Operation},
    merge,
    value::{self, NoJson},
};
use crate::{
    objects::{Refused, Submission},
    requests::{
        BUDGET, Cluster,
        authorizer::Authority,
        expression::{Evaluator, Inputs, OUT_OF_BUDGET},
        policy::mutating::{Mutation, PatchKind},
    },
};

/// Evaluates a mutation, and applies its result to the object.
pub(super) fn patch(
    mutation: &Mutation,
    inputs: &Inputs<'_>,
    authority: &Authority,
    evaluator: &mut Evaluator<'_>,
    cluster: &Cluster,
    kind: &Kind,
) -> Result<Json, Failure> {
    let mut budget = BUDGET;
    let activation: Activation<'_> = authority.bind(inputs.activation());
    let value = evaluator
        .evaluate(&mutation.expression, inputs, &activation, &mut budget)
        .map_err(|_| Failure::Policy(OUT_OF_BUDGET.to_owned()))?
        .map_err(Failure::Policy)?;
    match (mutation.kind, value) {
        (PatchKind::JsonPatch, Value::List(list)) => {
            let operation = |value: Value<'_>| match value {
                Value::Struct(of) if of.is_json_patch() => operation(&of, cluster.minor()),
                other => Err(Failure::NoVerdict(format!("a {} in place of a JSONPatch", other.type_name()))),
            };
            let operations = list.iter().map(operation).collect::<Result<Vec<_>, _>>()?;
            match json_patch::apply(inputs.object, &operations) {
                Ok(patched) => Ok(patched),
                Err(json_patch::Failure::Test) => Ok(inputs.object.clone()),
                Err(json_patch::Failure::Error(text)) => Err(Failure::Policy(format!("JSON Patch: {text}"))),
            }
        }
        (PatchKind::ApplyConfiguration, Value::Struct(of)) => apply(&of, inputs.object, cluster, kind),
        (_, other) => Err(Failure::NoVerdict(format!("a {} in place of a patch", other.type_name()))),
    }
}

fn operation(of: &Struct<'_>, minor: Minor) -> Result<Operation, Failure> {
    let text = |field: &str| of.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let value = of.get("value").map(|value| {
        if let Value::Struct(of) = value
            && !of.is_json_patch()
        {
            check_names(of)?;
        }
        value::to_json(value, minor).map_err(|error| match error {
            NoJson::Error(text) => Failure::Policy(format!(
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {text}"
            )),
            NoJson::NoVerdict(why) => Failure::NoVerdict(why),
        })
    });
    Ok(Operation { op: text("op"), path: text("path"), from: text("from"), value: value.transpose()? })
}

fn check_names(of: &Struct<'_>) -> Result<(), Failure> {
    let mismatches = value::mismatches(of);
    if mismatches.is_empty() {
        Ok(())
    } else {
        Err(Failure::Policy(format!("type mismatch: {}", mismatches.join("\n"))))
    }
}

fn apply(of: &Struct<'_>, object: &Json, cluster: &Cluster, kind: &Kind) -> Result<Json, Failure> {
    check_names(of)?;
    let mut patch = value::native(of).map_err(|error| match error {
        // The API server says the type of something else here.
        NoJson::Error(why) | NoJson::NoVerdict(why) => Failure::NoVerdict(why),
    })?;
    if let value::Native::Map(fields) = &mut patch {
        for field in ["apiVersion", "kind"] {
            let text = object.get(field).and_then(Json::as_str).unwrap_or_default();
            fields.insert(field.to_owned(), value::Native::String(text.to_owned()));
        }
    }
    let schemas = cluster.mutations().schemas();
    let schema =
        schemas.of_kind(kind).ok_or_else(|| Failure::NoVerdict(format!("the schema of {kind} is not known")))?;
    merge::apply(schemas, schema, object, patch, cluster.minor())
        .map_err(|text| Failure::Policy(format!("error applying patch: {text}")))
}

/// Rejects what a JSON patch has made an object of another kind: the API server cannot convert it back.
fn same_kind(object: &Json, api_version: &str, kind: &Kind, custom: bool) -> Result<(), Failure> {
    let text = |key: &str| object.get(key).and_then(Json::as_str).unwrap_or_default();
    let (now, found) = (text("apiVersion"), text("kind"));
    if (now, found) == (api_version, kind.kind.as_str()) {
        return Ok(());
    }
    if custom {
        return Err(Failure::NoVerdict(format!("a JSONPatch changes the kind or apiVersion to {found} of {now:?}")));
    }
    let version = now.rsplit('/').next().unwrap_or_default();
    let of = &kind.kind;
    Err(Failure::Internal(format!("converting ({version}.{found}) to (core.{of}): unknown conversion")))
}

/// The changed object as the API server reads it again, with defaults in the added parts.
pub(super) fn receive(
    mutation: &Mutation,
    object: &Json,
    sent: &Submission<'_>,
    kind: &Kind,
    cluster: &Cluster,
) -> Result<Json, Failure> {
    let api_version =
        if kind.group.is_empty() { kind.version.clone() } else { format!("{}/{}", kind.group, kind.version) };
    // As another version it is another resource.
    let resource = match cluster.kinds().by_kind(&api_version, &kind.kind) {
        Some(resource) if sent.subresource.is_empty() => resource,
        _ => sent.resource,
    };
    let custom = cluster.mutations().is_custom(kind);
    if sent.subresource.is_empty() && mutation.kind == PatchKind::JsonPatch {
        same_kind(object, &api_version, kind, custom)?;
    }
    let sent = Submission { resource, object, ..*sent };
    let received = cluster.kinds().decode(sent).map_err(|refused| match (refused, mutation.kind) {
        (Refused::Decode(text), PatchKind::JsonPatch) => {
            let (_, text) = text.split_once(" cannot be handled as a ").unwrap_or(("", &text));
            let text = text.split_once(": ").map_or(text, |(_, text)| text);
            Failure::Internal(text.to_owned())
        }
        (refused, _) => Failure::NoVerdict(refused.to_string()),
    })?;
    // JSON patches are read strictly, but for kinds of CustomResourceDefinitions.
    if mutation.kind == PatchKind::JsonPatch && !received.warnings.is_empty() && !custom {
        return Err(Failure::Internal(format!("strict decoding error: {}", received.warnings.join(", "))));
    }
    Ok(received.object)
}
