//! Lists, as cel-go extends them (`ext/lists.go`, version 3).

use super::{Function, T, function, member};
use crate::types::Decl::{Bool, Bytes, Double, Duration, Dyn, Int, List, String, Timestamp, Uint};

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function { name: "slice", overloads: &[member("list_slice", &[List(&T), Int, Int], List(&T)).since(34)] },
    Function {
        name: "flatten",
        overloads: &[
            member("list_flatten", &[List(&List(&T))], List(&T)).since(34),
            member("list_flatten_int", &[List(&Dyn), Int], List(&Dyn)).since(34),
        ],
    },
    Function {
        name: "sort",
        overloads: &[
            member("list_int_sort", &[List(&Int)], List(&Int)).since(34),
            member("list_uint_sort", &[List(&Uint)], List(&Uint)).since(34),
            member("list_double_sort", &[List(&Double)], List(&Double)).since(34),
            member("list_bool_sort", &[List(&Bool)], List(&Bool)).since(34),
            member("list_google.protobuf.Duration_sort", &[List(&Duration)], List(&Duration)).since(34),
            member("list_google.protobuf.Timestamp_sort", &[List(&Timestamp)], List(&Timestamp)).since(34),
            member("list_string_sort", &[List(&String)], List(&String)).since(34),
            member("list_bytes_sort", &[List(&Bytes)], List(&Bytes)).since(34),
        ],
    },
    Function {
        name: "@sortByAssociatedKeys",
        overloads: &[
            member("list_int_sortByAssociatedKeys", &[List(&T), List(&Int)], List(&T)).since(34),
            member("list_uint_sortByAssociatedKeys", &[List(&T), List(&Uint)], List(&T)).since(34),
            member("list_double_sortByAssociatedKeys", &[List(&T), List(&Double)], List(&T)).since(34),
            member("list_bool_sortByAssociatedKeys", &[List(&T), List(&Bool)], List(&T)).since(34),
            member("list_google.protobuf.Duration_sortByAssociatedKeys", &[List(&T), List(&Duration)], List(&T))
                .since(34),
            member("list_google.protobuf.Timestamp_sortByAssociatedKeys", &[List(&T), List(&Timestamp)], List(&T))
                .since(34),
            member("list_string_sortByAssociatedKeys", &[List(&T), List(&String)], List(&T)).since(34),
            member("list_bytes_sortByAssociatedKeys", &[List(&T), List(&Bytes)], List(&T)).since(34),
        ],
    },
    Function { name: "lists.range", overloads: &[function("lists_range", &[Int], List(&Int)).since(34)] },
    Function { name: "reverse", overloads: &[member("list_reverse", &[List(&T)], List(&T)).since(34)] },
    Function { name: "distinct", overloads: &[member("list_distinct", &[List(&T)], List(&T)).since(34)] },
];
