//! Addresses of networks: those of IP as Go read them before it rejected leading zeros
//! (`k8s.io/utils/internal/third_party/forked/golang/net`), and those of hardware (Go's `net.ParseMAC`).

use crate::library::ip::parse_address;

/// Above this a number is none to Go.
const BIG: u32 = 0x00ff_ffff;

/// A number that a text begins with, and the rest of the text.
fn number(text: &[u8], radix: u32) -> Option<(u32, &[u8])> {
    let mut value = 0;
    let mut count = 0;
    for digit in text.iter().map_while(|byte| char::from(*byte).to_digit(radix)) {
        value = value * radix + digit;
        count += 1;
        if value >= BIG {
            return None;
        }
    }
    (count > 0).then(|| (value, &text[count..]))
}

fn is_v4(text: &[u8]) -> bool {
    let mut rest = text;
    for index in 0..4 {
        if index > 0 {
            let Some(after) = rest.strip_prefix(b".") else { return false };
            rest = after;
        }
        match number(rest, 10) {
            Some((octet, after)) if octet <= 0xff => rest = after,
            _ => return false,
        }
    }
    rest.is_empty()
}

fn is_v6(text: &[u8]) -> bool {
    let (mut rest, mut ellipsis) = match text.strip_prefix(b"::") {
        Some([]) => return true,
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let mut octets = 0;
    while octets < 16 {
        let Some((_, after)) = number(rest, 16).filter(|(group, _)| *group <= 0xffff) else { return false };
        if after.starts_with(b".") {
            // The last four may be those of an IPv4 address.
            if (!ellipsis && octets != 12) || octets > 12 || !is_v4(rest) {
                return false;
            }
            rest = &[];
            octets += 4;
            break;
        }
        octets += 2;
        rest = match after {
            [] => {
                rest = &[];
                break;
            }
            [b':', rest @ ..] if !rest.is_empty() => rest,
            _ => return false,
        };
        if let [b':', after @ ..] = rest {
            if ellipsis {
                return false;
            }
            ellipsis = true;
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    rest.is_empty() && (octets < 16) == ellipsis
}

/// Also an IPv6 address with an IPv4 one in it.
pub(super) fn is_ipv4(text: &str) -> bool {
    let text = text.as_bytes();
    match text.iter().find(|byte| b".:".contains(byte)) {
        Some(b'.') => is_v4(text),
        Some(_) => text.contains(&b'.') && is_v6(text),
        None => false,
    }
}

/// Go's `net.ParseIP`.
pub(super) fn is_ip(text: &str) -> bool {
    parse_address(text.as_bytes()).is_ok_and(|found| !found.zone)
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.contains(':') && is_ip(text)
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, mask)) = text.split_once('/') else { return false };
    let most = if is_v4(address.as_bytes()) {
        32
    } else if is_v6(address.as_bytes()) {
        128
    } else {
        return false;
    };
    number(mask.as_bytes(), 10).is_some_and(|(length, rest)| length <= most && rest.is_empty())
}

/// 6, 8 or 20 bytes, with colons or dashes between them, with dots between pairs of them, or with nothing.
pub(super) fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 12 {
        return false;
    }
    let (group, separator) = match (bytes[2], bytes[4]) {
        (separator @ (b':' | b'-'), _) => (2, Some(separator)),
        (_, b'.') => (4, Some(b'.')),
        _ => (2, None),
    };
    let width = group + usize::from(separator.is_some());
    let length = bytes.len() + usize::from(separator.is_some());
    let is_separator = |place: usize| separator.is_some() && place % width == group;
    length.is_multiple_of(width)
        && matches!(length / width * group / 2, 6 | 8 | 20)
        && bytes
            .iter()
            .enumerate()
            .all(|(place, byte)| if is_separator(place) { Some(*byte) == separator } else { byte.is_ascii_hexdigit() })
}
