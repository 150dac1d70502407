//! Lists (apiserver `pkg/cel/library/lists.go`).

use super::{A, Function, member};
use crate::types::Decl::{Bool, Bytes, Double, Duration, Int, List, String, Timestamp, Uint};

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "isSorted",
        overloads: &[
            member("list_int_is_sorted_bool", &[List(&Int)], Bool),
            member("list_uint_is_sorted_bool", &[List(&Uint)], Bool),
            member("list_double_is_sorted_bool", &[List(&Double)], Bool),
            member("list_bool_is_sorted_bool", &[List(&Bool)], Bool),
            member("list_duration_is_sorted_bool", &[List(&Duration)], Bool),
            member("list_timestamp_is_sorted_bool", &[List(&Timestamp)], Bool),
            member("list_string_is_sorted_bool", &[List(&String)], Bool),
            member("list_bytes_is_sorted_bool", &[List(&Bytes)], Bool),
        ],
    },
    Function {
        name: "sum",
        overloads: &[
            member("list_int_sum_int", &[List(&Int)], Int),
            member("list_uint_sum_uint", &[List(&Uint)], Uint),
            member("list_double_sum_double", &[List(&Double)], Double),
            member("list_duration_sum_duration", &[List(&Duration)], Duration),
        ],
    },
    Function {
        name: "max",
        overloads: &[
            member("list_int_max_int", &[List(&Int)], Int),
            member("list_uint_max_uint", &[List(&Uint)], Uint),
            member("list_double_max_double", &[List(&Double)], Double),
            member("list_bool_max_bool", &[List(&Bool)], Bool),
            member("list_duration_max_duration", &[List(&Duration)], Duration),
            member("list_timestamp_max_timestamp", &[List(&Timestamp)], Timestamp),
            member("list_string_max_string", &[List(&String)], String),
            member("list_bytes_max_bytes", &[List(&Bytes)], Bytes),
        ],
    },
    Function {
        name: "min",
        overloads: &[
            member("list_int_min_int", &[List(&Int)], Int),
            member("list_uint_min_uint", &[List(&Uint)], Uint),
            member("list_double_min_double", &[List(&Double)], Double),
            member("list_bool_min_bool", &[List(&Bool)], Bool),
            member("list_duration_min_duration", &[List(&Duration)], Duration),
            member("list_timestamp_min_timestamp", &[List(&Timestamp)], Timestamp),
            member("list_string_min_string", &[List(&String)], String),
            member("list_bytes_min_bytes", &[List(&Bytes)], Bytes),
        ],
    },
    Function { name: "indexOf", overloads: &[member("list_a_index_of_int", &[List(&A), A], Int)] },
    Function { name: "lastIndexOf", overloads: &[member("list_a_last_index_of_int", &[List(&A), A], Int)] },
];
