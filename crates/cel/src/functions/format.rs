//! Named formats of strings (apiserver `pkg/cel/library/format.go`).

use super::{Function, function, member};
use crate::types::Decl::{self, List, Object, Optional, String};

/// The type of a named format.
pub const NAMED_FORMAT: Decl = Object("kubernetes.NamedFormat");

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "format.dns1123Label",
        overloads: &[function("format.dns1123Label", &[], NAMED_FORMAT).since(31)],
    },
    Function {
        name: "format.dns1123Subdomain",
        overloads: &[function("format.dns1123Subdomain", &[], NAMED_FORMAT).since(31)],
    },
    Function {
        name: "format.dns1035Label",
        overloads: &[function("format.dns1035Label", &[], NAMED_FORMAT).since(31)],
    },
    Function {
        name: "format.dns1123LabelPrefix",
        overloads: &[function("format.dns1123LabelPrefix", &[], NAMED_FORMAT).since(31)],
    },
    Function {
        name: "format.dns1123SubdomainPrefix",
        overloads: &[function("format.dns1123SubdomainPrefix", &[], NAMED_FORMAT).since(31)],
    },
    Function {
        name: "format.dns1035LabelPrefix",
        overloads: &[function("format.dns1035LabelPrefix", &[], NAMED_FORMAT).since(31)],
    },
    Function {
        name: "format.qualifiedName",
        overloads: &[function("format.qualifiedName", &[], NAMED_FORMAT).since(31)],
    },
    Function { name: "format.labelValue", overloads: &[function("format.labelValue", &[], NAMED_FORMAT).since(31)] },
    Function { name: "format.uri", overloads: &[function("format.uri", &[], NAMED_FORMAT).since(31)] },
    Function { name: "format.uuid", overloads: &[function("format.uuid", &[], NAMED_FORMAT).since(31)] },
    Function { name: "format.byte", overloads: &[function("format.byte", &[], NAMED_FORMAT).since(31)] },
    Function { name: "format.date", overloads: &[function("format.date", &[], NAMED_FORMAT).since(31)] },
    Function { name: "format.datetime", overloads: &[function("format.datetime", &[], NAMED_FORMAT).since(31)] },
    Function {
        name: "validate",
        overloads: &[member("format-validate", &[NAMED_FORMAT, String], Optional(&List(&String))).since(31)],
    },
    Function {
        name: "format.named",
        overloads: &[function("format-named", &[String], Optional(&NAMED_FORMAT)).since(31)],
    },
];
