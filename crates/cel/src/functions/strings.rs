//! Strings (cel-go `ext/strings.go`, version 2).

use super::{Function, function, member};
use crate::types::Decl::{Dyn, Int, List, String};

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function { name: "charAt", overloads: &[member("string_char_at_int", &[String, Int], String)] },
    Function {
        name: "indexOf",
        overloads: &[
            member("string_index_of_string", &[String, String], Int),
            member("string_index_of_string_int", &[String, String, Int], Int),
        ],
    },
    Function {
        name: "lastIndexOf",
        overloads: &[
            member("string_last_index_of_string", &[String, String], Int),
            member("string_last_index_of_string_int", &[String, String, Int], Int),
        ],
    },
    Function { name: "lowerAscii", overloads: &[member("string_lower_ascii", &[String], String)] },
    Function {
        name: "replace",
        overloads: &[
            member("string_replace_string_string", &[String, String, String], String),
            member("string_replace_string_string_int", &[String, String, String, Int], String),
        ],
    },
    Function {
        name: "split",
        overloads: &[
            member("string_split_string", &[String, String], List(&String)),
            member("string_split_string_int", &[String, String, Int], List(&String)),
        ],
    },
    Function {
        name: "substring",
        overloads: &[
            member("string_substring_int", &[String, Int], String),
            member("string_substring_int_int", &[String, Int, Int], String),
        ],
    },
    Function { name: "trim", overloads: &[member("string_trim", &[String], String)] },
    Function { name: "upperAscii", overloads: &[member("string_upper_ascii", &[String], String)] },
    Function { name: "format", overloads: &[member("string_format", &[String, List(&Dyn)], String).since(29)] },
    Function { name: "strings.quote", overloads: &[function("strings_quote", &[String], String).since(29)] },
    Function {
        name: "join",
        overloads: &[
            member("list_join", &[List(&String)], String),
            member("list_join_string", &[List(&String), String], String),
        ],
    },
];
