//! Named formats (`pkg/cel/library/format.go`): `format.dns1123Label().validate(string)`.
//!
//! The checks are those of `k8s.io/apimachinery` (`pkg/util/validation` and `pkg/api/validate/content`, which name a
//! length in characters and in bytes respectively) and of `k8s.io/kube-openapi` (`pkg/validation/strfmt`).

use super::{time::is_date, url::parse_request_uri};

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const OLD_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

/// A named format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Dns1123Label { prefix: bool },
    Dns1123Subdomain { prefix: bool },
    Dns1035Label { prefix: bool },
    QualifiedName,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    Datetime,
}

/// The formats by the name of their function, `format.<name>()`.
pub(crate) const FORMATS: [(&str, Format); 13] = [
    ("dns1123Label", Format::Dns1123Label { prefix: false }),
    ("dns1123Subdomain", Format::Dns1123Subdomain { prefix: false }),
    ("dns1035Label", Format::Dns1035Label { prefix: false }),
    ("qualifiedName", Format::QualifiedName),
    ("dns1123LabelPrefix", Format::Dns1123Label { prefix: true }),
    ("dns1123SubdomainPrefix", Format::Dns1123Subdomain { prefix: true }),
    ("dns1035LabelPrefix", Format::Dns1035Label { prefix: true }),
    ("labelValue", Format::LabelValue),
    ("uri", Format::Uri),
    ("uuid", Format::Uuid),
    ("byte", Format::Byte),
    ("date", Format::Date),
    ("datetime", Format::Datetime),
];

impl Format {
    /// `format.named(string)`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        FORMATS.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// The size of the regular expression by which the cost of `validate` is computed.
    pub(crate) fn regex_size(self) -> u64 {
        match self {
            Format::Dns1123Label { .. } | Format::Dns1035Label { .. } => 30,
            Format::Dns1123Subdomain { .. } | Format::QualifiedName => 60,
            Format::LabelValue => 40,
            Format::Uri => 1103,
            Format::Uuid => 70,
            Format::Byte => 84,
            Format::Date | Format::Datetime => 71,
        }
    }

    /// `format.validate(string)`: the errors; none if the text is valid.
    pub(crate) fn validate(self, text: &str) -> Vec<String> {
        let one = |valid: bool, error: &str| if valid { Vec::new() } else { vec![error.to_owned()] };
        let bytes = text.as_bytes();
        match self {
            Format::Dns1123Label { prefix } => label(&mask(bytes, prefix)),
            Format::Dns1123Subdomain { prefix } => subdomain(&mask(bytes, prefix), "characters"),
            Format::Dns1035Label { prefix } => old_label(&mask(bytes, prefix)),
            Format::QualifiedName => qualified_name(text),
            Format::LabelValue => label_value(text),
            Format::Uri => parse_request_uri(text).err().into_iter().collect(),
            Format::Uuid => one(is_uuid(bytes), "does not match the UUID format"),
            Format::Byte => one(is_base64(bytes), "invalid base64"),
            Format::Date => one(is_date(text), "invalid date"),
            Format::Datetime => one(is_datetime(text), "invalid datetime"),
        }
    }
}

/// A name that something is to be appended to may end with a dash. Go replaces the dash and what is before it.
fn mask(text: &[u8], prefix: bool) -> Vec<u8> {
    if prefix && text.len() > 1 && text.ends_with(b"-") {
        return [&text[..text.len() - 2], b"a"].concat();
    }
    text.to_vec()
}

fn too_long(length: usize, most: usize, unit: &str) -> Option<String> {
    (length > most).then(|| format!("must be no more than {most} {unit}"))
}

/// Go's `RegexError`.
fn mismatch(message: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

/// Whether a text consists of such characters and begins and ends with a small letter or digit.
fn is_label(text: &[u8]) -> bool {
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.first().is_some_and(inner)
        && text.last().is_some_and(inner)
        && text.iter().all(|byte| inner(byte) || *byte == b'-')
}

fn is_subdomain(text: &[u8]) -> bool {
    text.split(|&byte| byte == b'.').all(is_label)
}

fn label(text: &[u8]) -> Vec<String> {
    let mut errors: Vec<_> = too_long(text.len(), 63, "characters").into_iter().collect();
    if is_label(text) {
        return errors;
    }
    errors.push(if is_subdomain(text) {
        "must not contain dots".to_owned()
    } else {
        let message = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                       start and end with an alphanumeric character";
        mismatch(message, LABEL, &["my-name", "123-abc"])
    });
    errors
}

fn subdomain(text: &[u8], unit: &str) -> Vec<String> {
    let mut errors: Vec<_> = too_long(text.len(), 253, unit).into_iter().collect();
    if !is_subdomain(text) {
        let message = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                       and must start and end with an alphanumeric character";
        errors.push(mismatch(message, SUBDOMAIN, &["example.com"]));
    }
    errors
}

fn old_label(text: &[u8]) -> Vec<String> {
    let mut errors: Vec<_> = too_long(text.len(), 63, "characters").into_iter().collect();
    if !is_label(text) || text[0].is_ascii_digit() {
        let message = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                       alphabetic character, and end with an alphanumeric character";
        errors.push(mismatch(message, OLD_LABEL, &["my-name", "abc-123"]));
    }
    errors
}

fn is_key(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric();
    text.bytes().next().is_some_and(inner)
        && text.bytes().next_back().is_some_and(inner)
        && text.bytes().all(|byte| inner(byte) || b"-_.".contains(&byte))
}

fn qualified_name(text: &str) -> Vec<String> {
    let rule = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                character";
    let wrong = mismatch(rule, KEY, &["MyName", "my.name", "123-abc"]);
    let mut errors = Vec::new();
    let name = match text.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [prefix, name] => {
            let found = if prefix.is_empty() {
                vec!["must be non-empty".to_owned()]
            } else {
                subdomain(prefix.as_bytes(), "bytes")
            };
            errors.extend(found.into_iter().map(|error| format!("prefix part {error}")));
            name
        }
        _ => {
            let also = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {wrong}{also}")];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    }
    errors.extend(too_long(name.len(), 63, "bytes").map(|error| format!("name part {error}")));
    if !is_key(name) {
        errors.push(format!("name part {wrong}"));
    }
    errors
}

fn label_value(text: &str) -> Vec<String> {
    let mut errors: Vec<_> = too_long(text.len(), 63, "bytes").into_iter().collect();
    if !text.is_empty() && !is_key(text) {
        let message = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                       must start and end with an alphanumeric character";
        errors.push(mismatch(message, VALUE, &["MyValue", "my_value", "12345"]));
    }
    errors
}

/// A UUID of a version; the variant is that of RFC 4122, if it must be.
pub(super) fn is_uuid_of(text: &[u8], version: u8, variant: bool) -> bool {
    let digits: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'-').collect();
    is_uuid(text) && digits[12] == version && (!variant || b"89abAB".contains(&digits[16]))
}

/// Groups of hexadecimal digits, with or without a dash between them.
pub(super) fn is_uuid(mut text: &[u8]) -> bool {
    for (index, count) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            text = text.strip_prefix(b"-").unwrap_or(text);
        }
        let Some((group, rest)) = text.split_at_checked(count) else { return false };
        if !group.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        text = rest;
    }
    text.is_empty()
}

pub(super) fn is_base64(text: &[u8]) -> bool {
    let digits = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    !digits.is_empty() && text.len().is_multiple_of(4) && digits.iter().all(digit)
}

/// A date, `t`, a time and an offset; the offset is not looked at, and neither is what is behind a second `t`.
pub(super) fn is_datetime(text: &str) -> bool {
    // Each letter by itself and as one, as in Go.
    let lower: String = text.chars().filter_map(|c| c.to_lowercase().next()).collect();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    text.len() >= 4 && is_date(date) && is_time(time).unwrap_or(false)
}

/// `15:04:05`, then any character and digits, then `z` or an offset.
fn is_time(text: &str) -> Option<bool> {
    let (clock, rest) = text.split_at_checked(8)?;
    let two_digits = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let [hour, minute, second] = clock.split(':').collect::<Vec<_>>()[..] else { return None };
    if ![hour, minute, second].into_iter().all(two_digits) || hour > "23" || minute > "59" || second > "59" {
        return None;
    }
    let is_offset = |text: &str| {
        let offset = text.strip_prefix(['+', '-']).and_then(|text| text.split_once(':'));
        text == "z" || offset.is_some_and(|(hours, minutes)| two_digits(hours) && two_digits(minutes))
    };
    let mut after = rest.chars();
    let separator = after.next()?;
    let digits = after.as_str().bytes().take_while(u8::is_ascii_digit).count();
    // The digits may be part of the offset, as in `+01:00`.
    let fraction = separator != '\n' && (1..=digits).any(|count| is_offset(&after.as_str()[count..]));
    Some(is_offset(rest) || fraction)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::library::truth::{check, string, texts};

    #[test]
    fn results_match_the_api_server() {
        check(include_str!("testdata/format.jsonl"), |call, args| {
            let text = string(&args[0]);
            if call == "size" {
                return Ok(json!(Format::named(text).map(Format::regex_size)));
            }
            let name = call.strip_prefix("format.").unwrap().strip_suffix("().validate(x0)").unwrap();
            let errors = Format::named(name).unwrap().validate(text);
            Ok(if errors.is_empty() { json!({"none": true}) } else { json!(errors) })
        });
    }

    #[test]
    fn every_format_validates_any_text_without_panic() {
        let pieces = ["a", "-", ".", "/", "9", "é", "2023-01-02", "t", "12:34:56", ".5", "+01:00", "z", "=", "A"];
        for text in texts(&pieces, 5_000) {
            for (_, format) in FORMATS {
                format.validate(&text);
            }
        }
    }
}
