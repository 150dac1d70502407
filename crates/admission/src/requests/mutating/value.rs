//! Values of expressions as JSON: those of JSON patches by way of `google.protobuf.Value`, and `Object` by way of Go's
//! types (`ConvertToNative` of each type in cel-go `common/types`, apiserver `pkg/cel/mutation/dynamic/objects.go`).

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use palisade_cel::{
    Minor, quote,
    value::{List, Map, OBJECT, Struct, Value},
};
use serde_json::Value as Json;

/// Why a value is not JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoJson {
    /// The API server's text.
    Error(String),
    /// It panics, or says something that is not known here.
    NoVerdict(String),
}

/// The largest number that JSON has for sure. cel-go writes larger ones as texts.
pub(super) const MAX_SAFE: u64 = (1 << 53) - 1;

/// The value of an operation of a JSON patch.
pub(super) fn to_json(value: &Value<'_>, minor: Minor) -> Result<Json, NoJson> {
    let number = |safe: bool, number: Json| if safe { number } else { number.to_string().into() };
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => number(value.unsigned_abs() <= MAX_SAFE, (*value).into()),
        Value::Uint(value) => number(*value <= MAX_SAFE, (*value).into()),
        Value::Double(value) => double(*value)?,
        Value::String(text) => (**text).into(),
        Value::Bytes(bytes) => BASE64_STANDARD.encode(bytes).into(),
        Value::Timestamp(_) | Value::Duration(_) => text(value).into(),
        Value::Optional(None) => return Err(NoJson::Error("optional.none() dereference".to_owned())),
        Value::Optional(Some(value)) => to_json(value, minor)?,
        Value::List(list) => {
            let items = list.iter().map(|item| {
                if minor < Minor::V1_37 && matches!(&item, Value::Struct(of) if !of.is_json_patch()) {
                    return Err(panics("an Object in a list as the value of a JSONPatch"));
                }
                to_json(&item, minor)
            });
            items.collect::<Result<_, _>>()?
        }
        Value::Map(map) => {
            let mut fields = serde_json::Map::new();
            for (key, value) in map.entries() {
                let Some(key) = key.as_str() else {
                    let name = key.type_name();
                    return Err(NoJson::Error(format!("unsupported type conversion from '{name}' to string")));
                };
                if minor < Minor::V1_37 && matches!(&value, Value::Struct(of) if !of.is_json_patch()) {
                    return Err(panics("an Object in a map as the value of a JSONPatch"));
                }
                fields.insert(key.to_owned(), to_json(&value, minor)?);
            }
            Json::Object(fields)
        }
        Value::Type(_) => return Err(NoJson::Error("type conversion not supported for 'type'".to_owned())),
        Value::Struct(of) if of.is_json_patch() => {
            return Err(NoJson::Error("cannot convert to native type: *structpb.Value".to_owned()));
        }
        Value::Struct(of) => protobuf(&native(of)?)?,
        Value::Opaque(opaque) => {
            let name = opaque.type_name();
            // `ConvertToNative` of the types in apiserver `pkg/cel`.
            let of = match name {
                "kubernetes.Quantity" => "Quantity",
                "kubernetes.URL" => "URL",
                "kubernetes.Semver" => "Semver",
                "kubernetes.NamedFormat" => "Format",
                "net.IP" => "IP",
                "net.CIDR" => "CIDR",
                _ => return Err(NoJson::NoVerdict(format!("a {name} as the value of a JSONPatch, which is not JSON"))),
            };
            return Err(NoJson::Error(format!("type conversion error from '{of}' to '*structpb.Value'")));
        }
    })
}

fn panics(what: &str) -> NoJson {
    NoJson::NoVerdict(format!("{what}, at which this minor of the API server panics"))
}

/// A number as `protojson` writes it: without a point if it is whole.
#[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
fn double(value: f64) -> Result<Json, NoJson> {
    if value.fract() == 0.0 && value.abs() < 9.0e18 {
        return Ok(Json::from(value as i64));
    }
    let number = serde_json::Number::from_f64(value);
    number.map(Json::Number).ok_or_else(|| NoJson::NoVerdict(format!("{value} in a patch, which is not JSON")))
}

/// Times as CEL's `string()` writes them.
fn text(value: &Value<'_>) -> String {
    match value {
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(duration) => duration.to_string(),
        _ => String::new(),
    }
}

/// A value as Go has it, with what is not JSON in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Native {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    String(String),
    List(Vec<Native>),
    Map(BTreeMap<String, Native>),
    /// Of another type: its name, how `%v` writes it, and how `%#v` does.
    Other {
        of: &'static str,
        plain: String,
        sharp: String,
    },
}

/// An `Object` as a Go map.
pub(super) fn native(of: &Struct<'_>) -> Result<Native, NoJson> {
    let mut fields = BTreeMap::new();
    for (name, value) in of.fields() {
        let value = field(value).map_err(|error| match error {
            NoJson::Error(text) => NoJson::Error(format!("fail to convert field {}: {text}", quote(name))),
            other @ NoJson::NoVerdict(_) => other,
        })?;
        fields.insert(name.to_owned(), value);
    }
    Ok(Native::Map(fields))
}

/// The value of a field: its lists and maps are Go's, theirs are not.
fn field(value: &Value<'_>) -> Result<Native, NoJson> {
    match value {
        Value::List(List::Items(items)) => items.iter().map(go_value).collect::<Result<_, _>>().map(Native::List),
        Value::Map(map @ Map::Entries(_)) => {
            let mut fields = BTreeMap::new();
            for (key, value) in map.entries() {
                let Some(key) = key.as_str() else {
                    return Err(NoJson::NoVerdict("a key that is not a text in a field of Object".to_owned()));
                };
                fields.insert(key.to_owned(), go_value(&value)?);
            }
            Ok(Native::Map(fields))
        }
        value => go_value(value),
    }
}

/// `Value()` of each type.
fn go_value(value: &Value<'_>) -> Result<Native, NoJson> {
    let other = |of, plain: String, sharp: String| Ok(Native::Other { of, plain, sharp });
    Ok(match value {
        Value::Null => return other("structpb.NullValue", "NULL_VALUE".to_owned(), "0".to_owned()),
        Value::Bool(value) => Native::Bool(*value),
        Value::Int(value) => Native::Number((*value).into()),
        Value::Uint(value) => return other("uint64", value.to_string(), format!("{value:#x}")),
        Value::Double(value) => match serde_json::Number::from_f64(*value) {
            Some(number) => Native::Number(number),
            None => return Err(NoJson::NoVerdict(format!("{value} in a patch, which is not JSON"))),
        },
        Value::String(text) | Value::Type(text) => Native::String((**text).to_owned()),
        Value::Optional(None) => Native::Null,
        Value::Optional(Some(value)) => go_value(value)?,
        Value::List(List::Json(items)) => Native::List(items.iter().map(of_json).collect()),
        Value::Map(Map::Json(fields)) => {
            Native::Map(fields.iter().map(|(key, value)| (key.clone(), of_json(value))).collect())
        }
        Value::Struct(of) if !of.is_json_patch() => native(of)?,
        other => {
            let name = other.type_name();
            return Err(NoJson::NoVerdict(format!("a {name} inside of {OBJECT}, which is not JSON")));
        }
    })
}

fn of_json(json: &Json) -> Native {
    match json {
        Json::Null => Native::Null,
        Json::Bool(value) => Native::Bool(*value),
        Json::Number(number) => Native::Number(number.clone()),
        Json::String(text) => Native::String(text.clone()),
        Json::Array(items) => Native::List(items.iter().map(of_json).collect()),
        Json::Object(fields) => Native::Map(fields.iter().map(|(key, value)| (key.clone(), of_json(value))).collect()),
    }
}

/// As `structpb.NewValue` converts: all numbers are doubles.
fn protobuf(value: &Native) -> Result<Json, NoJson> {
    Ok(match value {
        Native::Null => Json::Null,
        Native::Bool(value) => (*value).into(),
        Native::Number(number) => double(number.as_f64().unwrap_or(f64::NAN))?,
        Native::String(text) => text.as_str().into(),
        Native::List(items) => items.iter().map(protobuf).collect::<Result<_, _>>()?,
        Native::Map(fields) => {
            let field = |(key, value): (&String, &Native)| Ok((key.clone(), protobuf(value)?));
            Json::Object(fields.iter().map(field).collect::<Result<_, _>>()?)
        }
        Native::Other { of: "uint64", plain, .. } => double(plain.parse().unwrap_or(f64::NAN))?,
        Native::Other { of, .. } => return Err(NoJson::Error(format!("proto: invalid type: {of}"))),
    })
}

impl Native {
    /// The value as JSON. A value without a JSON form was rejected before.
    pub fn into_json(self) -> Json {
        match self {
            Self::Null | Self::Other { .. } => Json::Null,
            Self::Bool(value) => value.into(),
            Self::Number(number) => Json::Number(number),
            Self::String(text) => text.into(),
            Self::List(items) => items.into_iter().map(Self::into_json).collect(),
            Self::Map(fields) => {
                Json::Object(fields.into_iter().map(|(key, value)| (key, value.into_json())).collect())
            }
        }
    }

    /// The name of the type in Go.
    pub fn go_type(&self) -> &'static str {
        match self {
            Self::Null => "<nil>",
            Self::Bool(_) => "bool",
            Self::Number(number) if number.is_f64() => "float64",
            Self::Number(_) => "int64",
            Self::String(_) => "string",
            Self::List(_) => "[]interface {}",
            Self::Map(_) => "map[string]interface {}",
            Self::Other { of, .. } => of,
        }
    }

    /// As Go's `%v` writes it.
    pub fn plain(&self) -> String {
        match self {
            Self::Null => "<nil>".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Number(number) => number.to_string(),
            Self::String(text) => text.clone(),
            Self::List(items) => {
                format!("[{}]", items.iter().map(Self::plain).collect::<Vec<_>>().join(" "))
            }
            Self::Map(fields) => {
                let field = |(key, value): (&String, &Self)| format!("{key}:{}", value.plain());
                format!("map[{}]", fields.iter().map(field).collect::<Vec<_>>().join(" "))
            }
            Self::Other { plain, .. } => plain.clone(),
        }
    }

    /// As Go's `%#v` writes it.
    pub fn sharp(&self) -> String {
        match self {
            Self::Null => "interface {}(nil)".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Number(number) => number.to_string(),
            Self::String(text) => Json::from(text.as_str()).to_string(),
            Self::List(items) => {
                format!("[]interface {{}}{{{}}}", items.iter().map(Self::sharp).collect::<Vec<_>>().join(", "))
            }
            Self::Map(fields) => {
                let field = |(key, value): (&String, &Self)| format!("{}:{}", Json::from(key.as_str()), value.sharp());
                let fields: Vec<_> = fields.iter().map(field).collect();
                format!("map[string]interface {{}}{{{}}}", fields.join(", "))
            }
            Self::Other { sharp, .. } => sharp.clone(),
        }
    }
}

/// The names of types that do not fit the names of their fields (`CheckTypeNamesMatchFieldPathNames`).
pub(super) fn mismatches(of: &Struct<'_>) -> Vec<String> {
    let mut found = Vec::new();
    compare_names(of, of.name(), &mut found);
    found
}

/// The error of a type whose name does not fit its field.
pub(super) fn unexpected_name(name: &str, expected: &str) -> String {
    let (name, expected) = (quote(name), quote(expected));
    format!("unexpected type name {name}, expected {expected}, which matches field name path from root Object type")
}

fn compare_names(of: &Struct<'_>, expected: &str, found: &mut Vec<String>) {
    if of.name() != expected {
        found.push(unexpected_name(of.name(), expected));
    }
    for (field, value) in of.fields() {
        compare_inside(value, &format!("{expected}.{field}"), found);
    }
}

fn compare_inside(value: &Value<'_>, expected: &str, found: &mut Vec<String>) {
    match value {
        Value::Struct(of) if !of.is_json_patch() => compare_names(of, expected, found),
        Value::List(List::Items(items)) => items.iter().for_each(|item| compare_inside(item, expected, found)),
        Value::Map(map @ Map::Entries(_)) => {
            map.entries().for_each(|(_, value)| compare_inside(&value, expected, found));
        }
        _ => {}
    }
}
