//! What the macros of two-variable comprehensions call (cel-go `ext/comprehensions.go`).

use super::{Function, K, V, function};
use crate::types::Decl::Map;

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "cel.@mapInsert",
    overloads: &[
        function("@mapInsert_map_key_value", &[Map(&K, &V), K, V], Map(&K, &V)).since(32),
        function("@mapInsert_map_map", &[Map(&K, &V), Map(&K, &V)], Map(&K, &V)).since(32),
    ],
}];
