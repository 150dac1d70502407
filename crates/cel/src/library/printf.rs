//! `string.format(list)` of cel-go's strings extension, version 2 (`ext/formatting.go`), and the check of its literals.
//!
//! Version 2 formats numbers for people who read English: `%f` groups digits by thousands, `%e` writes `×10⁰³`, and the
//! number behind the point of `%e` is a width, not a precision.

use std::borrow::Cow;

use super::{
    double::{atoi, parse_double, radix, to_six_decimals, to_string},
    english::{self, Style},
    quote::quote,
};

/// A value, as `format` tells them apart.
#[derive(Clone, Debug)]
pub(crate) enum Kind<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// The result of `string(timestamp)`.
    Timestamp(String),
    /// The result of `string(duration)`.
    Duration(String),
    /// The name of the type.
    Type(Cow<'a, str>),
    List,
    Map,
    /// A value that cannot be formatted, by the name of its type.
    Other(Cow<'a, str>),
}

/// A value that can be formatted.
pub(crate) trait Argument: Sized {
    /// The kind of the value.
    fn kind(&self) -> Kind<'_>;
    /// The elements, if it is a list.
    fn items(&self) -> Vec<Self>;
    /// Keys and values, if it is a map.
    fn entries(&self) -> Vec<(Self, Self)>;
}

impl Kind<'_> {
    /// The type's name in CEL.
    fn type_name(&self) -> &str {
        match self {
            Kind::Null => "null_type",
            Kind::Bool(_) => "bool",
            Kind::Int(_) => "int",
            Kind::Uint(_) => "uint",
            Kind::Double(_) => "double",
            Kind::String(_) => "string",
            Kind::Bytes(_) => "bytes",
            Kind::Timestamp(_) => "google.protobuf.Timestamp",
            Kind::Duration(_) => "google.protobuf.Duration",
            Kind::Type(_) => "type",
            Kind::List => "list",
            Kind::Map => "map",
            Kind::Other(name) => name,
        }
    }
}

/// A clause of a format, the part that begins with `%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    /// `%s`
    String,
    /// `%d`
    Decimal,
    /// `%f`, and the number of decimals.
    Fixed(i64),
    /// `%e`, and the width.
    Scientific(i64),
    /// `%b`
    Binary,
    /// `%x` or `%X`
    Hex { upper: bool },
    /// `%o`
    Octal,
}

impl Clause {
    /// The types that the check of literals accepts, in addition to `dyn`. Elements of a list or map literal
    /// for `%s` must also have one of these types.
    pub(crate) fn accepts(self) -> &'static [&'static str] {
        match self {
            Clause::String => &[
                "list",
                "map",
                "int",
                "uint",
                "double",
                "bool",
                "string",
                "google.protobuf.Timestamp",
                "bytes",
                "google.protobuf.Duration",
                "type",
                "null_type",
            ],
            Clause::Decimal | Clause::Octal => &["int", "uint"],
            // A string may be "NaN", "Infinity" or "-Infinity".
            Clause::Fixed(_) | Clause::Scientific(_) => &["double", "string"],
            Clause::Binary => &["int", "uint", "bool"],
            Clause::Hex { .. } => &["int", "uint", "string", "bytes"],
        }
    }

    /// The error for a value of another type.
    pub(crate) fn refusal(self, type_name: &str) -> String {
        let rule = match self {
            Clause::String => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                 durations, and timestamps"
            }
            Clause::Decimal => "decimal clause can only be used on integers",
            Clause::Fixed(_) => "fixed-point clause can only be used on doubles",
            Clause::Scientific(_) => "scientific clause can only be used on doubles",
            Clause::Binary => "only integers and bools can be formatted as binary",
            Clause::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
            Clause::Octal => "octal clause can only be used on integers",
        };
        format!("{rule}, was given {type_name}")
    }
}

/// `string.format(list)`.
pub(crate) fn format<A: Argument>(format: &str, arguments: &[A], style: Style) -> Result<String, String> {
    let mut out = String::new();
    let clauses = scan(format, &mut |part, index| {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Percent if index >= arguments.len() => return Err(format!("index {index} out of range")),
            Part::Percent => {}
            Part::Clause(clause) => out.push_str(&apply(clause, &arguments[index], style)?),
        }
        Ok(())
    });
    clauses.map(|_| out).map_err(|error| error.text)
}

/// An error of the check of a literal, and which part of the arguments is wrong, if it is one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiteralError<P> {
    pub(crate) text: String,
    pub(crate) place: Option<P>,
}

/// Checks a call of `format` on a literal with a list literal: `refused` returns the place and the name of the type of
/// an argument that has none of the types of [`Clause::accepts`].
pub(crate) fn check_literal<P>(
    format: &str,
    arguments: usize,
    mut refused: impl FnMut(usize, Clause) -> Option<(P, String)>,
) -> Result<(), LiteralError<P>> {
    let mut place = None;
    let seen = scan(format, &mut |part, index| {
        let Part::Clause(clause) = part else { return Ok(()) };
        if index >= arguments {
            return Err(format!("index {index} out of range"));
        }
        let Some((found, name)) = refused(index, clause) else { return Ok(()) };
        place = Some(found);
        Err(format!("error during formatting: {}", clause.refusal(&name)))
    });
    match seen {
        // That there are too few arguments is seen before the clause is read.
        Err(error) if error.clause >= arguments && error.text != END => {
            Err(LiteralError { text: format!("index {} out of range", error.clause), place: None })
        }
        Err(error) => Err(LiteralError { text: error.text, place }),
        Ok(seen) if arguments > seen => {
            let text = format!("too many arguments supplied to string.format (expected {seen}, got {arguments})");
            Err(LiteralError { text, place: None })
        }
        Ok(_) => Ok(()),
    }
}

const END: &str = "unexpected end of string";

enum Part<'a> {
    Text(&'a str),
    /// A clause begins.
    Percent,
    Clause(Clause),
}

struct ScanError {
    text: String,
    /// The number of clauses before.
    clause: usize,
}

/// Tells the parts of a format, each with the number of clauses before, and returns how many clauses there are.
fn scan(format: &str, tell: &mut dyn FnMut(Part<'_>, usize) -> Result<(), String>) -> Result<usize, ScanError> {
    let (mut rest, mut clause) = (format, 0);
    let mut step = |part, clause| tell(part, clause).map_err(|text| ScanError { text, clause });
    while let Some(at) = rest.find('%') {
        step(Part::Text(&rest[..at]), clause)?;
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            step(Part::Text("%"), clause)?;
            rest = after;
            continue;
        }
        step(Part::Percent, clause)?;
        let (found, after) = parse_clause(rest).map_err(|text| ScanError { text, clause })?;
        step(Part::Clause(found), clause)?;
        (rest, clause) = (after, clause + 1);
    }
    step(Part::Text(rest), clause)?;
    Ok(clause)
}

/// The clause at the beginning of a text, without its `%`, and what is behind it.
fn parse_clause(text: &str) -> Result<(Clause, &str), String> {
    if text.is_empty() {
        return Err(END.to_owned());
    }
    let fail = |error: String| format!("could not parse formatting clause: {error}");
    let (precision, rest) = match text.strip_prefix('.') {
        None => (6, text),
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_digit());
            let precision = match end {
                None => Err("could not find end of precision specifier".to_owned()),
                Some(end) => atoi(&rest[..end])
                    .map(|precision| (precision, &rest[end..]))
                    .map_err(|error| format!("error while converting precision to integer: {error}")),
            };
            precision.map_err(|error| fail(format!("error while parsing precision: {error}")))?
        }
    };
    let clause = match rest.as_bytes().first().copied().unwrap_or(0) {
        b's' => Clause::String,
        b'd' => Clause::Decimal,
        b'f' => Clause::Fixed(precision),
        b'e' => Clause::Scientific(precision),
        b'b' => Clause::Binary,
        b'x' => Clause::Hex { upper: false },
        b'X' => Clause::Hex { upper: true },
        b'o' => Clause::Octal,
        // A byte, also where a longer character begins.
        other => return Err(fail(format!("unrecognized formatting clause \"{}\"", char::from(other)))),
    };
    Ok((clause, &rest[1..]))
}

fn apply<A: Argument>(clause: Clause, argument: &A, style: Style) -> Result<String, String> {
    let kind = argument.kind();
    let text = match (clause, &kind) {
        (Clause::String, _) => string(argument),
        (Clause::Decimal, Kind::Int(value)) => Ok(value.to_string()),
        (Clause::Decimal, Kind::Uint(value)) => Ok(value.to_string()),
        (Clause::Fixed(decimals), kind) if let Some(value) = number(kind) => Ok(english::fixed(value, decimals)),
        (Clause::Scientific(width), kind) if let Some(value) = number(kind) => {
            Ok(english::scientific(value, width, style))
        }
        (Clause::Binary, Kind::Bool(value)) => Ok(if *value { "1" } else { "0" }.to_owned()),
        (Clause::Binary, Kind::Int(value)) => Ok(radix((*value).into(), 'b')),
        (Clause::Binary, Kind::Uint(value)) => Ok(radix((*value).into(), 'b')),
        (Clause::Octal, Kind::Int(value)) => Ok(radix((*value).into(), 'o')),
        (Clause::Octal, Kind::Uint(value)) => Ok(radix((*value).into(), 'o')),
        (Clause::Hex { upper }, Kind::Int(value)) => Ok(radix((*value).into(), if upper { 'X' } else { 'x' })),
        (Clause::Hex { upper }, Kind::Uint(value)) => Ok(radix((*value).into(), if upper { 'X' } else { 'x' })),
        (Clause::Hex { upper }, Kind::String(text)) => Ok(hexadecimal(text.as_bytes(), upper)),
        (Clause::Hex { upper }, Kind::Bytes(bytes)) => Ok(hexadecimal(bytes, upper)),
        (clause, kind) => Err(clause.refusal(kind.type_name())),
    };
    text.map_err(|error| format!("error during formatting: {error}"))
}

/// The number for `%f` and `%e`: from a double, or from the name of a value without digits.
fn number(kind: &Kind<'_>) -> Option<f64> {
    match kind {
        Kind::Double(value) => Some(*value),
        Kind::String(text) if ["NaN", "Infinity", "-Infinity"].contains(&&**text) => parse_double(text).ok(),
        _ => None,
    }
}

fn hexadecimal(bytes: &[u8], upper: bool) -> String {
    bytes.iter().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }).collect()
}

/// `%s`.
fn string<A: Argument>(argument: &A) -> Result<String, String> {
    Ok(match argument.kind() {
        Kind::Null => "null".to_owned(),
        Kind::Bool(value) => value.to_string(),
        Kind::Int(value) => value.to_string(),
        Kind::Uint(value) => value.to_string(),
        Kind::Double(value) => to_string(value),
        Kind::String(text) | Kind::Type(text) => text.into_owned(),
        Kind::Timestamp(text) | Kind::Duration(text) => text,
        Kind::Bytes(bytes) => super::double::bytes_to_string(&bytes)
            .map_err(|error| format!("could not convert argument {} to string", quote(&error)))?,
        Kind::List => {
            let items: Result<Vec<_>, _> = argument.items().iter().map(member).collect();
            format!("[{}]", items?.join(", "))
        }
        Kind::Map => {
            let entries = argument.entries();
            let entries = entries.iter().map(|(key, value)| {
                let name = key.kind().type_name().to_owned();
                if !["string", "bool", "int", "uint"].contains(&name.as_str()) {
                    return Err(format!("no formatting function for map key of type {name}"));
                }
                Ok((member(key)?, member(value)?))
            });
            let mut entries = entries.collect::<Result<Vec<_>, String>>()?;
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            let entries: Vec<_> = entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Kind::Other(name) => return Err(Clause::String.refusal(&name)),
    })
}

/// An element of a list or map: as it is written in CEL.
fn member<A: Argument>(argument: &A) -> Result<String, String> {
    Ok(match argument.kind() {
        Kind::String(text) => quote(&text),
        Kind::Bytes(_) => format!("b{}", quote(&string(argument)?)),
        Kind::Timestamp(text) => format!("timestamp({})", quote(&text)),
        Kind::Duration(text) => format!("duration({})", quote(&text)),
        Kind::Double(value) if value.is_finite() => to_six_decimals(value),
        Kind::Double(value) => quote(&to_six_decimals(value)),
        Kind::Other(name) => return Err(format!("no formatting function for {name}")),
        _ => string(argument)?,
    })
}

#[cfg(test)]
#[path = "printf_tests.rs"]
mod tests;
