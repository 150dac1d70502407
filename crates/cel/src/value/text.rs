//! Values as texts.

use std::fmt::{self, Write};

use super::{List, Map, Value};
use crate::library::double;

/// See [`Value::canonical`].
pub(super) fn canonical(value: &Value<'_>) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut text, value);
    text
}

fn write(f: &mut String, value: &Value<'_>) -> fmt::Result {
    match value {
        Value::Null => f.write_str("null"),
        Value::Bool(value) => write!(f, "bool:{value}"),
        Value::Int(value) => write!(f, "int:{value}"),
        Value::Uint(value) => write!(f, "uint:{value}"),
        Value::Double(value) => write!(f, "double:{value:e}"),
        Value::String(text) => quoted(f, text),
        Value::Bytes(bytes) => {
            f.write_str("bytes:")?;
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
        }
        Value::Timestamp(time) => write!(f, "timestamp:{}", time.to_utc()),
        Value::Duration(duration) => write!(f, "duration:{}", duration.0),
        Value::Type(name) => write!(f, "type:{}", &**name),
        Value::Optional(None) => f.write_str("optional.none"),
        Value::Optional(Some(value)) => {
            f.write_str("optional(")?;
            write(f, value)?;
            f.write_char(')')
        }
        Value::List(list) => {
            f.write_char('[')?;
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    f.write_char(',')?;
                }
                write(f, &item)?;
            }
            f.write_char(']')
        }
        // No expression can see its entries.
        Value::Map(Map::Variables(_)) => f.write_str("opaque:kubernetes.variables"),
        Value::Map(map) => {
            let entry = |(key, value): (Value<'_>, Value<'_>)| format!("{}={}", canonical(&key), canonical(&value));
            let mut entries: Vec<String> = map.entries().map(entry).collect();
            entries.sort();
            write!(f, "{{{}}}", entries.join(","))
        }
        Value::Struct(of) => {
            let mut fields: Vec<String> = of
                .fields()
                .map(|(name, value)| {
                    let mut text = String::new();
                    quoted(&mut text, name).map(|()| text + "=" + &canonical(value)).unwrap_or_default()
                })
                .collect();
            fields.sort();
            write!(f, "{}{{{}}}", of.name(), fields.join(","))
        }
        Value::Opaque(opaque) => {
            write!(f, "opaque:{}", opaque.type_name())?;
            opaque.text().map_or(Ok(()), |text| {
                f.write_char('(')?;
                quoted(f, &text)?;
                f.write_char(')')
            })
        }
    }
}

fn quoted(f: &mut String, text: &str) -> fmt::Result {
    f.write_str(&serde_json::Value::from(text).to_string())
}

/// As Go's `%v`, which is how cel-go's errors show values.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_char('0'),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Uint(value) => write!(f, "{value}"),
            Self::Double(value) => f.write_str(&double::to_string(*value)),
            Self::String(text) => f.write_str(text),
            Self::Bytes(bytes) => {
                let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
                write!(f, "[{}]", bytes.join(" "))
            }
            Self::Timestamp(time) => write!(f, "{time}"),
            Self::Duration(duration) => write!(f, "{duration}"),
            Self::Type(name) => f.write_str(name),
            Self::List(list) => self::list(f, list),
            Self::Map(map) => self::map(f, map),
            Self::Optional(None) => f.write_str("optional.none()"),
            Self::Optional(Some(value)) => write!(f, "optional({value})"),
            Self::Opaque(opaque) => f.write_str(&opaque.text().unwrap_or_default()),
            Self::Struct(of) => f.write_str(of.name()),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, list: &List<'_>) -> fmt::Result {
    let items: Vec<String> = list.iter().map(|item| item.to_string()).collect();
    write!(f, "[{}]", items.join(", "))
}

fn map(f: &mut fmt::Formatter<'_>, map: &Map<'_>) -> fmt::Result {
    let entries: Vec<String> = map.entries().map(|(key, value)| format!("{key}: {value}")).collect();
    write!(f, "{{{}}}", entries.join(", "))
}
