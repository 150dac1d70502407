//! Optional values (cel-go `cel/library.go`, `OptionalTypes`).

use super::{Function, K, V, function, member};
use crate::types::Decl::{Bool, Dyn, Int, List, Map, Optional, String};

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function { name: "optional.of", overloads: &[function("optional_of", &[V], Optional(&V)).since(28)] },
    Function {
        name: "optional.ofNonZeroValue",
        overloads: &[function("optional_ofNonZeroValue", &[V], Optional(&V)).since(28)],
    },
    Function { name: "optional.none", overloads: &[function("optional_none", &[], Optional(&V)).since(28)] },
    Function { name: "value", overloads: &[member("optional_value", &[Optional(&V)], V).since(28)] },
    Function { name: "hasValue", overloads: &[member("optional_hasValue", &[Optional(&V)], Bool).since(28)] },
    Function {
        name: "or",
        overloads: &[member("optional_or_optional", &[Optional(&V), Optional(&V)], Optional(&V)).since(28)],
    },
    Function { name: "orValue", overloads: &[member("optional_orValue_value", &[Optional(&V), V], V).since(28)] },
    Function { name: "_?._", overloads: &[function("select_optional_field", &[Dyn, String], Optional(&V)).since(28)] },
    Function {
        name: "_[?_]",
        overloads: &[
            function("list_optindex_optional_int", &[List(&V), Int], Optional(&V)).since(28),
            function("optional_list_optindex_optional_int", &[Optional(&List(&V)), Int], Optional(&V)).since(28),
            function("map_optindex_optional_value", &[Map(&K, &V), K], Optional(&V)).since(28),
            function("optional_map_optindex_optional_value", &[Optional(&Map(&K, &V)), K], Optional(&V)).since(28),
        ],
    },
    Function {
        name: "_[_]",
        overloads: &[
            function("optional_list_index_int", &[Optional(&List(&V)), Int], Optional(&V)).since(28),
            function("optional_map_index_value", &[Optional(&Map(&K, &V)), K], Optional(&V)).since(28),
        ],
    },
    Function { name: "last", overloads: &[member("list_last", &[List(&V)], Optional(&V)).since(28)] },
    Function { name: "first", overloads: &[member("list_first", &[List(&V)], Optional(&V)).since(28)] },
    Function {
        name: "optional.unwrap",
        overloads: &[function("optional_unwrap", &[List(&Optional(&V))], List(&V)).since(28)],
    },
    Function {
        name: "unwrapOpt",
        overloads: &[member("optional_unwrapOpt", &[List(&Optional(&V))], List(&V)).since(28)],
    },
];
