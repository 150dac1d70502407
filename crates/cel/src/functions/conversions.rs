//! Conversions between types (cel-go `common/types`, `ConvertToType` of each type).

use super::{EvalResult, take};
use crate::{
    library::double,
    value::{Duration, Error, Str, Timestamp, Value},
};

pub(super) fn type_of<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let name = match &args[0] {
        // The API server gives the type of types for it.
        Value::Struct(_) => "type",
        value => value.type_name(),
    };
    Ok(Value::Type(name.to_owned().into()))
}

/// `dyn(x)`, and conversions to what the argument is already.
pub(super) fn dynamic<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(take(args, 0))
}

fn refused<'a>(value: &Value<'_>, to: &str) -> EvalResult<'a> {
    Err(Error::new(double::conversion_error(value.type_name(), to)))
}

pub(super) fn parse_bool<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    match &args[0] {
        Value::String(text) => Ok(double::parse_bool(text)?.into()),
        other => refused(other, "bool"),
    }
}

pub(super) fn to_bytes<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    match &args[0] {
        Value::String(text) => Ok(Value::Bytes(text.as_bytes().into())),
        other => refused(other, "bytes"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "as the conversion is defined")]
pub(super) fn to_double<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    match &args[0] {
        Value::Int(value) => Ok(Value::Double(*value as f64)),
        Value::Uint(value) => Ok(Value::Double(*value as f64)),
        Value::String(text) => Ok(Value::Double(double::parse_double(text)?)),
        other => refused(other, "double"),
    }
}

pub(super) fn to_duration<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    match &args[0] {
        Value::String(text) => Ok(Value::Duration(Duration::parse(text)?)),
        other => refused(other, "google.protobuf.Duration"),
    }
}

pub(super) fn to_int<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Value::Int(match &args[0] {
        Value::Double(value) => double::to_int(*value)?,
        Value::Duration(value) => value.0,
        Value::String(text) => double::parse_int(text)?,
        Value::Timestamp(value) => value.seconds(),
        Value::Uint(value) => double::uint_to_int(*value)?,
        other => return refused(other, "int"),
    }))
}

pub(super) fn to_uint<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Value::Uint(match &args[0] {
        Value::Double(value) => double::to_uint(*value)?,
        Value::Int(value) => double::int_to_uint(*value)?,
        Value::String(text) => double::parse_uint(text)?,
        other => return refused(other, "uint"),
    }))
}

pub(super) fn to_text<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Value::String(match &args[0] {
        Value::Bool(true) => Str::Borrowed("true"),
        Value::Bool(false) => Str::Borrowed("false"),
        Value::Bytes(bytes) => double::bytes_to_string(bytes)?.into(),
        Value::Double(value) => double::to_string(*value).into(),
        Value::Duration(value) => value.to_string().into(),
        Value::Int(value) => value.to_string().into(),
        Value::Timestamp(value) => value.to_string().into(),
        Value::Uint(value) => value.to_string().into(),
        other => return refused(other, "string"),
    }))
}

pub(super) fn to_timestamp<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    match &args[0] {
        Value::Int(seconds) => Ok(Value::Timestamp(Timestamp::from_seconds(*seconds)?)),
        Value::String(text) => Ok(Value::Timestamp(Timestamp::parse(text)?)),
        other => refused(other, "google.protobuf.Timestamp"),
    }
}
