//! IP addresses (apiserver `pkg/cel/library/ip.go`).

use super::{Function, function, member};
use crate::types::Decl::{self, Bool, Int, Opaque, String};

/// The type of an IP address.
pub const IP: Decl = Opaque("net.IP");

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function { name: "ip", overloads: &[function("string_to_ip", &[String], IP).since(30)] },
    Function { name: "family", overloads: &[member("ip_family", &[IP], Int).since(30)] },
    Function { name: "ip.isCanonical", overloads: &[function("ip_is_canonical", &[String], Bool).since(30)] },
    Function { name: "isUnspecified", overloads: &[member("ip_is_unspecified", &[IP], Bool).since(30)] },
    Function { name: "isLoopback", overloads: &[member("ip_is_loopback", &[IP], Bool).since(30)] },
    Function {
        name: "isLinkLocalMulticast",
        overloads: &[member("ip_is_link_local_multicast", &[IP], Bool).since(30)],
    },
    Function { name: "isLinkLocalUnicast", overloads: &[member("ip_is_link_local_unicast", &[IP], Bool).since(30)] },
    Function { name: "isGlobalUnicast", overloads: &[member("ip_is_global_unicast", &[IP], Bool).since(30)] },
    Function { name: "isIP", overloads: &[function("is_ip", &[String], Bool).since(30)] },
    Function { name: "string", overloads: &[function("ip_to_string", &[IP], String).since(30)] },
];
