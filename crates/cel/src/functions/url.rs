//! URLs (apiserver `pkg/cel/library/urls.go`).

use super::{Function, function, member};
use crate::types::Decl::{self, Bool, List, Map, Object, String};

/// The type of a URL.
pub const URL: Decl = Object("kubernetes.URL");

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function { name: "url", overloads: &[function("string_to_url", &[String], URL)] },
    Function { name: "getScheme", overloads: &[member("url_get_scheme", &[URL], String)] },
    Function { name: "getHost", overloads: &[member("url_get_host", &[URL], String)] },
    Function { name: "getHostname", overloads: &[member("url_get_hostname", &[URL], String)] },
    Function { name: "getPort", overloads: &[member("url_get_port", &[URL], String)] },
    Function { name: "getEscapedPath", overloads: &[member("url_get_escaped_path", &[URL], String)] },
    Function { name: "getQuery", overloads: &[member("url_get_query", &[URL], Map(&String, &List(&String)))] },
    Function { name: "isURL", overloads: &[function("is_url_string", &[String], Bool)] },
];
