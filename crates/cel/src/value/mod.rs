//! Values: the inputs and results of expressions.
//!
//! Values borrow from the JSON documents that are the input ([`Value::from_json`]). Nothing is copied until an
//! expression makes a new value.

mod container;
mod equal;
mod error;
mod opaque;
mod schema;
mod structs;
mod text;
mod typed;

use std::{cmp::Ordering, fmt, ops::Deref, sync::Arc};

use serde_json::Value as Json;

pub use crate::library::time::{Duration, Timestamp};
pub use container::{Entries, List, Map};
pub(crate) use container::{lossless_int, lossless_uint};
pub(crate) use equal::compare;
pub use error::Error;
pub use opaque::Opaque;
pub(crate) use opaque::{Authorization, Kind, ResourceCheck};
pub use structs::{JSON_PATCH, OBJECT, Struct};

/// The result of an expression, or a part of its input.
#[derive(Clone, Debug, Default)]
pub enum Value<'a> {
    /// `null`.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// A text.
    String(Str<'a>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A point in time.
    Timestamp(Timestamp),
    /// A span of time.
    Duration(Duration),
    /// A type, by its name.
    Type(Str<'a>),
    /// A list.
    List(List<'a>),
    /// A map.
    Map(Map<'a>),
    /// An optional, with its value if there is one.
    Optional(Option<Arc<Value<'a>>>),
    /// Of a type that only functions make and read.
    Opaque(Opaque),
    /// Constructed by the expression, with a name for its type.
    Struct(Arc<Struct<'a>>),
}

/// A text, borrowed or shared.
#[derive(Clone)]
pub enum Str<'a> {
    /// From the input, or from the program.
    Borrowed(&'a str),
    /// Made by the expression.
    Shared(Arc<str>),
}

impl Str<'_> {
    fn into_owned(self) -> Str<'static> {
        match self {
            Self::Borrowed(text) => Str::Shared(text.into()),
            Self::Shared(text) => Str::Shared(text),
        }
    }
}

impl Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl PartialEq for Str<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Str<'_> {}

impl PartialOrd for Str<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Str<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl<'a> From<&'a str> for Str<'a> {
    fn from(text: &'a str) -> Self {
        Self::Borrowed(text)
    }
}

impl From<String> for Str<'_> {
    fn from(text: String) -> Self {
        Self::Shared(text.into())
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Self::String(value.into())
    }
}

impl<'a> From<Vec<Value<'a>>> for Value<'a> {
    fn from(value: Vec<Value<'a>>) -> Self {
        Self::List(List::Items(Arc::new(value)))
    }
}

impl<'a> From<Entries<'a>> for Value<'a> {
    fn from(value: Entries<'a>) -> Self {
        Self::Map(Map::Entries(Arc::new(value)))
    }
}

impl From<Kind> for Value<'_> {
    fn from(value: Kind) -> Self {
        Self::Opaque(Opaque::new(value))
    }
}

impl<'a> Value<'a> {
    /// A JSON value as CEL sees it in unstructured objects: a number without point and exponent is an int if it fits,
    /// and all others are doubles.
    pub fn from_json(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(value) => Self::Int(value),
                None => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::String(Str::Borrowed(text)),
            Json::Array(items) => Self::List(List::Json(Arc::new(items))),
            Json::Object(fields) => Self::Map(Map::Json(fields)),
        }
    }

    /// The same value, with copies of what it borrows.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(value) => Value::Int(value),
            Self::Uint(value) => Value::Uint(value),
            Self::Double(value) => Value::Double(value),
            Self::String(text) => Value::String(text.into_owned()),
            Self::Bytes(bytes) => Value::Bytes(bytes),
            Self::Timestamp(time) => Value::Timestamp(time),
            Self::Duration(duration) => Value::Duration(duration),
            Self::Type(name) => Value::Type(name.into_owned()),
            Self::List(list) => list.iter().map(Value::into_owned).collect::<Vec<_>>().into(),
            Self::Map(Map::Variables(count)) => Value::Map(Map::Variables(count)),
            Self::Map(map) => Value::Map(Map::Entries(Arc::new(map.into_entries().into_owned()))),
            Self::Optional(value) => Value::Optional(value.map(|value| Arc::new(Value::clone(&value).into_owned()))),
            Self::Opaque(opaque) => Value::Opaque(opaque),
            Self::Struct(of) => Value::Struct(Arc::new(Arc::unwrap_or_clone(of).into_owned())),
        }
    }

    /// An optional, with a value or without.
    pub fn optional(value: Option<Self>) -> Self {
        Self::Optional(value.map(Arc::new))
    }

    /// An optional with a value.
    pub(crate) fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// The value, unless it is one that does not fit its schema.
    ///
    /// # Errors
    /// The error that it is.
    pub(crate) fn checked(self) -> Result<Self, Error> {
        match &self {
            Self::Opaque(opaque) => match opaque.kind() {
                Kind::Failure(error) => Err(error.clone()),
                _ => Ok(self),
            },
            _ => Ok(self),
        }
    }

    /// Why it does not fit its schema, if it does not.
    pub fn failure(&self) -> Option<String> {
        self.clone().checked().err().map(|error| error.to_string())
    }

    /// The value of an optional on its way out.
    ///
    /// # Errors
    /// The error that it is.
    pub(crate) fn unwrapped(value: &Arc<Self>) -> Result<Self, Error> {
        if let Self::Opaque(opaque) = &**value
            && let Kind::Failure(error) = opaque.kind()
        {
            return Err(error.clone());
        }
        Ok(Self::clone(value))
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The name of the type at run time, as `type(x)` gives it.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Type(_) => "type",
            Self::List(_) => "list",
            Self::Map(Map::Variables(_)) => "kubernetes.variables",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Opaque(opaque) => opaque.type_name(),
            Self::Struct(of) => of.name(),
        }
    }

    /// The name of the type in Go, which some of cel-go's errors show.
    pub(crate) fn go_type(&self) -> &'static str {
        match self {
            Self::Null => "types.Null",
            Self::Bool(_) => "types.Bool",
            Self::Int(_) => "types.Int",
            Self::Uint(_) => "types.Uint",
            Self::Double(_) => "types.Double",
            Self::String(_) => "types.String",
            Self::Bytes(_) => "types.Bytes",
            Self::Timestamp(_) => "types.Timestamp",
            Self::Duration(_) => "types.Duration",
            Self::Type(_) => "*types.Type",
            Self::List(_) => "*types.baseList",
            Self::Map(Map::Variables(_)) => "*lazy.MapValue",
            Self::Map(_) => "*types.baseMap",
            Self::Optional(_) => "*types.Optional",
            Self::Opaque(opaque) => opaque.go_type(),
            Self::Struct(of) => of.go_type(),
        }
    }

    /// The size, if the value has one: code points of a text, bytes, elements, entries (cel-go `traits.Sizer`).
    pub(crate) fn size(&self) -> Option<usize> {
        match self {
            Self::String(text) => Some(if text.is_ascii() { text.len() } else { text.chars().count() }),
            Self::Bytes(bytes) => Some(bytes.len()),
            Self::List(list) => Some(list.len()),
            Self::Map(map) => Some(map.len()),
            Self::Opaque(opaque) => opaque.size(),
            _ => None,
        }
    }

    /// Whether it is what `optional.ofNonZeroValue` takes for nothing (cel-go `traits.Zeroer`).
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(value) => !value,
            Self::Int(value) => *value == 0,
            Self::Uint(value) => *value == 0,
            Self::Double(value) => *value == 0.0,
            Self::String(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Timestamp(time) => *time == Timestamp::ZERO,
            Self::Duration(duration) => duration.0 == 0,
            Self::List(list) => list.is_empty(),
            Self::Map(map) => map.is_empty(),
            Self::Struct(of) => of.is_zero(),
            Self::Type(_) | Self::Optional(_) | Self::Opaque(_) => false,
        }
    }

    /// `==`. Values of different types are unequal, except numbers; some opaque types cannot be compared.
    ///
    /// # Errors
    /// `no such overload`.
    pub fn equals(&self, other: &Self) -> Result<bool, Error> {
        equal::equal(self, other)
    }

    /// The value in the text form of the golden files (`tests/oracle/README.md`): different values have different texts.
    pub fn canonical(&self) -> String {
        text::canonical(self)
    }
}
