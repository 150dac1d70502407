//! Values in a profile: each is a constant, or refers to a parameter that differs by namespace.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::reference::{ParameterName, Piece, pieces};

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, strum::Display)]
pub enum ParameterType {
    /// A 64-bit integer.
    Integer,
    /// A string of at most 256 characters.
    String,
    /// `true` or `false`.
    Boolean,
    /// Up to 64 strings. In an annotation they are separated by commas.
    StringList,
}

/// The value of a parameter in one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// Of a parameter of type `Integer`.
    Integer(i64),
    /// Of a parameter of type `String`.
    String(String),
    /// Of a parameter of type `Boolean`.
    Boolean(bool),
    /// Of a parameter of type `StringList`.
    StringList(Vec<String>),
}

impl Resolved {
    /// The type of the parameter that has such a value.
    pub fn kind(&self) -> ParameterType {
        match self {
            Self::Integer(_) => ParameterType::Integer,
            Self::String(_) => ParameterType::String,
            Self::Boolean(_) => ParameterType::Boolean,
            Self::StringList(_) => ParameterType::StringList,
        }
    }
}

/// The values of all parameters in one namespace.
pub type Values = BTreeMap<ParameterName, Resolved>;

/// A number, or `$name` for a parameter of type `Integer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Integer {
    /// The same in every namespace.
    Constant(i64),
    /// The value of the parameter.
    Parameter(ParameterName),
}

/// A switch, or `$name` for a parameter of type `Boolean`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flag {
    /// The same in every namespace.
    Constant(bool),
    /// The value of the parameter.
    Parameter(ParameterName),
}

/// A string in which `$name` or `${name}` refers to a parameter of type `String` or `Integer`, and `$$` is a dollar
/// sign. As the whole element of a list, `$name` may also refer to a parameter of type `StringList`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(pub String);

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<i64> for Integer {
    fn from(value: i64) -> Self {
        Self::Constant(value)
    }
}

impl From<bool> for Flag {
    fn from(value: bool) -> Self {
        Self::Constant(value)
    }
}

/// The name in `$name` or `${name}`, if `text` is exactly one reference.
pub(crate) fn whole_reference(text: &str) -> Option<&str> {
    match pieces(text).ok()?.as_slice() {
        [Piece::Reference(name)] => Some(name),
        _ => None,
    }
}

fn reference_or<E: de::Error>(text: &str, expected: &dyn de::Expected) -> Result<ParameterName, E> {
    whole_reference(text).map(str::to_owned).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), expected))
}

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Integer;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer, or $name of a parameter")
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Integer, E> {
                Ok(Integer::Constant(v))
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Integer, E> {
                i64::try_from(v)
                    .map(Integer::Constant)
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(v), &self))
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Integer, E> {
                reference_or(v, &self).map(Integer::Parameter)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Serialize for Integer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Constant(value) => serializer.serialize_i64(*value),
            Self::Parameter(name) => serializer.collect_str(&format_args!("${name}")),
        }
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Flag;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or $name of a parameter")
            }
            fn visit_bool<E: de::Error>(self, v: bool) -> Result<Flag, E> {
                Ok(Flag::Constant(v))
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Flag, E> {
                reference_or(v, &self).map(Flag::Parameter)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Serialize for Flag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Constant(value) => serializer.serialize_bool(*value),
            Self::Parameter(name) => serializer.collect_str(&format_args!("${name}")),
        }
    }
}

/// The form of a whole reference, as a regular expression of JSON schema.
const REFERENCE: &str = r"^\$(\{[a-z][A-Za-z0-9]*\}|[a-z][A-Za-z0-9]*)$";

impl JsonSchema for Integer {
    fn schema_name() -> Cow<'static, str> {
        "Integer".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": REFERENCE,
            "maxLength": 66,
        })
    }
}

impl JsonSchema for Flag {
    fn schema_name() -> Cow<'static, str> {
        "Flag".into()
    }
    fn inline_schema() -> bool {
        true
    }
    // A structural schema knows no "boolean or string", so the type is left open, and what is neither is
    // refused by the controller (condition Accepted) and not by the API server.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-preserve-unknown-fields": true,
            "anyOf": [{"enum": [true, false]}, {"pattern": REFERENCE, "minLength": 2}],
        })
    }
}

impl JsonSchema for Text {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "minLength": 1, "maxLength": 256})
    }
}
