//! The types of a request's parts, and the fields that are always present: from the schemas of its kinds.

use std::{collections::BTreeMap, rc::Rc};

use palisade_cel::schema::{Kind, Schemas};
use serde_json::Value as Json;

/// The type of a part of a request.
#[derive(Clone, Debug)]
pub enum Type {
    /// A string of any content.
    Text,
    /// An integer of 64 bits.
    Int,
    /// A bool.
    Bool,
    /// Anything else: quantities, times, values of any type.
    Other,
    /// An object with these fields.
    Object(Rc<Object>),
    /// A list.
    List(Rc<Type>),
    /// A map with keys of any text.
    Map(Rc<Type>),
}

/// The fields of an object.
pub type Object = BTreeMap<Rc<str>, Field>;

/// A field of an object.
#[derive(Clone, Debug)]
pub struct Field {
    /// The type of its value.
    pub of: Type,
    /// Whether each object has it.
    pub always: bool,
}

/// Structs that Go always serializes, although their fields are not required. An object's own are in [`ROOT`].
const STRUCTS: &[&str] = &["PodTemplateSpec", "JobTemplateSpec"];
/// Fields that validation requires, before policies see the object, or that are such structs.
const VALIDATED: &[(&str, &str)] =
    &[("PodTemplate", "template"), ("ReplicaSetSpec", "template"), ("ReplicationControllerSpec", "template")];
/// The fields of each object.
const ROOT: &[&str] = &["apiVersion", "kind", "metadata", "spec"];
/// How deep schemas are read that contain themselves.
const MOST_DEEP: usize = 24;

/// The type of the objects of a kind; `None` if its schema is unknown.
///
/// A field that the schema requires is present in each object: its type in Go has no `omitempty`, and an API server
/// serializes objects before policies see them. Those of a custom resource are validated.
pub fn of_kind(schemas: &Schemas, kind: &Kind) -> Option<Type> {
    let Type::Object(object) = of(schemas, schemas.of_kind(kind)?, 0) else { return None };
    let fields = object.iter().map(|(name, field)| {
        let always = field.always || ROOT.contains(&&**name) || VALIDATED.contains(&(kind.kind.as_str(), &**name));
        (Rc::clone(name), Field { of: field.of.clone(), always })
    });
    Some(Type::Object(Rc::new(fields.collect())))
}

fn of(schemas: &Schemas, schema: &Json, deep: usize) -> Type {
    if deep > MOST_DEEP {
        return Type::Other;
    }
    let text = |key: &str| schema.get(key).and_then(Json::as_str).unwrap_or_default();
    let referred = |schema: &Json| schema.get("$ref").and_then(Json::as_str).map(str::to_owned);
    let wrapped = || schema.get("allOf").and_then(Json::as_array)?.iter().find_map(referred);
    if let Some(name) = referred(schema).or_else(wrapped) {
        let Some(found) = schemas.named(&name) else { return Type::Other };
        let found = of(schemas, found, deep + 1);
        let short = name.rsplit('.').next().unwrap_or_default();
        let Type::Object(object) = found else { return found };
        let field = |(name, field): (&Rc<str>, &Field)| {
            let always = field.always || STRUCTS.contains(&short) || VALIDATED.contains(&(short, &**name));
            (Rc::clone(name), Field { always, of: field.of.clone() })
        };
        return Type::Object(Rc::new(object.iter().map(field).collect()));
    }
    if text("format") == "int-or-string" || schema.get("x-kubernetes-int-or-string").is_some() {
        return Type::Other;
    }
    match text("type") {
        "string" if text("format").is_empty() => Type::Text,
        "integer" => Type::Int,
        "boolean" => Type::Bool,
        "array" => schema.get("items").map_or(Type::Other, |items| Type::List(Rc::new(of(schemas, items, deep + 1)))),
        "object" => {
            if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
                return Type::Map(Rc::new(of(schemas, values, deep + 1)));
            }
            let Some(properties) = schema.get("properties").and_then(Json::as_object) else { return Type::Other };
            let required = schema.get("required").and_then(Json::as_array);
            let fields = properties.iter().map(|(name, schema)| {
                let always = required.is_some_and(|required| required.iter().any(|one| one == name));
                (name.as_str().into(), Field { of: of(schemas, schema, deep + 1), always })
            });
            Type::Object(Rc::new(fields.collect()))
        }
        _ => Type::Other,
    }
}

/// An object with these fields; a name that ends with `?` is that of a field that can be absent.
fn object(fields: &[(&str, Type)]) -> Type {
    let field = |(name, of): &(&str, Type)| {
        (name.trim_end_matches('?').into(), Field { of: of.clone(), always: !name.ends_with('?') })
    };
    Type::Object(Rc::new(fields.iter().map(field).collect()))
}

/// The type of `request`. Each has the name of a user; a request for a namespaced object has its namespace.
pub fn request() -> Type {
    let texts = || Type::List(Rc::new(Type::Text));
    let version = || object(&[("group", Type::Text), ("version", Type::Text), ("kind", Type::Text)]);
    let resource = || object(&[("group", Type::Text), ("version", Type::Text), ("resource", Type::Text)]);
    let user =
        [("username", Type::Text), ("uid?", Type::Text), ("groups?", texts()), ("extra?", Type::Map(Rc::new(texts())))];
    object(&[
        ("kind", version()),
        ("resource", resource()),
        ("subResource?", Type::Text),
        ("requestKind?", version()),
        ("requestResource?", resource()),
        ("requestSubResource?", Type::Text),
        ("name?", Type::Text),
        ("namespace", Type::Text),
        ("operation", Type::Text),
        ("userInfo", object(&user)),
        ("dryRun?", Type::Bool),
        ("options?", Type::Other),
    ])
}

/// The type of `namespaceObject`.
pub fn namespace() -> Type {
    let texts = || Type::Map(Rc::new(Type::Text));
    let metadata = [
        ("name", Type::Text),
        ("generateName?", Type::Text),
        ("labels?", texts()),
        ("annotations?", texts()),
        ("finalizers?", Type::List(Rc::new(Type::Text))),
    ];
    let status = object(&[("phase?", Type::Text), ("conditions?", Type::Other)]);
    let spec = object(&[("finalizers?", Type::List(Rc::new(Type::Text)))]);
    object(&[("metadata", object(&metadata)), ("spec?", spec), ("status?", status)])
}
