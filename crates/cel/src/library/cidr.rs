//! Networks (`pkg/cel/library/cidr.go`, with the parser of Go's `net/netip`).

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::{
    double::atoi,
    ip::{is_mapped, parse_address},
    quote::quote,
};

/// An address and the number of leading bits that name the network. Two are equal if both are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    address: IpAddr,
    bits: u32,
}

impl Cidr {
    /// `cidr(string)`; `isCIDR(string)` is whether that succeeds.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let context = "network address parse error during conversion from string: ";
        let cidr = Self::parse_prefix(text)
            .map_err(|error| format!("{context}{context}netip.ParsePrefix({}): {error}", quote(text)))?;
        if is_mapped(cidr.address) {
            return Err(format!("{context}IPv4-mapped IPv6 address {} is not allowed", quote(text)));
        }
        Ok(cidr)
    }

    fn parse_prefix(text: &str) -> Result<Self, String> {
        let (address, bits) = text.rsplit_once('/').ok_or("no '/'")?;
        let address = parse_address(address.as_bytes())?;
        if address.zone {
            return Err("IPv6 zones cannot be present in a prefix".to_owned());
        }
        let signed = bits.len() > 1 && !bits.starts_with(|c: char| ('1'..='9').contains(&c));
        let number = atoi(bits).ok().filter(|_| !signed);
        let number = number.ok_or_else(|| format!("bad bits after slash: {}", quote(bits)))?;
        let cidr = Self { address: address.address, bits: u32::try_from(number).unwrap_or(u32::MAX) };
        if cidr.bits > cidr.length() {
            return Err("prefix length out of range".to_owned());
        }
        Ok(cidr)
    }

    /// The bits of an address.
    fn length(self) -> u32 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// The address with all bits behind the first few cleared.
    fn cut(address: IpAddr, bits: u32) -> IpAddr {
        match address {
            IpAddr::V4(ip) => {
                Ipv4Addr::from_bits(ip.to_bits() & u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0)).into()
            }
            IpAddr::V6(ip) => {
                Ipv6Addr::from_bits(ip.to_bits() & u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0)).into()
            }
        }
    }

    /// `cidr.ip()`: the address as it was written.
    pub(crate) fn ip(self) -> IpAddr {
        self.address
    }

    /// `cidr.prefixLength()`.
    pub(crate) fn prefix_length(self) -> i64 {
        self.bits.into()
    }

    /// `cidr.masked()`: the address of the network.
    pub(crate) fn masked(self) -> Self {
        Self { address: Self::cut(self.address, self.bits), bits: self.bits }
    }

    /// `cidr.containsIP(ip)`.
    pub(crate) fn contains_ip(self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.address.is_ipv4() && Self::cut(ip, self.bits) == Self::cut(self.address, self.bits)
    }

    /// `cidr.containsCIDR(cidr)`.
    pub(crate) fn contains(self, other: Self) -> bool {
        self.bits <= other.bits && self.contains_ip(other.address)
    }
}

/// `string(cidr)`.
impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::library::{
        ip,
        truth::{check, string},
    };

    #[test]
    fn results_match_the_api_server() {
        check(include_str!("testdata/cidr.jsonl"), |call, args| {
            let cidr = |index: usize| Cidr::parse(string(&args[index]));
            Ok(match call {
                "cidr(x0)" | "string(cidr(x0))" => json!(cidr(0)?.to_string()),
                "isCIDR(x0)" => json!(cidr(0).is_ok()),
                "cidr(x0).ip()" => json!(cidr(0)?.ip().to_string()),
                "cidr(x0).masked()" => json!(cidr(0)?.masked().to_string()),
                "cidr(x0).prefixLength()" => json!(cidr(0)?.prefix_length()),
                "cidr(x0).containsCIDR(cidr(x1))" => json!(cidr(0)?.contains(cidr(1)?)),
                "cidr(x0) == cidr(x1)" => json!(cidr(0)? == cidr(1)?),
                "cidr(x0).containsIP(ip(x1))" => json!(cidr(0)?.contains_ip(ip::parse(string(&args[1]))?)),
                call => panic!("{call}"),
            })
        });
    }
}
