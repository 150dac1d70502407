//! Errors of fields, in the words of `k8s.io/apimachinery/pkg/util/validation/field`.

use std::{collections::BTreeSet, fmt::Write as _};

use palisade_cel::{Minor, float_digits, float_text, quote};
use serde_json::Value as Json;

/// Placeholder in texts for parts that the API server shows and that are unknown here: how two specifications differ,
/// or a value in the API server's own form.
pub const NOT_SHOWN: &str = "(not shown offline)";

/// The error in a value that is not what it was.
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// The error in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorType {
    /// Nothing is there, and something must be.
    Required,
    /// Something is there twice.
    Duplicate,
    /// A value that is not of the right form.
    Invalid,
    /// A value that is none of those that are allowed.
    NotSupported,
    /// A value that is not allowed here.
    Forbidden,
    /// A text with too many bytes.
    TooLong,
    /// A list with too many elements.
    TooMany,
    /// A value that names something that is not there.
    NotFound,
    /// A value of the wrong type.
    TypeInvalid,
    /// An error that is not in a field.
    Internal,
}

impl ErrorType {
    /// The cause's `type` in a `Status`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }
}

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The message.
    pub error_type: ErrorType,
    /// The path of the field, as `spec.validations[0].expression`.
    pub field: String,
    /// The message for it, without the path.
    pub body: String,
    /// Advice, which the API server does not give.
    pub help: Option<String>,
}

impl Error {
    fn new(error_type: ErrorType, field: impl Into<String>, value: Option<&str>, detail: &str) -> Self {
        let mut body = error_type.text().to_owned();
        for part in value.into_iter().chain([detail]).filter(|part| !part.is_empty()) {
            let _ = write!(body, ": {part}");
        }
        Self { error_type, field: field.into(), body, help: None }
    }

    /// The same error with advice.
    #[must_use]
    pub fn with_help(self, help: Option<String>) -> Self {
        Self { help, ..self }
    }

    /// A field without a value.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::new(ErrorType::Required, field, None, detail)
    }

    /// A text of the wrong form.
    pub fn invalid(field: impl Into<String>, value: &str, detail: &str) -> Self {
        Self::new(ErrorType::Invalid, field, Some(&quote(value)), detail)
    }

    /// Another value of the wrong form, as it is shown.
    pub fn invalid_shown(field: impl Into<String>, shown: &str, detail: &str) -> Self {
        Self::new(ErrorType::Invalid, field, Some(shown), detail)
    }

    /// Another invalid value, printed as the minor prints it.
    pub fn invalid_value(minor: Minor, field: impl Into<String>, value: &Json, detail: &str) -> Self {
        Self::new(ErrorType::Invalid, field, Some(&shown(minor, value)), detail)
    }

    /// An invalid list of strings, with the Go type of its elements.
    pub(crate) fn invalid_list(
        minor: Minor,
        field: impl Into<String>,
        (of, values): (&str, &[&str]),
        detail: &str,
    ) -> Self {
        Self::new(ErrorType::Invalid, field, Some(&shown_list(minor, of, values)), detail)
    }

    /// An invalid unsigned integer.
    pub(crate) fn invalid_unsigned(minor: Minor, field: impl Into<String>, value: u64, detail: &str) -> Self {
        Self::new(ErrorType::Invalid, field, Some(&shown_unsigned(minor, value)), detail)
    }

    /// A value that is there twice, as it is shown.
    pub fn duplicate_shown(field: impl Into<String>, shown: &str) -> Self {
        Self::new(ErrorType::Duplicate, field, Some(shown), "")
    }

    /// The same error as one of a value of the wrong type.
    #[must_use]
    pub fn of_type(self) -> Self {
        Self { error_type: ErrorType::TypeInvalid, ..self }
    }

    /// An error of a value that has no type in Go but that of its JSON: a text is quoted, and not escaped as JSON.
    pub(crate) fn untyped(
        minor: Minor,
        error_type: ErrorType,
        field: impl Into<String>,
        value: &Json,
        detail: &str,
    ) -> Self {
        Self::new(error_type, field, Some(&untyped(minor, value)), detail)
    }

    /// Something of the wrong form that is not shown.
    pub fn invalid_hidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(ErrorType::Invalid, field, None, detail)
    }

    /// A text of a Go type of its own with a value that is not allowed.
    pub fn not_supported(minor: Minor, field: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        Self::not_supported_value(minor, field, &value.into(), supported)
    }

    /// Any value that is not allowed.
    pub fn not_supported_value(minor: Minor, field: impl Into<String>, value: &Json, supported: &[&str]) -> Self {
        let supported: Vec<_> = supported.iter().map(|one| quote(one)).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        Self::new(ErrorType::NotSupported, field, Some(&shown(minor, value)), &detail)
    }

    /// A text that is there twice.
    pub fn duplicate(field: impl Into<String>, value: &str) -> Self {
        Self::new(ErrorType::Duplicate, field, Some(&quote(value)), "")
    }

    /// Something that must not be there.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(ErrorType::Forbidden, field, None, detail)
    }

    /// A text with too many bytes, in the words of a minor: since 1.34 one is not a plural.
    pub fn too_long_in(minor: Minor, field: impl Into<String>, most: usize) -> Self {
        let bytes = if minor >= Minor::V1_34 && most == 1 { "byte" } else { "bytes" };
        Self::new(ErrorType::TooLong, field, None, &format!("may not be more than {most} {bytes}"))
    }

    /// As [`Self::too_many`], in the words of a minor: since 1.34 one is not a plural.
    pub fn too_many_in(minor: Minor, field: impl Into<String>, actual: usize, most: usize) -> Self {
        let items = if minor >= Minor::V1_34 && most == 1 { "item" } else { "items" };
        Self::new(ErrorType::TooMany, field, Some(&actual.to_string()), &format!("must have at most {most} {items}"))
    }

    /// A list with too many elements.
    pub fn too_many(field: impl Into<String>, actual: usize, most: usize) -> Self {
        let detail = format!("must have at most {most} items");
        Self::new(ErrorType::TooMany, field, Some(&actual.to_string()), &detail)
    }

    /// A text that names something that does not exist.
    pub fn not_found(field: impl Into<String>, value: &str) -> Self {
        Self::new(ErrorType::NotFound, field, Some(&quote(value)), "")
    }

    /// A value of the wrong type, which is named by that type.
    pub fn type_invalid(field: impl Into<String>, found: &str, detail: &str) -> Self {
        Self::new(ErrorType::TypeInvalid, field, Some(&quote(found)), detail)
    }

    /// A duplicate value, printed as the minor prints it.
    pub fn duplicate_value(minor: Minor, field: impl Into<String>, value: &Json) -> Self {
        Self::new(ErrorType::Duplicate, field, Some(&shown(minor, value)), "")
    }

    /// Something that is there twice and is not shown.
    pub fn duplicate_hidden(field: impl Into<String>) -> Self {
        Self::new(ErrorType::Duplicate, field, None, "")
    }

    /// Something else that went wrong.
    pub fn internal(field: impl Into<String>, detail: &str) -> Self {
        Self::new(ErrorType::Internal, field, None, detail)
    }
}

/// All errors as one text (`k8s.io/apimachinery/pkg/util/errors.Aggregate`).
pub fn aggregate(errors: &[Error]) -> String {
    let mut seen = BTreeSet::new();
    let texts: Vec<_> = errors
        .iter()
        .map(|error| format!("{}: {}", error.field, error.body))
        .filter(|text| seen.insert(text.clone()))
        .collect();
    if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) }
}

/// A value as Go writes JSON: without spaces, and with escapes for what HTML would obey.
pub(crate) fn go_json(value: &Json) -> String {
    match value {
        Json::Number(number) if !number.is_i64() => number.as_f64().map_or_else(|| number.to_string(), float_json),
        Json::Array(elements) => format!("[{}]", elements.iter().map(go_json).collect::<Vec<_>>().join(",")),
        Json::Object(fields) => {
            let field = |(key, value)| format!("{}:{}", html_escaped(&Json::from(key).to_string()), go_json(value));
            let fields = fields.iter().map(|(key, value): (&String, &Json)| field((key.as_str(), value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        other => html_escaped(&other.to_string()),
    }
}

/// A double as Go writes it in JSON: without an exponent in a wide range, and else with one of few digits.
fn float_json(value: f64) -> String {
    if value == 0.0 || (1e-6..1e21).contains(&value.abs()) {
        return float_digits(value);
    }
    float_text(value).replace("e-0", "e-")
}

/// A value of no type but that of its JSON, as the API server shows it.
fn untyped(minor: Minor, value: &Json) -> String {
    match value {
        Json::String(text) => quote(text),
        Json::Number(number) if !number.is_i64() => number.as_f64().map_or_else(|| number.to_string(), float_text),
        other if minor < Minor::V1_34 => go_syntax_of_any(other, "\"null\"", true),
        other => go_json(other),
    }
}

/// A value as an error of the API server prints it (`Error.ErrorBody` in
/// `k8s.io/apimachinery/pkg/util/validation/field/errors.go`).
///
/// | value | until 1.33 | since 1.34 |
/// |---|---|---|
/// | string, boolean, signed integer, double | `%q` or `%v` | the same |
/// | string of a named type | `%#v`: quoted as in Go | JSON, with escapes for HTML |
/// | unsigned integer | `%#v`: hexadecimal | decimal |
/// | list, map, struct | `%#v`: with its Go type | JSON |
/// | nil | `"null"` | `null` |
///
/// The type of a list of named strings is not in its JSON: [`shown_list`] prints it. Structs are in
/// `crate::objects::validate::shown`.
pub(crate) fn shown(minor: Minor, value: &Json) -> String {
    if minor >= Minor::V1_34 { go_json(value) } else { go_syntax_of_any(value, "\"null\"", false) }
}

/// A list of strings, with the Go type of its elements.
pub(crate) fn shown_list(minor: Minor, of: &str, values: &[&str]) -> String {
    if minor >= Minor::V1_34 {
        return go_json(&values.to_vec().into());
    }
    format!("[]{of}{{{}}}", values.iter().map(|value| quote(value)).collect::<Vec<_>>().join(", "))
}

/// An unsigned integer.
fn shown_unsigned(minor: Minor, value: u64) -> String {
    if minor >= Minor::V1_34 { value.to_string() } else { format!("{value:#x}") }
}

/// A value of whatever types in the syntax of Go, with another text for a null that is in nothing. Lists of texts have a
/// type of their own, unless they are untyped.
fn go_syntax_of_any(value: &Json, null: &str, untyped: bool) -> String {
    let inner = |value| go_syntax_of_any(value, "interface {}(nil)", untyped);
    match value {
        Json::Null => null.to_owned(),
        Json::String(text) => quote(text),
        Json::Array(elements) => {
            let of = if !untyped && elements.iter().all(Json::is_string) { "string" } else { "interface {}" };
            format!("[]{of}{{{}}}", elements.iter().map(inner).collect::<Vec<_>>().join(", "))
        }
        Json::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{}:{}", quote(key), inner(value)));
            format!("map[string]interface {{}}{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Json::Number(number) if !number.is_i64() => number.as_f64().map_or_else(|| number.to_string(), float_text),
        other => other.to_string(),
    }
}

/// JSON without what HTML would obey.
pub(crate) fn html_escaped(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn characters_newer_than_go_are_escaped() {
        // U+1C89 is of Unicode 16.0, and a combining mark is printed also at the start.
        let error = Error::invalid("a", "\u{1c89}\u{301}", "");
        assert_eq!(error.body, "Invalid value: \"\\u1c89\u{301}\"");
    }

    #[test]
    fn maps_are_shown_in_the_syntax_of_go_before_1_34() {
        for (value, expected) in [
            (json!({"a": "b", "c": ""}), r#"map[string]interface {}{"a":"b", "c":""}"#),
            (
                json!([{"a": [1, true, null]}]),
                r#"[]interface {}{map[string]interface {}{"a":[]interface {}{1, true, interface {}(nil)}}}"#,
            ),
            (json!("a"), r#""a""#),
        ] {
            assert_eq!(shown(Minor::V1_33, &value), expected);
            assert_eq!(shown(Minor::V1_34, &value), value.to_string());
        }
    }

    #[test]
    fn values_are_printed_as_the_minor_prints_them() {
        let at = |minor| {
            [
                Error::invalid_value(minor, "f", &json!("<a>\u{7}"), "no"),
                Error::not_supported(minor, "f", "<a>", &["A"]),
                Error::duplicate_value(minor, "f", &json!("<a>")),
                Error::invalid_value(minor, "f", &json!(["v2", "<"]), "no"),
                Error::invalid_list(minor, "f", ("core.Kind", &["v2", "<"]), "no"),
                Error::invalid_unsigned(minor, "f", 0, "no"),
                Error::invalid_unsigned(minor, "f", 26, "no"),
                Error::invalid_value(minor, "f", &Json::Null, "no"),
                Error::invalid_value(minor, "f", &json!(-7), "no"),
                Error::invalid_value(minor, "f", &json!(true), "no"),
            ]
            .map(|error| error.body)
        };
        let go = [
            r#"Invalid value: "<a>\a": no"#,
            r#"Unsupported value: "<a>": supported values: "A""#,
            r#"Duplicate value: "<a>""#,
            r#"Invalid value: []string{"v2", "<"}: no"#,
            r#"Invalid value: []core.Kind{"v2", "<"}: no"#,
            "Invalid value: 0x0: no",
            "Invalid value: 0x1a: no",
            r#"Invalid value: "null": no"#,
            "Invalid value: -7: no",
            "Invalid value: true: no",
        ];
        let as_json = [
            r#"Invalid value: "\u003ca\u003e\u0007": no"#,
            r#"Unsupported value: "\u003ca\u003e": supported values: "A""#,
            r#"Duplicate value: "\u003ca\u003e""#,
            r#"Invalid value: ["v2","\u003c"]: no"#,
            r#"Invalid value: ["v2","\u003c"]: no"#,
            "Invalid value: 0: no",
            "Invalid value: 26: no",
            "Invalid value: null: no",
            "Invalid value: -7: no",
            "Invalid value: true: no",
        ];
        for minor in Minor::ALL {
            assert_eq!(at(minor), if minor < Minor::V1_34 { go } else { as_json }, "{minor}");
        }
    }

    #[test]
    fn validation_errors_are_worded_like_the_api_server() {
        let errors = [
            Error::required("spec.x", ""),
            Error::required("spec.x", ""),
            Error::invalid("a", "b", "must not"),
            Error::not_supported(Minor::V1_36, "f", "<x", &["A", "B"]),
            Error::too_many("m", 65, 64),
            Error::invalid_value(Minor::V1_36, "r", &json!(["*", "a"]), "no"),
        ];
        assert_eq!(
            aggregate(&errors),
            "[spec.x: Required value, a: Invalid value: \"b\": must not, \
             f: Unsupported value: \"\\u003cx\": supported values: \"A\", \"B\", \
             m: Too many: 65: must have at most 64 items, r: Invalid value: [\"*\",\"a\"]: no]"
        );
        assert_eq!(aggregate(&errors[..2]), "spec.x: Required value");
    }
}
