//! Lists as sets (cel-go `ext/sets.go`).

use super::{Function, T, function};
use crate::types::Decl::{Bool, List};

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "sets.contains",
        overloads: &[function("list_sets_contains_list", &[List(&T), List(&T)], Bool).since(29)],
    },
    Function {
        name: "sets.equivalent",
        overloads: &[function("list_sets_equivalent_list", &[List(&T), List(&T)], Bool).since(29)],
    },
    Function {
        name: "sets.intersects",
        overloads: &[function("list_sets_intersects_list", &[List(&T), List(&T)], Bool).since(29)],
    },
];
