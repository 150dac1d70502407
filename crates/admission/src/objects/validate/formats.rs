//! The forms of texts and numbers (`k8s.io/apimachinery/pkg/util/validation`). Each function returns the errors in
//! one.

use std::net::IpAddr;

use palisade_cel::Minor;

use super::{
    super::{gates::Gate, warnings::addresses},
    node::Node,
};
use crate::validation::{Checking, meta, names, quote};

/// A protocol of a port.
pub(super) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

const PORT: &str = "must be between 1 and 65535, inclusive";

pub(super) fn is_port(number: i64) -> bool {
    (1..=65535).contains(&number)
}

/// A number of a port that must be there.
pub(super) fn port_number(checking: &mut Checking<'_>, node: &Node<'_>) {
    let number = node.value.as_i64().unwrap_or(0);
    if !is_port(number) {
        checking.invalid_value(&node.path, &number.into(), PORT);
    }
}

/// The name of a port (`IsValidPortName`).
pub(super) fn port_name(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 15 {
        wrong.push("must be no more than 15 characters");
    }
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        wrong.push("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen");
    }
    wrong.into_iter().map(str::to_owned).collect()
}

/// A port by its number or name (`ValidatePortNumOrName`).
pub(super) fn port(checking: &mut Checking<'_>, node: &Node<'_>) {
    match node.value.as_str() {
        Some(name) => checking.each(&node.path, name, &port_name(name)),
        None => port_number(checking, node),
    }
}

/// The name of a variable of the environment, or a prefix of one (`IsRelaxedEnvVarName`): each minor from 1.33 on relaxes.
pub(super) fn variable(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.is_empty() {
        wrong.push("environment variable name must be non-empty".to_owned());
    }
    if !name.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=') {
        wrong.push(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        );
    }
    wrong
}

/// A key of a config map or secret (`IsConfigMapKey`).
pub(super) fn config_key(key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if key.len() > 253 {
        wrong.push("must be no more than 253 characters".to_owned());
    }
    if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
        wrong.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match key {
        "." | ".." => wrong.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// The name of an HTTP header (`IsHTTPHeaderName`).
pub(super) fn header(name: &str) -> Vec<String> {
    if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return vec![];
    }
    vec![
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for \
         validation is '[-A-Za-z0-9]+')"
            .to_owned(),
    ]
}

/// A subdomain, of which labels may have underscores (`IsDNS1123SubdomainWithUnderscore`).
pub(super) fn subdomain_with_underscores(minor: Minor, name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 253 {
        wrong.push("must be no more than 253 characters".to_owned());
    }
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label).as_bytes();
        label.first().is_some_and(|b| inner(*b))
            && label.last().is_some_and(|b| inner(*b))
            && label.iter().all(|b| inner(*b) || matches!(b, b'-' | b'_'))
    };
    if !name.split('.').all(label) {
        // 1.33 shows the expression of what has no underscores.
        let form =
            if minor < Minor::V1_34 { "[a-z0-9]([-a-z0-9]*[a-z0-9])?" } else { "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?" };
        wrong.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and \
             must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '{form}(\\.{form})*')"
        ));
    }
    wrong
}

/// A host that may begin with a wildcard (`IsWildcardDNS1123Subdomain`).
pub(super) fn wildcard_host(host: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if host.len() > 253 {
        wrong.push("must be no more than 253 characters".to_owned());
    }
    let short = |host: &str| names::subdomain(host).iter().all(|text| text.starts_with("must be no more"));
    if !host.strip_prefix("*.").is_some_and(short) {
        wrong.push(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist \
             of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. \
             '*.example.com', regex used for validation is \
             '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    wrong
}

/// A path with a domain before it (`IsDomainPrefixedPath`).
pub(super) fn domain_path(checking: &mut Checking<'_>, field: &str, value: &str) {
    if value.is_empty() {
        checking.required(field, "");
        return;
    }
    let Some((host, path)) = value.split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty()) else {
        checking.invalid(field, value, "must be a domain-prefixed path (such as \"acme.io/foo\")");
        return;
    };
    checking.each(field, host, &names::subdomain(host));
    if !path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b)) {
        let text = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        checking.invalid(field, path, text);
    }
}

/// An address (`IsValidIPForLegacyField`).
pub(super) fn ip(checking: &mut Checking<'_>, field: &str, text: &str) -> Option<IpAddr> {
    let Some(found) = addresses::lenient(text) else {
        checking.invalid(field, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
        return None;
    };
    if Gate::StrictIPCIDRValidation.is_on(checking.minor) {
        if has_leading_zeros(text) {
            checking.invalid(field, text, "must not have leading 0s");
        } else if is_mapped(found) {
            checking.invalid(field, text, "must not be an IPv4-mapped IPv6 address");
        }
    }
    Some(found)
}

/// Only what reads leniently takes them.
fn has_leading_zeros(text: &str) -> bool {
    text.parse::<IpAddr>().is_err()
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// A network of addresses (`IsValidCIDRForLegacyField`), and its number of bits.
pub(super) fn cidr(checking: &mut Checking<'_>, field: &str, text: &str) -> Option<(IpAddr, u8)> {
    let parsed = text.split_once('/').and_then(|(address, length)| {
        let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
        let (address, bits) = (addresses::lenient(address)?, length.parse::<u8>().ok().filter(|_| digits)?);
        Some((address, bits, addresses::network(address, bits)?.0))
    });
    let Some((address, bits, network)) = parsed else {
        checking.invalid(field, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
        return None;
    };
    if Gate::StrictIPCIDRValidation.is_on(checking.minor) {
        let (before, length) = text.split_once('/').unwrap_or((text, ""));
        if has_leading_zeros(before) || length != bits.to_string() {
            checking.invalid(field, text, "must not have leading 0s in IP or prefix length");
        } else if is_mapped(address) {
            checking.invalid(field, text, "must not have an IPv4-mapped IPv6 address");
        } else if address != network {
            checking.invalid(field, text, "must not have bits set beyond the prefix length");
        }
    }
    Some((network, bits))
}

/// An address behind a service (`ValidateEndpointIP`).
pub(super) fn endpoint_ip(checking: &mut Checking<'_>, field: &str, text: &str) {
    let Some(ip) = addresses::lenient(text) else {
        checking.invalid(field, text, "must be a valid IP address");
        return;
    };
    let ip = ip.to_canonical();
    if ip.is_unspecified() {
        checking.invalid(field, text, &format!("may not be unspecified ({text})"));
    }
    if ip.is_loopback() {
        checking.invalid(field, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    let (unicast, multicast) = match ip {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] & 0xff0f == 0xff02),
    };
    if unicast {
        checking.invalid(field, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if multicast {
        checking.invalid(field, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

/// A number or a share (`ValidatePositiveIntOrPercent`), if it is there.
pub(super) fn amount(checking: &mut Checking<'_>, node: &Node<'_>) {
    match node.value.as_str() {
        Some(share) if percent(share).is_none() => wrong_amount(
            checking,
            node,
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used \
             for validation is '[0-9]+%')",
        ),
        Some(_) => {}
        None => {
            if node.value.as_i64().is_some_and(|number| number < 0) {
                checking.wrong(node, "must be greater than or equal to 0");
            }
        }
    }
}

/// A share that is more than all (`IsNotMoreThan100Percent`).
pub(super) fn at_most_all(checking: &mut Checking<'_>, node: &Node<'_>) {
    if node.value.as_str().and_then(percent).is_some_and(|share| share > 100) {
        wrong_amount(checking, node, "must not be greater than 100%");
    }
}

/// How many it is: the number of a share, or of the text, or none (`getIntOrPercentValue`).
pub(super) fn amount_of(node: &Node<'_>) -> i64 {
    match node.value.as_str() {
        Some(text) => percent(text).or_else(|| text.parse().ok()).unwrap_or(0),
        None => node.value.as_i64().unwrap_or(0),
    }
}

fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%').filter(|digits| !digits.is_empty())?;
    // What does not fit is zero there.
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().unwrap_or(i64::MAX))
}

/// A value of Go's type `IntOrString`.
pub(super) fn wrong_amount(checking: &mut Checking<'_>, node: &Node<'_>, detail: &str) {
    if checking.minor >= Minor::V1_34 {
        checking.wrong(node, detail);
        return;
    }
    let shown = match node.value.as_str() {
        Some(text) => format!("intstr.IntOrString{{Type:1, IntVal:0, StrVal:{}}}", quote(text)),
        None => format!("intstr.IntOrString{{Type:0, IntVal:{}, StrVal:\"\"}}", node.value.as_i64().unwrap_or(0)),
    };
    checking.invalid_shown(&node.path, &shown, detail);
}

/// A key of a label.
pub(super) fn label_key(checking: &mut Checking<'_>, field: impl Into<String>, key: &str) {
    let wrong = names::qualified(checking.minor, key);
    checking.each(field, key, &wrong);
}

/// A label of DNS.
pub(super) fn label(checking: &mut Checking<'_>, field: impl Into<String>, value: &str) {
    checking.each(field, value, &names::label(value));
}

/// A subdomain of DNS.
pub(super) fn subdomain(checking: &mut Checking<'_>, field: impl Into<String>, value: &str) {
    checking.each(field, value, &names::subdomain(value));
}

/// A label selector, if it is there.
pub(super) fn selector(checking: &mut Checking<'_>, node: &Node<'_>) {
    if !node.value.is_null() {
        meta::selector(checking, node.value, &node.path);
    }
}

/// Labels: their keys and values are reported at the map.
pub(super) fn labels(checking: &mut Checking<'_>, node: &Node<'_>) {
    meta::labels(checking, Some(node.value), &node.path);
}

/// Annotations.
pub(super) fn annotations(checking: &mut Checking<'_>, node: &Node<'_>) {
    meta::annotations(checking, Some(node.value), &node.path);
}
