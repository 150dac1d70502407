//! JSON into Go types, as `sigs.k8s.io/json` decodes it: keys are case-sensitive, null leaves a value as it is, fields
//! that the types do not have are dropped with a warning, and the first value of a wrong type is an error.
//!
//! A decoded object is JSON again, with less in it: a key is absent if the Go value is nil or, unless behind a pointer,
//! zero. Structs that are not pointers are always there.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use palisade_cel::strfmt::decode_base64;
use serde_json::{Map, Value};

use super::{
    own::{self, Wrong},
    table::{Own, Struct, Table, Type},
};

/// Decodes one object.
pub(super) struct Decoder<'t> {
    table: &'t Table,
    /// The keys to the value at hand, and the name of the struct that the last is a field of.
    stack: Vec<String>,
    of: String,
    /// The same with indices and keys of maps, as in warnings.
    path: String,
    /// The paths of fields that the types do not have.
    pub unknown: Vec<String>,
    /// The first wrong type.
    error: Option<String>,
    /// The path of the value that an error is about.
    pub at: String,
}

impl<'t> Decoder<'t> {
    pub(super) fn new(table: &'t Table) -> Self {
        Self {
            table,
            stack: Vec::new(),
            of: String::new(),
            path: String::new(),
            unknown: Vec::new(),
            error: None,
            at: String::new(),
        }
    }

    /// The object as a struct of this name, or the text of the error.
    pub(super) fn object(&mut self, name: &str, value: &Value) -> Result<Map<String, Value>, String> {
        let decoded = match self.value(&Type::Struct(name.into()), value) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.at.clone_from(&self.path);
                return Err(error);
            }
        };
        match (self.error.take(), decoded) {
            (Some(error), _) => Err(error),
            (None, Some(Value::Object(object))) => Ok(object),
            (None, _) => Ok(Map::new()),
        }
    }

    /// The metadata of an object that has no type, decoded separately: field names in errors are relative to it.
    pub(super) fn metadata(&mut self, value: &Value) -> Result<Map<String, Value>, String> {
        self.metadata_at("metadata", value)
    }

    /// The metadata at a path, which warnings name.
    pub(super) fn metadata_at(&mut self, path: &str, value: &Value) -> Result<Map<String, Value>, String> {
        path.clone_into(&mut self.path);
        self.object("meta/v1.ObjectMeta", value)
    }

    fn mismatch(&mut self, found: &str, of: &Type) {
        let text = self.mismatch_text(found, &of.go_name());
        self.keep(text);
    }

    /// Keeps the first error; decoding goes on.
    fn keep(&mut self, text: String) {
        if self.error.is_none() {
            self.at.clone_from(&self.path);
            self.error = Some(text);
        }
    }

    fn mismatch_text(&self, found: &str, wanted: &str) -> String {
        let place = if self.stack.is_empty() {
            format!("Go value of type {wanted}")
        } else {
            format!("Go struct field {}.{} of type {wanted}", self.of, self.stack.join("."))
        };
        format!("json: cannot unmarshal {found} into {place}")
    }

    /// None for nil; the zero of its type for null where that is not nil. An error ends decoding at once.
    fn value(&mut self, of: &Type, value: &Value) -> Result<Option<Value>, String> {
        if value.is_null() {
            return Ok(match of.under() {
                Type::Pointer(_) | Type::List(_) | Type::Map(_) | Type::Bytes => None,
                _ => Some(self.zero(of)),
            });
        }
        Ok(Some(match (of.under(), value) {
            (Type::Pointer(inner), _) => return self.value(inner, value),
            (Type::Own(own), _) => match own::decode(*own, value) {
                Ok(value) => value,
                Err(Wrong::Text(text)) => return Err(text),
                Err(Wrong::Type(found, wanted)) => return Err(self.mismatch_text(&found, wanted)),
            },
            (Type::Struct(name), Value::Object(object)) => {
                let name = name.clone();
                Value::Object(self.fields(&name, object)?)
            }
            (Type::List(inner), Value::Array(list)) => {
                let mut out = Vec::with_capacity(list.len());
                let length = self.path.len();
                for (i, element) in list.iter().enumerate() {
                    let _ = write!(self.path, "[{i}]");
                    out.push(self.value(inner, element)?.unwrap_or(Value::Null));
                    self.path.truncate(length);
                }
                Value::Array(out)
            }
            (Type::Map(inner), Value::Object(object)) => {
                let mut out = Map::new();
                for (key, element) in object {
                    let length = self.enter(key);
                    out.insert(key.clone(), self.value(inner, element)?.unwrap_or(Value::Null));
                    self.path.truncate(length);
                }
                Value::Object(out)
            }
            (Type::Bytes, Value::String(text)) => match decode_base64(text) {
                Ok(bytes) => Value::from(STANDARD.encode(&bytes)),
                Err(at) => {
                    self.keep(format!("illegal base64 data at input byte {at}"));
                    return Ok(None);
                }
            },
            (Type::Bytes, Value::Array(list)) => self.octets(list),
            (Type::Text, Value::String(text)) => Value::from(text.as_str()),
            (Type::Bool, Value::Bool(value)) => Value::from(*value),
            (Type::Int(bits), Value::Number(number)) => match own::integer(number, *bits) {
                Ok(number) => Value::from(number),
                Err(found) => {
                    self.mismatch(&found, of);
                    return Ok(None);
                }
            },
            (Type::Float, Value::Number(number)) => Value::from(number.as_f64()),
            (_, other) => {
                self.mismatch(own::shape(other), of);
                return Ok(None);
            }
        }))
    }

    /// Bytes that are written as numbers.
    fn octets(&mut self, list: &[Value]) -> Value {
        let mut bytes = Vec::with_capacity(list.len());
        for value in list {
            match value.as_u64().and_then(|number| u8::try_from(number).ok()) {
                Some(byte) => bytes.push(byte),
                None if value.is_null() => bytes.push(0),
                None => {
                    let found = match value {
                        Value::Number(number) => format!("number {number}"),
                        other => own::shape(other).to_owned(),
                    };
                    let text = self.mismatch_text(&found, "uint8");
                    self.keep(text);
                    bytes.push(0);
                }
            }
        }
        Value::from(STANDARD.encode(&bytes))
    }

    /// Steps into a key, and tells how long the path was.
    fn enter(&mut self, key: &str) -> usize {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        length
    }

    fn fields(&mut self, name: &str, object: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let table = self.table;
        let Some(of) = table.get(name) else { return Ok(object.clone()) };
        let mut out = self.zero_struct(of);
        for (key, value) in object {
            let Some(field) = of.field(key) else {
                let length = self.enter(key);
                self.unknown.push(self.path.clone());
                self.path.truncate(length);
                continue;
            };
            let length = self.enter(key);
            let (depth, outer) = (self.stack.len(), self.of.clone());
            self.stack.extend(field.through.iter().cloned());
            self.stack.push(key.clone());
            name.rsplit('.').next().unwrap_or(name).clone_into(&mut self.of);
            let decoded = self.value(&field.of, value)?;
            self.stack.truncate(depth);
            self.of = outer;
            self.path.truncate(length);
            match decoded {
                Some(value) if !is_zero(&field.of, &value) => {
                    out.insert(key.clone(), value);
                }
                _ => {}
            }
        }
        Ok(out)
    }

    /// The decoded value of an unset field: the zero value of its type in Go.
    fn zero(&self, of: &Type) -> Value {
        match of.under() {
            Type::Struct(name) => {
                Value::Object(self.table.get(name).map(|of| self.zero_struct(of)).unwrap_or_default())
            }
            Type::Own(own) => own::zero(*own),
            Type::Text => Value::from(""),
            Type::Bool => Value::from(false),
            Type::Int(_) => Value::from(0),
            Type::Float => Value::from(0.0),
            _ => Value::Null,
        }
    }

    fn zero_struct(&self, of: &Struct) -> Map<String, Value> {
        let structs = of.fields.iter().filter(|field| matches!(field.of.under(), Type::Struct(_)));
        structs.map(|field| (field.name.clone(), self.zero(&field.of))).collect()
    }
}

/// Whether a value is the zero value of a field's type. Values behind pointers never are.
fn is_zero(of: &Type, value: &Value) -> bool {
    match (of.under(), value) {
        (Type::Text, Value::String(text)) => text.is_empty(),
        (Type::Bool, Value::Bool(value)) => !value,
        (Type::Int(_) | Type::Float, Value::Number(number)) => number.as_f64() == Some(0.0),
        (Type::Own(Own::Time | Own::MicroTime), Value::Null) => true,
        _ => false,
    }
}
