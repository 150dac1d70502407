//! The formats of strings in schemas (kube-openapi `pkg/validation/strfmt`): which texts have one, and the values of
//! those with a format that CEL has a type for.

mod base64;
mod email;
mod network;
mod numbers;
mod time;

use std::sync::LazyLock;

use super::{
    format::{is_base64, is_datetime, is_uuid, is_uuid_of},
    re2::Regex,
    time::is_date,
    url::parse_request_uri,
};
use crate::Minor;

pub use base64::decode_base64;
pub(crate) use base64::decode_url;
pub use time::quote as quote_time;
pub(crate) use time::{date, date_time, duration};

/// Labels of letters, digits and symbols of any script, the last of letters only.
const HOSTNAME: &str = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";
const RGB: &str = r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$";

/// The check of a format of a minor, or none for a format that the API server ignores. Dashes in the name do not count.
pub fn check(minor: Minor, format: &str) -> Option<fn(&str) -> bool> {
    let name = format.replace('-', "");
    Some(match name.as_str() {
        "bsonobjectid" => |text| text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "uri" => |text| parse_request_uri(text).is_ok(),
        "email" => email::is_email,
        "hostname" => is_hostname,
        "ipv4" => network::is_ipv4,
        "ipv6" => network::is_ipv6,
        "cidr" => network::is_cidr,
        "mac" => network::is_mac,
        "uuid" => |text| is_uuid(text.as_bytes()),
        "uuid3" => |text| is_uuid_of(text.as_bytes(), b'3', false),
        "uuid4" => |text| is_uuid_of(text.as_bytes(), b'4', true),
        "uuid5" => |text| is_uuid_of(text.as_bytes(), b'5', true),
        "isbn" => |text| numbers::is_isbn10(text) || numbers::is_isbn13(text),
        "isbn10" => numbers::is_isbn10,
        "isbn13" => numbers::is_isbn13,
        "creditcard" => numbers::is_credit_card,
        "ssn" => numbers::is_ssn,
        "hexcolor" => is_hex_color,
        "rgbcolor" => is_rgb_color,
        "byte" => |text| is_base64(text.as_bytes()),
        "password" => |_| true,
        "date" => is_date,
        "duration" => |text| duration(text).is_ok(),
        "datetime" => is_datetime,
        // New in 1.34, and a format is enforced from the minor after the one that brings it.
        "k8sshortname" if minor >= Minor::V1_35 => |text| text.len() <= 63 && is_label(text),
        "k8slongname" if minor >= Minor::V1_35 => |text| text.len() <= 253 && text.split('.').all(is_label),
        _ => return None,
    })
}

fn is_match(regex: &Result<Regex, String>, text: &str) -> bool {
    regex.as_ref().is_ok_and(|regex| regex.is_match(text))
}

fn is_hostname(text: &str) -> bool {
    static REGEX: LazyLock<Result<Regex, String>> = LazyLock::new(|| Regex::new(HOSTNAME));
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && is_match(&REGEX, text)
}

fn is_rgb_color(text: &str) -> bool {
    static REGEX: LazyLock<Result<Regex, String>> = LazyLock::new(|| Regex::new(RGB));
    is_match(&REGEX, text)
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Small letters, digits and inner dashes.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().next().is_some_and(inner)
        && text.bytes().next_back().is_some_and(inner)
        && text.bytes().all(|byte| inner(byte) || byte == b'-')
}
