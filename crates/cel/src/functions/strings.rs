//! Strings (cel-go `ext/strings.go`, version 2).

use std::borrow::Cow;

use super::{EvalResult, int, list, text, texts};
use super::{Function, cost, estimate, function, member};
use crate::types::Decl::{Dyn, Int, List, String};
use crate::{
    library::{english::Style, printf, strings},
    value::{Error, Value},
};

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function::new("charAt", &[member("string_char_at_int", &[String, Int], String).eval(char_at)]),
    Function::new(
        "indexOf",
        &[
            member("string_index_of_string", &[String, String], Int).eval(index_of),
            member("string_index_of_string_int", &[String, String, Int], Int).until(36).eval(index_of),
            member("string_index_of_string_int", &[String, String, Int], Int).from(37).eval(index_of_clamped),
        ],
    )
    .estimate(estimate::SEARCH),
    Function::new(
        "lastIndexOf",
        &[
            member("string_last_index_of_string", &[String, String], Int).until(33).eval(last_index_of_old),
            member("string_last_index_of_string", &[String, String], Int).from(34).eval(last_index_of),
            member("string_last_index_of_string_int", &[String, String, Int], Int).until(36).eval(last_index_of),
            member("string_last_index_of_string_int", &[String, String, Int], Int).from(37).eval(last_index_of_clamped),
        ],
    )
    .estimate(estimate::SEARCH),
    Function::new("lowerAscii", &[member("string_lower_ascii", &[String], String).eval(lower_ascii)])
        .cost(cost::TRAVERSAL)
        .estimate(estimate::COPY_OF_RECEIVER),
    Function::new(
        "replace",
        &[
            member("string_replace_string_string", &[String, String, String], String).eval(replace),
            member("string_replace_string_string_int", &[String, String, String, Int], String).eval(replace),
        ],
    )
    .cost(cost::DOUBLE_TRAVERSAL)
    .estimate(estimate::REPLACEMENT),
    Function::new(
        "split",
        &[
            member("string_split_string", &[String, String], List(&String)).eval(split),
            member("string_split_string_int", &[String, String, Int], List(&String)).eval(split),
        ],
    )
    .cost(cost::DOUBLE_TRAVERSAL)
    .estimate(estimate::SPLIT),
    Function::new(
        "substring",
        &[
            member("string_substring_int", &[String, Int], String).eval(substring),
            member("string_substring_int_int", &[String, Int, Int], String).eval(substring),
        ],
    )
    .cost(cost::TRAVERSAL)
    .estimate(estimate::COPY_OF_RECEIVER),
    Function::new("trim", &[member("string_trim", &[String], String).eval(trim)])
        .cost(cost::TRAVERSAL)
        .estimate(estimate::COPY_OF_RECEIVER),
    Function::new("upperAscii", &[member("string_upper_ascii", &[String], String).eval(upper_ascii)])
        .cost(cost::TRAVERSAL)
        .estimate(estimate::COPY_OF_RECEIVER),
    Function::new(
        "format",
        &[
            member("string_format", &[String, List(&Dyn)], String)
                .since(29)
                .until(32)
                .sequential()
                .eval(format_before_33)
                .cost(cost::TRAVERSAL),
            member("string_format", &[String, List(&Dyn)], String)
                .since(29)
                .from(33)
                .sequential()
                .eval(format)
                .cost(cost::TRAVERSAL),
        ],
    )
    .estimate(estimate::FORMAT),
    Function::new(
        "strings.quote",
        &[function("strings_quote", &[String], String).since(29).eval(quote).cost(cost::TRAVERSAL)],
    )
    .estimate(estimate::QUOTE),
    Function::new(
        "join",
        &[
            member("list_join", &[List(&String)], String).eval(join),
            member("list_join_string", &[List(&String), String], String).eval(join),
        ],
    )
    .cost(cost::DOUBLE_RESULT)
    .estimate(estimate::JOIN),
];

// Evaluation.

fn char_at<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(strings::char_at(text(args, 0)?, int(args, 1)?)?.into())
}

fn index_of<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let offset = if args.len() > 2 { int(args, 2)? } else { 0 };
    Ok(strings::index_of(text(args, 0)?, text(args, 1)?, offset)?.into())
}

fn last_index_of<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let (whole, part) = (text(args, 0)?, text(args, 1)?);
    if args.len() > 2 {
        return Ok(strings::last_index_of_offset(whole, part, int(args, 2)?)?.into());
    }
    Ok(strings::last_index_of(whole, part).into())
}

/// Before cel-go 0.26 nothing was to be found in an empty text.
fn last_index_of_old<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    if text(args, 0)?.is_empty() && !text(args, 1)?.is_empty() {
        return Err(Error::new("index out of range: -1"));
    }
    last_index_of(args)
}

/// From cel-go 0.29 on an empty text is found at the end at the latest, and an offset must not be negative.
fn clamped<'a>(args: &mut [Value<'a>], search: fn(&mut [Value<'a>]) -> EvalResult<'a>) -> EvalResult<'a> {
    let offset = int(args, 2)?;
    if offset < 0 {
        return Err(Error::new(format!("index out of range: {offset}")));
    }
    if text(args, 1)?.is_empty() {
        return Ok(strings::length(text(args, 0)?).min(offset).into());
    }
    search(args)
}

fn index_of_clamped<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    clamped(args, index_of)
}

fn last_index_of_clamped<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    clamped(args, last_index_of)
}

fn lower_ascii<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(strings::lower_ascii(text(args, 0)?).into())
}

fn upper_ascii<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(strings::upper_ascii(text(args, 0)?).into())
}

fn replace<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let limit = if args.len() > 3 { int(args, 3)? } else { -1 };
    Ok(strings::replace(text(args, 0)?, text(args, 1)?, text(args, 2)?, limit).into())
}

fn split<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let limit = if args.len() > 2 { int(args, 2)? } else { -1 };
    Ok(texts(strings::split(text(args, 0)?, text(args, 1)?, limit)))
}

fn substring<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let (whole, start) = (text(args, 0)?, int(args, 1)?);
    if args.len() > 2 {
        return Ok(strings::substring_range(whole, start, int(args, 2)?)?.into());
    }
    Ok(strings::substring(whole, start)?.into())
}

fn trim<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(strings::trim(text(args, 0)?).to_owned().into())
}

fn quote<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(strings::quote(text(args, 0)?).into())
}

fn join<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let separator = if args.len() > 1 { text(args, 1)? } else { "" };
    let items: Vec<Value<'_>> = list(args, 0)?.iter().collect();
    if let Some(other) = items.iter().find(|item| item.as_str().is_none()) {
        return Err(Error::new(format!("join: invalid input: {other}")));
    }
    Ok(strings::join(items.iter().filter_map(Value::as_str), separator).into())
}

fn format<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    format_in(args, Style::Close)
}

fn format_before_33<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    format_in(args, Style::Spaced)
}

fn format_in<'a>(args: &[Value<'a>], style: Style) -> EvalResult<'a> {
    let arguments: Vec<Value<'_>> = list(args, 1)?.iter().collect();
    Ok(printf::format(text(args, 0)?, &arguments, style)?.into())
}

impl printf::Argument for Value<'_> {
    fn kind(&self) -> printf::Kind<'_> {
        match self {
            Value::Null => printf::Kind::Null,
            Value::Bool(value) => printf::Kind::Bool(*value),
            Value::Int(value) => printf::Kind::Int(*value),
            Value::Uint(value) => printf::Kind::Uint(*value),
            Value::Double(value) => printf::Kind::Double(*value),
            Value::String(text) => printf::Kind::String(Cow::Borrowed(text)),
            Value::Bytes(bytes) => printf::Kind::Bytes(Cow::Borrowed(bytes)),
            Value::Timestamp(time) => printf::Kind::Timestamp(time.to_string()),
            Value::Duration(duration) => printf::Kind::Duration(duration.to_string()),
            Value::Type(name) => printf::Kind::Type(Cow::Borrowed(name)),
            Value::List(_) => printf::Kind::List,
            Value::Map(_) => printf::Kind::Map,
            other => printf::Kind::Other(Cow::Borrowed(other.type_name())),
        }
    }

    fn items(&self) -> Vec<Self> {
        match self {
            Value::List(list) => list.iter().collect(),
            _ => Vec::new(),
        }
    }

    fn entries(&self) -> Vec<(Self, Self)> {
        match self {
            Value::Map(map) => map.entries().collect(),
            _ => Vec::new(),
        }
    }
}
