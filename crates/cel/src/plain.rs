//! Values.

use std::{collections::BTreeMap, fmt, sync::Arc};

use cel::objects::{Key, Map};
use serde_json::Value as Json;

/// The result of an expression, or a part of its input.
#[derive(Clone, Debug, PartialEq)]
pub struct Value(pub(crate) cel::Value);

impl Value {
    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self.0 {
            cel::Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            cel::Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The strings, if it is a list of nothing else.
    pub fn as_strings(&self) -> Option<Vec<&str>> {
        let cel::Value::List(items) = &self.0 else { return None };
        items
            .iter()
            .map(|item| match item {
                cel::Value::String(text) => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// The name of its type, as CEL has it.
    pub fn type_name(&self) -> String {
        self.0.type_of().to_string()
    }

    /// An object with these fields.
    pub fn object(fields: &BTreeMap<String, Self>) -> Self {
        let map = fields.iter().map(|(key, value)| (key.as_str().into(), value.0.clone())).collect();
        Self(cel::Value::Map(Map { map: Arc::new(map) }))
    }
}

/// As the API server sees an unstructured object: a whole number is an int, every other number a double.
impl From<&Json> for Value {
    fn from(json: &Json) -> Self {
        Self(convert(json))
    }
}

fn convert(json: &Json) -> cel::Value {
    match json {
        Json::Null => cel::Value::Null,
        Json::Bool(value) => cel::Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(int) => cel::Value::Int(int),
            None => cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => cel::Value::String(Arc::new(text.clone())),
        Json::Array(items) => cel::Value::List(Arc::new(items.iter().map(convert).collect())),
        Json::Object(fields) => {
            let map = fields.iter().map(|(key, value)| (Key::from(key.as_str()), convert(value))).collect();
            cel::Value::Map(Map { map: Arc::new(map) })
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
