//! Deserialization of a document to a type, with the place of each error.

use std::{collections::BTreeMap, fmt, ops::Range};

use serde::{
    Deserializer,
    de::{
        self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
        value::{MapAccessDeserializer, StrDeserializer},
    },
    forward_to_deserialize_any,
};

use super::{
    scalar::Scalar,
    value::{Entry, Read, Value},
};

/// Why something is not of a type.
#[derive(Debug)]
pub(crate) struct Mistake {
    pub cause: Cause,
    /// The path: `spec.parameters[1].default`.
    pub path: String,
    /// The bytes of the key, if the key is wrong.
    pub key: Option<Range<usize>>,
}

/// The error.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cause {
    UnknownField { field: String, expected: &'static [&'static str] },
    UnknownVariant { variant: String, expected: &'static [&'static str] },
    Missing(&'static str),
    Repeated,
    Is { found: String, wanted: String },
    Other(String),
}

/// Reads a type. With `own`, any scalar is a text where one is expected, as it is spelt.
pub(crate) fn from_value<T: DeserializeOwned>(read: &Read<'_, '_>, own: bool) -> Result<T, Box<Mistake>> {
    T::deserialize(Of { read, own }).map_err(|error| {
        let Error { cause, path, key } = *error.0;
        let mut text = String::new();
        for step in path.iter().rev() {
            if !text.is_empty() && !step.starts_with('[') {
                text.push('.');
            }
            text.push_str(step);
        }
        Box::new(Mistake { cause, path: text, key })
    })
}

/// The input of serde.
#[derive(Clone, Copy)]
struct Of<'t, 'n, 'a> {
    read: &'t Read<'n, 'a>,
    own: bool,
}

#[derive(Debug)]
struct Boxed(Box<Error>);

#[derive(Debug)]
struct Error {
    cause: Cause,
    /// From the inside.
    path: Vec<String>,
    key: Option<Range<usize>>,
}

impl Boxed {
    fn of(cause: Cause) -> Self {
        Self(Box::new(Error { cause, path: Vec::new(), key: None }))
    }

    fn below(mut self, step: impl Into<String>) -> Self {
        self.0.path.push(step.into());
        self
    }

    /// Puts the error at the key, and not at its value.
    fn at_key(mut self, entry: &Entry<'_, '_>) -> Self {
        self.0.key = Some(entry.key.span.clone());
        self.below(&*entry.name)
    }
}

impl fmt::Display for Boxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.cause {
            Cause::UnknownField { field, .. } => write!(f, "unknown field {field:?}"),
            Cause::UnknownVariant { variant, .. } => write!(f, "unknown value {variant:?}"),
            Cause::Missing(field) => write!(f, "missing field {field:?}"),
            Cause::Repeated => f.write_str("given twice"),
            Cause::Is { found, wanted } => write!(f, "is {found}, not {wanted}"),
            Cause::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Boxed {}

impl de::Error for Boxed {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::of(Cause::Other(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn de::Expected) -> Self {
        Self::of(Cause::Is { found: found.to_string(), wanted: wanted.to_string() })
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn de::Expected) -> Self {
        Self::invalid_type(found, wanted)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::of(Cause::UnknownVariant { variant: variant.to_owned(), expected })
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::of(Cause::UnknownField { field: field.to_owned(), expected })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::of(Cause::Missing(field))
    }

    fn duplicate_field(_: &'static str) -> Self {
        Self::of(Cause::Repeated)
    }
}

impl Of<'_, '_, '_> {
    fn unexpected(&self) -> Unexpected<'_> {
        match &self.read.value {
            Value::List(_) => Unexpected::Seq,
            Value::Map(_) => Unexpected::Map,
            Value::Scalar(scalar) => match scalar {
                Scalar::Null => Unexpected::Unit,
                Scalar::Bool(value) => Unexpected::Bool(*value),
                Scalar::Int(value) => Unexpected::Signed(*value),
                Scalar::UInt(value) => Unexpected::Unsigned(*value),
                Scalar::Float(value) => Unexpected::Float(*value),
                Scalar::Text(text) => Unexpected::Str(text),
            },
        }
    }

    /// The scalar as it is spelt.
    fn written(&self) -> Option<&str> {
        match &self.read.value {
            Value::Scalar(Scalar::Text(text)) => Some(text),
            Value::Scalar(_) if self.own => self.read.node.text(),
            _ => None,
        }
    }
}

impl<'de> Deserializer<'de> for Of<'_, '_, '_> {
    type Error = Boxed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Boxed> {
        match &self.read.value {
            Value::Scalar(scalar) => match scalar {
                Scalar::Null => visitor.visit_unit(),
                Scalar::Bool(value) => visitor.visit_bool(*value),
                // As in serde_json, for types that accept only unsigned numbers.
                Scalar::Int(value) => match u64::try_from(*value) {
                    Ok(value) => visitor.visit_u64(value),
                    Err(_) => visitor.visit_i64(*value),
                },
                Scalar::UInt(value) => visitor.visit_u64(*value),
                Scalar::Float(value) => visitor.visit_f64(*value),
                Scalar::Text(text) => visitor.visit_str(text),
            },
            Value::List(items) => {
                let mut list = List { items: items.iter().enumerate(), own: self.own };
                let value = visitor.visit_seq(&mut list)?;
                match list.items.len() {
                    0 => Ok(value),
                    left => Err(de::Error::invalid_length(items.len(), &&*format!("{} elements", items.len() - left))),
                }
            }
            Value::Map(entries) => visitor.visit_map(Fields::new(entries, self.own)?),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Boxed> {
        match &self.read.value {
            Value::Scalar(Scalar::Null) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Boxed> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Boxed> {
        if let Some(text) = self.written() {
            return visitor.visit_enum(StrDeserializer::new(text));
        }
        match &self.read.value {
            Value::Map(entries) => visitor.visit_enum(MapAccessDeserializer::new(Fields::new(entries, self.own)?)),
            _ => Err(de::Error::invalid_type(self.unexpected(), &"a string")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Boxed> {
        match self.written() {
            Some(text) => visitor.visit_str(text),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Boxed> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Boxed> {
        self.deserialize_str(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 bytes byte_buf unit unit_struct seq tuple tuple_struct map
        struct identifier ignored_any
    }
}

struct List<'t, 'n, 'a> {
    items: std::iter::Enumerate<std::slice::Iter<'t, Read<'n, 'a>>>,
    own: bool,
}

impl<'de> SeqAccess<'de> for &mut List<'_, '_, '_> {
    type Error = Boxed;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Boxed> {
        let Some((index, read)) = self.items.next() else { return Ok(None) };
        let element = seed.deserialize(Of { read, own: self.own });
        element.map(Some).map_err(|error| error.below(format!("[{index}]")))
    }
}

struct Fields<'t, 'n, 'a> {
    entries: std::vec::IntoIter<&'t Entry<'n, 'a>>,
    current: Option<&'t Entry<'n, 'a>>,
    own: bool,
}

impl<'t, 'n, 'a> Fields<'t, 'n, 'a> {
    /// The fields, each of which may be given only once in one place.
    fn new(entries: &'t [Entry<'n, 'a>], own: bool) -> Result<Self, Boxed> {
        let mut last = BTreeMap::new();
        for entry in entries {
            if let Some((_, before)) = last.insert(&*entry.name, (last.len(), entry)).filter(|_| !entry.merged) {
                let before: &Entry<'_, '_> = before;
                if !before.merged {
                    return Err(Boxed::of(Cause::Repeated).at_key(entry));
                }
            }
        }
        let mut entries: Vec<_> = last.into_values().collect();
        entries.sort_by_key(|(position, _)| *position);
        let entries: Vec<_> = entries.into_iter().map(|(_, entry)| entry).collect();
        Ok(Self { entries: entries.into_iter(), current: None, own })
    }
}

impl<'de> MapAccess<'de> for Fields<'_, '_, '_> {
    type Error = Boxed;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Boxed> {
        let Some(entry) = self.entries.next() else { return Ok(None) };
        self.current = Some(entry);
        let name: StrDeserializer<'_, Boxed> = (&*entry.name).into_deserializer();
        seed.deserialize(name).map(Some).map_err(|error| error.at_key(entry))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Boxed> {
        let Some(entry) = self.current.take() else {
            return Err(de::Error::custom("value without a key"));
        };
        seed.deserialize(Of { read: &entry.value, own: self.own }).map_err(|error| error.below(&*entry.name))
    }
}
