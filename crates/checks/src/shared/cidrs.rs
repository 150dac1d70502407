//! Lists of networks, lowered to CEL.

use crate::{Diagnostic, Lowering, Meaning, Text, TextList, meaning::is_cidr};

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

    /// CEL of type bool: whether the network in the string `network` contains an address of one of these, without the
    /// networks in the list `except`. A string that is not a CIDR, or a value of a namespace that is none, counts as one
    /// that does. The networks of `except` are compared one by one.
    pub(crate) fn overlap_network(&self, network: &str, except: &str) -> String {
        let is_invalid = if self.0.is_constant() { "" } else { "!isCIDR(n) || " };
        format!(
            "!isCIDR({network}) || {}.exists(n, {is_invalid}(cidr(n).containsCIDR({network}) || cidr({network}).containsCIDR(n)) \
             && !{except}.exists(x, isCIDR(string(x)) && cidr(string(x)).containsCIDR(n)))",
            self.0.cel()
        )
    }

    fn some(&self, contains: &str) -> String {
        let is_valid = if self.0.is_constant() { "" } else { "isCIDR(n) && " };
        format!("{}.exists(n, {is_valid}cidr(n).{contains})", self.0.cel())
    }

    pub(crate) fn says(&self) -> String {
        self.0.says()
    }
}
