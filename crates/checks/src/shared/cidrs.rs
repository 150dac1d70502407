//! Lists of networks, lowered to CEL.

use std::net::IpAddr;

use crate::{Diagnostic, Lowering, Meaning, Text, TextList};

/// Networks as CIDRs. A value of a namespace that is no CIDR contains nothing.
pub(crate) struct Cidrs(TextList);

impl Cidrs {
    pub(crate) fn lower(cx: &mut Lowering<'_>, path: &str, cidrs: &[Text]) -> Self {
        let wrong = |text: &Text| !text.0.contains('$') && !is_cidr(&text.0);
        for (index, text) in cidrs.iter().enumerate().filter(|(_, text)| wrong(text)) {
            cx.report(
                Diagnostic::new(format!("{path}[{index}]"), format!("{:?} is not a CIDR", text.0))
                    .help("write a network such as 192.0.2.0/24, or 192.0.2.1/32 for one address"),
            );
        }
        Self(cx.texts(path, cidrs, Meaning::Cidr))
    }

    /// CEL of type bool: whether a network contains the address in the string `address`.
    pub(crate) fn contain_address(&self, address: &str) -> String {
        format!("isIP({address}) && {}", self.some(&format!("containsIP({address})")))
    }

    /// CEL of type bool: whether a network contains the one in the string `network`.
    pub(crate) fn contain_network(&self, network: &str) -> String {
        format!("isCIDR({network}) && {}", self.some(&format!("containsCIDR({network})")))
    }

    fn some(&self, contains: &str) -> String {
        let is_valid = if self.0.is_constant() { "" } else { "isCIDR(n) && " };
        format!("{}.exists(n, {is_valid}cidr(n).{contains})", self.0.cel())
    }

    pub(crate) fn says(&self) -> String {
        self.0.says()
    }
}

/// Whether it is a CIDR as Kubernetes reads it: an address, and the length of the prefix without a leading zero.
pub(crate) fn is_cidr(text: &str) -> bool {
    let Some((address, prefix)) = text.split_once('/') else { return false };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        // Kubernetes does not accept an IPv4 address in the form of an IPv6 address.
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_none() => 128,
        _ => return false,
    };
    prefix.parse::<u8>().is_ok_and(|length| length <= most && length.to_string() == prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cidrs_are_accepted() {
        for text in ["0.0.0.0/0", "192.0.2.0/24", "192.0.2.7/24", "192.0.2.1/32", "2001:db8::/32", "::1/128"] {
            assert!(is_cidr(text), "{text}");
        }
        for text in [
            "192.0.2.1",
            "192.0.2.0/33",
            "192.0.2.0/024",
            "192.0.2.0/+24",
            "192.0.02.0/24",
            "192.0.2/24",
            "2001:db8::/129",
            "::ffff:192.0.2.0/120",
            "fe80::1%eth0/64",
            " 192.0.2.0/24",
            "192.0.2.0/24/24",
            "",
        ] {
            assert!(!is_cidr(text), "{text}");
        }
    }
}
