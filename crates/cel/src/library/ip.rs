//! IP addresses (`pkg/cel/library/ip.go`, with the parser of Go's `net/netip`).
//!
//! Addresses with a zone and IPv4 addresses written as IPv6 ones (`::ffff:1.2.3.4`) are rejected.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::quote::{quote, quote_bytes};

/// `ip(string)`; `isIP(string)` is whether that succeeds.
pub(crate) fn parse(text: &str) -> Result<IpAddr, String> {
    let Address { address, zone } = parse_address(text.as_bytes())
        .map_err(|error| format!("IP Address {} parse error during conversion from string: {error}", quote(text)))?;
    if zone {
        return Err(format!("IP address {} with zone value is not allowed", quote(text)));
    }
    if is_mapped(address) {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
    }
    Ok(address)
}

/// `ip.isCanonical(string)`: whether `string(ip)` would be the same text.
pub(crate) fn is_canonical(text: &str) -> Result<bool, String> {
    Ok(parse(text)?.to_string() == text)
}

/// `ip.family()`: 4 or 6.
pub(crate) fn family(ip: IpAddr) -> i64 {
    if ip.is_ipv4() { 4 } else { 6 }
}

/// `ip.isLinkLocalMulticast()`.
pub(crate) fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
        IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
    }
}

/// `ip.isLinkLocalUnicast()`.
pub(crate) fn is_link_local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// `ip.isGlobalUnicast()`: also private addresses.
pub(crate) fn is_global_unicast(ip: IpAddr) -> bool {
    let broadcast = ip == Ipv4Addr::BROADCAST;
    !(broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_link_local_unicast(ip))
}

/// Whether it is an IPv4 address written as an IPv6 one.
pub(super) fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

/// An address, and whether it has a zone.
pub(super) struct Address {
    pub(super) address: IpAddr,
    pub(super) zone: bool,
}

/// Go's `netip.ParseAddr`, with its errors.
pub(super) fn parse_address(text: &[u8]) -> Result<Address, String> {
    let parsed = match text.iter().find(|byte| b".:%".contains(byte)) {
        Some(b'.') => parse_v4(text).map(|octets| Address { address: octets.into(), zone: false }),
        Some(b':') => parse_v6(text),
        Some(_) => Err(Fault::new("missing IPv6 address")),
        None => Err(Fault::new("unable to parse IP")),
    };
    parsed.map_err(|Fault { message, at }| {
        let at = if at.is_empty() { String::new() } else { format!(" (at {})", quote_bytes(at)) };
        format!("ParseAddr({}): {message}{at}", quote_bytes(text))
    })
}

/// The error in an address, and the rest of the text there.
struct Fault<'t> {
    message: &'static str,
    at: &'t [u8],
}

impl<'t> Fault<'t> {
    fn new(message: &'static str) -> Self {
        Self { message, at: &[] }
    }

    fn at<T>(message: &'static str, at: &'t [u8]) -> Result<T, Self> {
        Err(Self { message, at })
    }
}

fn parse_v4(text: &[u8]) -> Result<[u8; 4], Fault<'_>> {
    let (mut octets, mut position, mut value, mut digits) = ([0; 4], 0, 0_u32, 0);
    for (index, &byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(Fault::new("IPv4 field has octet with leading zero"));
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(Fault::new("IPv4 field has value >255"));
                }
            }
            b'.' => {
                if index == 0 || index == text.len() - 1 || text[index - 1] == b'.' {
                    return Fault::at("IPv4 field must have at least one digit", &text[index..]);
                }
                if position == 3 {
                    return Err(Fault::new("IPv4 address too long"));
                }
                octets[position] = u8::try_from(value).unwrap_or(0);
                (position, value, digits) = (position + 1, 0, 0);
            }
            _ => return Fault::at("unexpected character", &text[index..]),
        }
    }
    if position < 3 {
        return Err(Fault::new("IPv4 address too short"));
    }
    octets[3] = u8::try_from(value).unwrap_or(0);
    Ok(octets)
}

fn parse_v6(text: &[u8]) -> Result<Address, Fault<'_>> {
    let (mut rest, zone) = match text.iter().position(|&byte| byte == b'%') {
        Some(at) if at + 1 == text.len() => return Err(Fault::new("zone must be a non-empty string")),
        Some(at) => (&text[..at], true),
        None => (text, false),
    };
    let mut bytes: Vec<u8> = Vec::new();
    let mut ellipsis = None;
    if let Some(after) = rest.strip_prefix(b"::") {
        (ellipsis, rest) = (Some(0), after);
        if rest.is_empty() {
            return Ok(Address { address: Ipv6Addr::UNSPECIFIED.into(), zone });
        }
    }
    while bytes.len() < 16 {
        let (group, after) = parse_group(rest)?;
        if after.starts_with(b".") {
            if ellipsis.is_none() && bytes.len() != 12 {
                return Fault::at("embedded IPv4 address must replace the final 2 fields of the address", rest);
            }
            if bytes.len() + 4 > 16 {
                return Fault::at("too many hex fields to fit an embedded IPv4 at the end of the address", rest);
            }
            bytes.extend(parse_v4(rest)?);
            rest = &[];
            break;
        }
        bytes.extend(group.to_be_bytes());
        rest = after;
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(b":") else {
            return Fault::at("unexpected character, want colon", rest);
        };
        if after.is_empty() {
            return Fault::at("colon must be followed by more characters", rest);
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(b":") {
            if ellipsis.is_some() {
                return Fault::at("multiple :: in address", rest);
            }
            (ellipsis, rest) = (Some(bytes.len()), after);
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Fault::at("trailing garbage after address", rest);
    }
    match ellipsis {
        None if bytes.len() < 16 => return Err(Fault::new("address string too short")),
        Some(_) if bytes.len() == 16 => {
            return Err(Fault::new("the :: must expand to at least one field of zeros"));
        }
        Some(at) => {
            let zeros = vec![0; 16 - bytes.len()];
            bytes.splice(at..at, zeros);
        }
        None => {}
    }
    let bytes: [u8; 16] = bytes.try_into().map_err(|_| Fault::new("address string too short"))?;
    Ok(Address { address: bytes.into(), zone })
}

/// Up to four hexadecimal digits, and what is behind them.
fn parse_group(text: &[u8]) -> Result<(u16, &[u8]), Fault<'_>> {
    let count = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if count == 0 {
        return Fault::at("each colon-separated field must have at least one digit", text);
    }
    if count > 4 {
        return Fault::at("each group must have 4 or less digits", text);
    }
    let digits = std::str::from_utf8(&text[..count]).unwrap_or_default();
    Ok((u16::from_str_radix(digits, 16).unwrap_or(0), &text[count..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::library::truth::{check, string, texts};

    #[test]
    fn results_match_the_api_server() {
        check(include_str!("testdata/ip.jsonl"), |call, args| {
            let text = string(&args[0]);
            let ip = || parse(text);
            Ok(match call {
                "ip(x0)" | "string(ip(x0))" => json!(ip()?.to_string()),
                "isIP(x0)" => json!(ip().is_ok()),
                "ip.isCanonical(x0)" => json!(is_canonical(text)?),
                "ip(x0).family()" => json!(family(ip()?)),
                "ip(x0).isUnspecified()" => json!(ip()?.is_unspecified()),
                "ip(x0).isLoopback()" => json!(ip()?.is_loopback()),
                "ip(x0).isLinkLocalMulticast()" => json!(is_link_local_multicast(ip()?)),
                "ip(x0).isLinkLocalUnicast()" => json!(is_link_local_unicast(ip()?)),
                "ip(x0).isGlobalUnicast()" => json!(is_global_unicast(ip()?)),
                call => panic!("{call}"),
            })
        });
    }

    #[test]
    fn any_text_parses_as_an_address_or_is_rejected() {
        let pieces = ["1", "255", "256", ".", ":", "::", "f", "ffff", "%", "é", "/", "0"];
        for text in texts(&pieces, 20_000) {
            let _ = (parse(&text), super::super::cidr::Cidr::parse(&text));
        }
    }
}
