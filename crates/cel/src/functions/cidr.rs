//! CIDR ranges (apiserver `pkg/cel/library/cidr.go`).

use super::ip::IP;
use super::{Function, function, member};
use crate::types::Decl::{self, Bool, Int, Opaque, String};

/// The type of a CIDR range.
pub const CIDR: Decl = Opaque("net.CIDR");

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function { name: "cidr", overloads: &[function("string_to_cidr", &[String], CIDR).since(30)] },
    Function {
        name: "containsIP",
        overloads: &[
            member("cidr_contains_ip_string", &[CIDR, String], Bool).since(30),
            member("cidr_contains_ip_ip", &[CIDR, IP], Bool).since(30),
        ],
    },
    Function {
        name: "containsCIDR",
        overloads: &[
            member("cidr_contains_cidr_string", &[CIDR, String], Bool).since(30),
            member("cidr_contains_cidr", &[CIDR, CIDR], Bool).since(30),
        ],
    },
    Function { name: "ip", overloads: &[member("cidr_ip", &[CIDR], IP).since(30)] },
    Function { name: "prefixLength", overloads: &[member("cidr_prefix_length", &[CIDR], Int).since(30)] },
    Function { name: "masked", overloads: &[member("cidr_masked", &[CIDR], CIDR).since(30)] },
    Function { name: "isCIDR", overloads: &[function("is_cidr", &[String], Bool).since(30)] },
    Function { name: "string", overloads: &[function("cidr_to_string", &[CIDR], String).since(30)] },
];
