//! Regular expressions (apiserver `pkg/cel/library/regex.go`).

use super::{Function, member};
use crate::types::Decl::{Int, List, String};

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function { name: "find", overloads: &[member("string_find_string", &[String, String], String)] },
    Function {
        name: "findAll",
        overloads: &[
            member("string_find_all_string", &[String, String], List(&String)),
            member("string_find_all_string_int", &[String, String, Int], List(&String)),
        ],
    },
];
