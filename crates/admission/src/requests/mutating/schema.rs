//! Types for merging, from schemas (kube-openapi `pkg/schemaconv`, structured-merge-diff `schema`).

use palisade_cel::schema::Schemas;
use serde_json::Value as Json;

/// The type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Numeric,
    String,
    Boolean,
    Untyped,
}

/// A list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ListType<'s> {
    /// Replaced as a whole.
    pub atomic: bool,
    /// The fields by which elements are the same one; without them elements are, if equal.
    pub keys: Vec<&'s str>,
    pub element: TypeRef<'s>,
}

/// A map or struct.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MapType<'s> {
    /// Replaced as a whole.
    pub atomic: bool,
    properties: Option<&'s serde_json::Map<String, Json>>,
    preserve: bool,
    /// Of fields that are not declared; without it there are none.
    element: Option<TypeRef<'s>>,
}

/// The alternatives for a value: it may be any of these.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Atom<'s> {
    pub scalar: Option<Scalar>,
    pub list: Option<ListType<'s>>,
    pub map: Option<MapType<'s>>,
}

/// A type that is not looked at yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TypeRef<'s> {
    /// A schema, whether unknown fields are kept in it, and whether it is atomic here whatever it says itself.
    Schema(&'s Json, bool, Option<bool>),
    /// Anything, with maps that are merged field by field.
    Deduced,
    /// Anything, replaced as a whole.
    Untyped,
}

impl<'s> TypeRef<'s> {
    /// The type that a schema describes.
    pub fn of(schema: &'s Json) -> Self {
        Self::Schema(schema, false, None)
    }

    /// The alternatives for a value of this type; none if the schema has a reference to an unknown schema.
    pub fn resolve(self, schemas: &'s Schemas) -> Option<Atom<'s>> {
        match self {
            Self::Deduced | Self::Untyped => {
                let atomic = self == Self::Untyped;
                let list = ListType { atomic: true, keys: vec![], element: Self::Untyped };
                let map = MapType { atomic, properties: None, preserve: false, element: Some(self) };
                Some(Atom { scalar: Some(Scalar::Untyped), list: Some(list), map: Some(map) })
            }
            Self::Schema(schema, preserve, atomic) => {
                if let Some(name) = reference(schema) {
                    let atomic = map_type(schema).or(atomic);
                    if name.ends_with("api.resource.Quantity") || name.ends_with("api/resource.Quantity") {
                        return Some(Atom { scalar: Some(Scalar::Untyped), ..Atom::default() });
                    }
                    if name.ends_with("runtime.RawExtension") {
                        return Self::Untyped.resolve(schemas);
                    }
                    return Self::Schema(schemas.named(name)?, false, atomic).resolve(schemas);
                }
                let mut atom = parse(schema, preserve);
                if let (Some(map), Some(atomic)) = (&mut atom.map, atomic) {
                    map.atomic = atomic;
                }
                Some(atom)
            }
        }
    }
}

impl<'s> MapType<'s> {
    /// The type of a field; none if there is no such field.
    pub fn field(&self, name: &str) -> Option<TypeRef<'s>> {
        self.declared(name).or(self.element)
    }

    /// The type of a field that the schema declares.
    pub fn declared(&self, name: &str) -> Option<TypeRef<'s>> {
        Some(TypeRef::Schema(self.properties?.get(name)?, self.preserve, None))
    }

    /// The fields that the schema declares.
    pub fn names(&self) -> impl Iterator<Item = &'s str> + use<'s> {
        self.properties.into_iter().flat_map(serde_json::Map::keys).map(String::as_str)
    }

    /// The default of a field.
    pub fn default(&self, name: &str) -> Option<&'s Json> {
        self.properties?.get(name)?.get("default").filter(|default| !default.is_null())
    }
}

fn reference(schema: &Json) -> Option<&str> {
    let of = |schema: &'_ Json| schema.get("$ref").and_then(Json::as_str).map(str::to_owned);
    if of(schema).is_some() {
        return schema.get("$ref")?.as_str();
    }
    match schema.get("allOf")?.as_array()?.as_slice() {
        [only] => only.get("$ref")?.as_str(),
        _ => None,
    }
}

fn map_type(schema: &Json) -> Option<bool> {
    schema.get("x-kubernetes-map-type").and_then(Json::as_str).map(|of| of == "atomic")
}

fn parse(schema: &Json, preserve: bool) -> Atom<'_> {
    let preserve = preserve || schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Json::Bool(true));
    let of = schema.get("type");
    let of = of.and_then(Json::as_array).and_then(|all| all.first()).or(of).and_then(Json::as_str).unwrap_or_default();
    let format = schema.get("format").and_then(Json::as_str).unwrap_or_default();
    let scalar = |scalar| Atom { scalar: Some(scalar), ..Atom::default() };
    match of {
        "object" => Atom { map: Some(map(schema, preserve)), ..Atom::default() },
        "array" => Atom { list: Some(list(schema, preserve)), ..Atom::default() },
        "integer" | "number" => scalar(Scalar::Numeric),
        "boolean" => scalar(Scalar::Boolean),
        "string" if matches!(format, "" | "byte") => scalar(Scalar::String),
        "string" => scalar(Scalar::Untyped),
        _ => {
            Atom { scalar: Some(Scalar::Untyped), list: Some(list(schema, preserve)), map: Some(map(schema, preserve)) }
        }
    }
}

fn map(schema: &Json, preserve: bool) -> MapType<'_> {
    let properties = schema.get("properties").and_then(Json::as_object);
    let element = match schema.get("additionalProperties") {
        None if preserve || properties.is_none_or(serde_json::Map::is_empty) => Some(TypeRef::Deduced),
        None | Some(Json::Bool(false)) => None,
        Some(Json::Bool(true)) => Some(TypeRef::Deduced),
        Some(of) => Some(TypeRef::Schema(of, preserve, None)),
    };
    MapType { atomic: map_type(schema) == Some(true), properties, preserve, element }
}

fn list(schema: &Json, preserve: bool) -> ListType<'_> {
    let kind = schema.get("x-kubernetes-list-type").and_then(Json::as_str);
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Json::as_array);
    ListType {
        atomic: !matches!(kind, Some("set" | "map")),
        keys: if kind == Some("map") { keys.into_iter().flatten().filter_map(Json::as_str).collect() } else { vec![] },
        element: schema.get("items").map_or(TypeRef::Untyped, |items| TypeRef::Schema(items, preserve, None)),
    }
}

/// The kind of a value. It selects one of the alternatives of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Scalar,
    List,
    Map,
    Null,
}

/// The alternative of a type for this kind of value; all alternatives if there is none for it (`deduceAtom`).
pub(super) fn deduce(atom: Atom<'_>, kind: Kind) -> Atom<'_> {
    match (kind, &atom) {
        (Kind::Scalar, Atom { scalar: Some(_), .. }) => Atom { list: None, map: None, ..atom },
        (Kind::List, Atom { list: Some(_), .. }) => Atom { scalar: None, map: None, ..atom },
        (Kind::Map, Atom { map: Some(_), .. }) => Atom { scalar: None, list: None, ..atom },
        _ => atom,
    }
}
