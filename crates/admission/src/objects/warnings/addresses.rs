//! Addresses in another form than the usual one (`GetWarningsForIP` and `GetWarningsForCIDR` in apimachinery
//! `pkg/util/validation/ip.go`). Validation rejects other texts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use palisade_cel::Minor;
use serde_json::Value;

use super::Warnings;
use crate::validation::quote;

pub(super) fn ips(minor: Minor, path: &str, list: &[Value], out: &mut Warnings) {
    for (i, text) in list.iter().enumerate() {
        ip(minor, &format!("{path}[{i}]"), text.as_str().unwrap_or_default(), out);
    }
}

pub(super) fn cidrs(minor: Minor, path: &str, list: &[Value], out: &mut Warnings) {
    for (i, text) in list.iter().enumerate() {
        cidr(minor, &format!("{path}[{i}]"), text.as_str().unwrap_or_default(), out);
    }
}

/// Before 1.33 only services are warned about, by [`of_service`].
pub(super) fn ip(minor: Minor, path: &str, text: &str, out: &mut Warnings) {
    if minor < Minor::V1_33 {
        return;
    }
    let Some(found) = lenient(text) else { return };
    let shown = quote(&found.to_canonical().to_string());
    if !is_standard(text) {
        out.push(format!("{path}: non-standard IP address {} is invalid: use {shown}", quote(text)));
    } else if found.is_ipv6() && found.to_string() != text {
        let text = quote(text);
        out.push(format!("{path}: IPv6 address {text} should be in RFC 5952 canonical format ({shown})"));
    }
}

/// The warnings of services before 1.33 (`getWarningsForIP` and `getWarningsForCIDR` in `pkg/api/service/warnings.go`).
/// The reasons for texts with colons are those of IPv6 addresses, which are shortened here.
pub(super) fn of_service(path: &str, text: &str, out: &mut Warnings) {
    let (address, what, function) = match text.split_once('/').filter(|_| path.starts_with("spec.loadBalancerSource")) {
        Some((address, _)) => (address, "prefix", "netip.ParsePrefix"),
        None => (text, "address", "ParseAddr"),
    };
    match address.parse::<IpAddr>() {
        Ok(found) if found.is_ipv6() && found.to_string() != address => {
            let shown = quote(&text.replacen(address, &found.to_string(), 1));
            out.push(format!(
                "{path}: IPv6 {what} {} is not in RFC 5952 canonical format ({shown}), which may cause controller \
                 apply-loops",
                quote(text)
            ));
        }
        Ok(_) => {}
        Err(_) => {
            let why = format!("{function}({}): {}", quote(text), unreadable(address));
            out.push(format!(
                "{path}: IP {what} was accepted, but will be invalid in a future Kubernetes release: {why}"
            ));
        }
    }
}

/// The reason why Go's `netip` does not read a text as an address of IPv4.
fn unreadable(text: &str) -> String {
    let Some('.') = text.chars().find(|c| ".:%".contains(*c)) else { return "unable to parse IP".to_owned() };
    let (mut fields, mut value, mut digits, mut before) = (0, 0_u32, 0, '.');
    for (i, c) in text.char_indices() {
        let at = || format!(" (at {})", quote(&text[i..]));
        match c {
            '0'..='9' if digits == 1 && value == 0 => return "IPv4 field has octet with leading zero".to_owned(),
            '0'..='9' => {
                value = value * 10 + c.to_digit(10).unwrap_or(0);
                digits += 1;
                if value > 255 {
                    return "IPv4 field has value >255".to_owned();
                }
            }
            '.' if before == '.' || i + 1 == text.len() => {
                return format!("IPv4 field must have at least one digit{}", at());
            }
            '.' if fields == 3 => return "IPv4 address too long".to_owned(),
            '.' => (fields, value, digits) = (fields + 1, 0, 0),
            _ => return format!("unexpected character{}", at()),
        }
        before = c;
    }
    "IPv4 address too short".to_owned()
}

pub(super) fn cidr(minor: Minor, path: &str, text: &str, out: &mut Warnings) {
    if minor < Minor::V1_33 {
        return;
    }
    let Some((address, length)) = text.split_once('/') else { return };
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let (Some(found), Ok(bits), true) = (lenient(address), length.parse::<u8>(), digits) else { return };
    let Some((network, width)) = network(found, bits) else { return };
    let net = match (network, network.to_canonical()) {
        (IpAddr::V6(_), IpAddr::V4(mapped)) => format!("{mapped}/{}", bits.saturating_sub(96)),
        _ => format!("{network}/{bits}"),
    };
    let (value, net, before) = (quote(text), quote(&net), out.len());
    if network != found {
        let single = quote(&format!("{}/{width}", found.to_canonical()));
        out.push(format!("{path}: CIDR value {value} is ambiguous in this context (should be {net} or {single}?)"));
    }
    if !is_standard(address) || length != bits.to_string() {
        out.push(format!("{path}: non-standard CIDR value {value} is invalid: use {net}"));
    }
    if out.len() == before && found.is_ipv6() && found.to_string() != address {
        out.push(format!("{path}: IPv6 CIDR value {value} should be in RFC 5952 canonical format ({net})"));
    }
}

/// An address without the bits after its prefix, and how many bits it has; none if the prefix is too long.
pub(in super::super) fn network(address: IpAddr, bits: u8) -> Option<(IpAddr, u32)> {
    let bits = u32::from(bits);
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0);
            Some((IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask)), 32))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128_u32.checked_sub(bits)?).unwrap_or(0);
            Some((IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask)), 128))
        }
    }
}

/// Without leading zeros, and no IPv4 address in the form of an IPv6 address.
fn is_standard(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok_and(|address| address.to_canonical() == address)
}

/// Reads an address; parts of IPv4 may have leading zeros (`ParseIPSloppy`).
pub(in super::super) fn lenient(text: &str) -> Option<IpAddr> {
    let v4 = |text: &str| -> Option<Ipv4Addr> {
        let parts: Vec<_> = text.split('.').map(|part| part.trim_start_matches('0')).collect();
        if text.split('.').any(str::is_empty) {
            return None;
        }
        let parts: Vec<_> = parts.into_iter().map(|part| if part.is_empty() { "0" } else { part }).collect();
        parts.join(".").parse().ok()
    };
    match text.rsplit_once(':') {
        Some((head, tail)) if tail.contains('.') => {
            format!("{head}:{}", v4(tail)?).parse::<Ipv6Addr>().ok().map(IpAddr::V6)
        }
        Some(_) => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => v4(text).map(IpAddr::V4),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn warned(of: fn(Minor, &str, &str, &mut Warnings), text: &str) -> Vec<String> {
        let mut out = Warnings::new();
        of(Minor::DEFAULT, "f", text, &mut out);
        out
    }

    /// The cases of apimachinery `pkg/util/validation/ip_test.go`.
    #[test]
    fn non_canonical_ip_addresses_are_warned_about() {
        for good in ["192.12.2.2", "2001:4860:4860::8888", "not an address", ""] {
            assert_eq!(warned(ip, good), Vec::<String>::new(), "{good}");
        }
        for (text, wanted) in [
            ("192.012.2.2", r#"f: non-standard IP address "192.012.2.2" is invalid: use "192.12.2.2""#),
            ("::ffff:192.12.2.2", r#"f: non-standard IP address "::ffff:192.12.2.2" is invalid: use "192.12.2.2""#),
            (
                "2001:db8:0:0::2",
                r#"f: IPv6 address "2001:db8:0:0::2" should be in RFC 5952 canonical format ("2001:db8::2")"#,
            ),
            ("2001:DB8::2", r#"f: IPv6 address "2001:DB8::2" should be in RFC 5952 canonical format ("2001:db8::2")"#),
        ] {
            assert_eq!(warned(ip, text), [wanted]);
        }
    }

    #[test]
    fn non_canonical_cidrs_are_warned_about() {
        for good in ["192.12.2.0/24", "::/0", "0.0.0.0/0", "2001:db8::/32", "10.0.0.0/33", "10.0.0.0"] {
            assert_eq!(warned(cidr, good), Vec::<String>::new(), "{good}");
        }
        for (text, wanted) in [
            ("192.012.2.0/24", r#"f: non-standard CIDR value "192.012.2.0/24" is invalid: use "192.12.2.0/24""#),
            (
                "192.168.1.5/24",
                r#"f: CIDR value "192.168.1.5/24" is ambiguous in this context (should be "192.168.1.0/24" or "192.168.1.5/32"?)"#,
            ),
            (
                "::ffff:10.1.0.0/112",
                r#"f: non-standard CIDR value "::ffff:10.1.0.0/112" is invalid: use "10.1.0.0/16""#,
            ),
            (
                "2001:DB8::/32",
                r#"f: IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical format ("2001:db8::/32")"#,
            ),
        ] {
            assert_eq!(warned(cidr, text), [wanted]);
        }
    }
}
