//! Named formats of strings (apiserver `pkg/cel/library/format.go`).

use std::sync::Arc;

use super::{EvalResult, text};
use super::{Function, cost, estimate, function, member};
use crate::types::Decl::{self, List, Object, Optional, String};
use crate::{
    library::format::Format,
    value::{Error, Kind, Value},
};

/// The type of a named format.
pub const NAMED_FORMAT: Decl = Object("kubernetes.NamedFormat");

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function::new(
        "format.dns1123Label",
        &[function("format.dns1123Label", &[], NAMED_FORMAT).since(31).eval(dns1123_label)],
    ),
    Function::new(
        "format.dns1123Subdomain",
        &[function("format.dns1123Subdomain", &[], NAMED_FORMAT).since(31).eval(dns1123_subdomain)],
    ),
    Function::new(
        "format.dns1035Label",
        &[function("format.dns1035Label", &[], NAMED_FORMAT).since(31).eval(dns1035_label)],
    ),
    Function::new(
        "format.dns1123LabelPrefix",
        &[function("format.dns1123LabelPrefix", &[], NAMED_FORMAT).since(31).eval(dns1123_label_prefix)],
    ),
    Function::new(
        "format.dns1123SubdomainPrefix",
        &[function("format.dns1123SubdomainPrefix", &[], NAMED_FORMAT).since(31).eval(dns1123_subdomain_prefix)],
    ),
    Function::new(
        "format.dns1035LabelPrefix",
        &[function("format.dns1035LabelPrefix", &[], NAMED_FORMAT).since(31).eval(dns1035_label_prefix)],
    ),
    Function::new(
        "format.qualifiedName",
        &[function("format.qualifiedName", &[], NAMED_FORMAT).since(31).eval(qualified_name)],
    ),
    Function::new("format.labelValue", &[function("format.labelValue", &[], NAMED_FORMAT).since(31).eval(label_value)]),
    Function::new("format.uri", &[function("format.uri", &[], NAMED_FORMAT).since(31).eval(uri)]),
    Function::new("format.uuid", &[function("format.uuid", &[], NAMED_FORMAT).since(31).eval(uuid)]),
    Function::new("format.byte", &[function("format.byte", &[], NAMED_FORMAT).since(31).eval(byte)]),
    Function::new("format.date", &[function("format.date", &[], NAMED_FORMAT).since(31).eval(date)]),
    Function::new("format.datetime", &[function("format.datetime", &[], NAMED_FORMAT).since(31).eval(datetime)]),
    Function::new(
        "validate",
        &[
            member("format-validate", &[NAMED_FORMAT, String], Optional(&List(&String)))
                .since(31)
                .until(34)
                .eval(validate_before_35),
            member("format-validate", &[NAMED_FORMAT, String], Optional(&List(&String)))
                .since(31)
                .from(35)
                .eval(validate),
        ],
    )
    .cost(cost::VALIDATION)
    .estimate(estimate::VALIDATION),
    Function::new(
        "format.named",
        &[function("format-named", &[String], Optional(&NAMED_FORMAT)).since(31).eval(named)],
    ),
];

// Evaluation.

fn named<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let format = Format::named(text(args, 0)?);
    Ok(Value::Optional(format.map(|format| Arc::new(Kind::Format(format).into()))))
}

fn validate<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let (_, problems) = problems(args)?;
    Ok(optional(problems))
}

/// `validation.IsQualifiedName` and `IsValidLabelValue` were not yet those of `pkg/api/validate/content`.
fn validate_before_35<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let (format, mut problems) = problems(args)?;
    if matches!(format, Format::QualifiedName | Format::LabelValue) {
        for problem in &mut problems {
            *problem = problem.replace("a valid label key", "a qualified name").replace(" bytes", " characters");
        }
    }
    Ok(optional(problems))
}

fn problems(args: &[Value<'_>]) -> Result<(Format, Vec<std::string::String>), Error> {
    let Value::Opaque(opaque) = &args[0] else { return Err(Error::no_such_overload()) };
    let Kind::Format(format) = opaque.kind() else { return Err(Error::no_such_overload()) };
    Ok((*format, format.validate(text(args, 1)?)))
}

fn optional<'a>(problems: Vec<std::string::String>) -> Value<'a> {
    if problems.is_empty() {
        return Value::Optional(None);
    }
    Value::some(problems.into_iter().map(Value::from).collect::<Vec<_>>().into())
}

macro_rules! formats {
    ($($name:ident: $format:expr,)*) => {
        $(fn $name<'a>(_: &mut [Value<'a>]) -> EvalResult<'a> {
            Ok(Kind::Format($format).into())
        })*
    };
}

formats! {
    dns1123_label: Format::Dns1123Label { prefix: false },
    dns1123_subdomain: Format::Dns1123Subdomain { prefix: false },
    dns1035_label: Format::Dns1035Label { prefix: false },
    dns1123_label_prefix: Format::Dns1123Label { prefix: true },
    dns1123_subdomain_prefix: Format::Dns1123Subdomain { prefix: true },
    dns1035_label_prefix: Format::Dns1035Label { prefix: true },
    qualified_name: Format::QualifiedName,
    label_value: Format::LabelValue,
    uri: Format::Uri,
    uuid: Format::Uuid,
    byte: Format::Byte,
    date: Format::Date,
    datetime: Format::Datetime,
}
