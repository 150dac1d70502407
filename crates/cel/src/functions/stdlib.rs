//! The standard library (cel-go `common/stdlib/standard.go`), with the time functions that know `UTC` by default.

use super::{A, B, Function, function, member};
use crate::types::Decl::{Bool, Bytes, Double, Duration, Dyn, Int, List, Map, String, Timestamp, Type, Uint};

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function { name: "_?_:_", overloads: &[function("conditional", &[Bool, A, A], A)] },
    Function { name: "_&&_", overloads: &[function("logical_and", &[Bool, Bool], Bool)] },
    Function { name: "_||_", overloads: &[function("logical_or", &[Bool, Bool], Bool)] },
    Function { name: "!_", overloads: &[function("logical_not", &[Bool], Bool)] },
    Function { name: "@not_strictly_false", overloads: &[function("not_strictly_false", &[Bool], Bool)] },
    Function { name: "_==_", overloads: &[function("equals", &[A, A], Bool)] },
    Function { name: "_!=_", overloads: &[function("not_equals", &[A, A], Bool)] },
    Function {
        name: "_+_",
        overloads: &[
            function("add_bytes", &[Bytes, Bytes], Bytes),
            function("add_double", &[Double, Double], Double),
            function("add_duration_duration", &[Duration, Duration], Duration),
            function("add_duration_timestamp", &[Duration, Timestamp], Timestamp),
            function("add_timestamp_duration", &[Timestamp, Duration], Timestamp),
            function("add_int64", &[Int, Int], Int),
            function("add_list", &[List(&A), List(&A)], List(&A)),
            function("add_string", &[String, String], String),
            function("add_uint64", &[Uint, Uint], Uint),
        ],
    },
    Function {
        name: "_/_",
        overloads: &[
            function("divide_double", &[Double, Double], Double),
            function("divide_int64", &[Int, Int], Int),
            function("divide_uint64", &[Uint, Uint], Uint),
        ],
    },
    Function {
        name: "_%_",
        overloads: &[function("modulo_int64", &[Int, Int], Int), function("modulo_uint64", &[Uint, Uint], Uint)],
    },
    Function {
        name: "_*_",
        overloads: &[
            function("multiply_double", &[Double, Double], Double),
            function("multiply_int64", &[Int, Int], Int),
            function("multiply_uint64", &[Uint, Uint], Uint),
        ],
    },
    Function {
        name: "-_",
        overloads: &[function("negate_double", &[Double], Double), function("negate_int64", &[Int], Int)],
    },
    Function {
        name: "_-_",
        overloads: &[
            function("subtract_double", &[Double, Double], Double),
            function("subtract_duration_duration", &[Duration, Duration], Duration),
            function("subtract_int64", &[Int, Int], Int),
            function("subtract_timestamp_duration", &[Timestamp, Duration], Timestamp),
            function("subtract_timestamp_timestamp", &[Timestamp, Timestamp], Duration),
            function("subtract_uint64", &[Uint, Uint], Uint),
        ],
    },
    Function {
        name: "_<_",
        overloads: &[
            function("less_bool", &[Bool, Bool], Bool),
            function("less_int64", &[Int, Int], Bool),
            function("less_int64_double", &[Int, Double], Bool),
            function("less_int64_uint64", &[Int, Uint], Bool),
            function("less_uint64", &[Uint, Uint], Bool),
            function("less_uint64_double", &[Uint, Double], Bool),
            function("less_uint64_int64", &[Uint, Int], Bool),
            function("less_double", &[Double, Double], Bool),
            function("less_double_int64", &[Double, Int], Bool),
            function("less_double_uint64", &[Double, Uint], Bool),
            function("less_string", &[String, String], Bool),
            function("less_bytes", &[Bytes, Bytes], Bool),
            function("less_timestamp", &[Timestamp, Timestamp], Bool),
            function("less_duration", &[Duration, Duration], Bool),
        ],
    },
    Function {
        name: "_<=_",
        overloads: &[
            function("less_equals_bool", &[Bool, Bool], Bool),
            function("less_equals_int64", &[Int, Int], Bool),
            function("less_equals_int64_double", &[Int, Double], Bool),
            function("less_equals_int64_uint64", &[Int, Uint], Bool),
            function("less_equals_uint64", &[Uint, Uint], Bool),
            function("less_equals_uint64_double", &[Uint, Double], Bool),
            function("less_equals_uint64_int64", &[Uint, Int], Bool),
            function("less_equals_double", &[Double, Double], Bool),
            function("less_equals_double_int64", &[Double, Int], Bool),
            function("less_equals_double_uint64", &[Double, Uint], Bool),
            function("less_equals_string", &[String, String], Bool),
            function("less_equals_bytes", &[Bytes, Bytes], Bool),
            function("less_equals_timestamp", &[Timestamp, Timestamp], Bool),
            function("less_equals_duration", &[Duration, Duration], Bool),
        ],
    },
    Function {
        name: "_>_",
        overloads: &[
            function("greater_bool", &[Bool, Bool], Bool),
            function("greater_int64", &[Int, Int], Bool),
            function("greater_int64_double", &[Int, Double], Bool),
            function("greater_int64_uint64", &[Int, Uint], Bool),
            function("greater_uint64", &[Uint, Uint], Bool),
            function("greater_uint64_double", &[Uint, Double], Bool),
            function("greater_uint64_int64", &[Uint, Int], Bool),
            function("greater_double", &[Double, Double], Bool),
            function("greater_double_int64", &[Double, Int], Bool),
            function("greater_double_uint64", &[Double, Uint], Bool),
            function("greater_string", &[String, String], Bool),
            function("greater_bytes", &[Bytes, Bytes], Bool),
            function("greater_timestamp", &[Timestamp, Timestamp], Bool),
            function("greater_duration", &[Duration, Duration], Bool),
        ],
    },
    Function {
        name: "_>=_",
        overloads: &[
            function("greater_equals_bool", &[Bool, Bool], Bool),
            function("greater_equals_int64", &[Int, Int], Bool),
            function("greater_equals_int64_double", &[Int, Double], Bool),
            function("greater_equals_int64_uint64", &[Int, Uint], Bool),
            function("greater_equals_uint64", &[Uint, Uint], Bool),
            function("greater_equals_uint64_double", &[Uint, Double], Bool),
            function("greater_equals_uint64_int64", &[Uint, Int], Bool),
            function("greater_equals_double", &[Double, Double], Bool),
            function("greater_equals_double_int64", &[Double, Int], Bool),
            function("greater_equals_double_uint64", &[Double, Uint], Bool),
            function("greater_equals_string", &[String, String], Bool),
            function("greater_equals_bytes", &[Bytes, Bytes], Bool),
            function("greater_equals_timestamp", &[Timestamp, Timestamp], Bool),
            function("greater_equals_duration", &[Duration, Duration], Bool),
        ],
    },
    Function {
        name: "_[_]",
        overloads: &[function("index_list", &[List(&A), Int], A), function("index_map", &[Map(&A, &B), A], B)],
    },
    Function {
        name: "@in",
        overloads: &[function("in_list", &[A, List(&A)], Bool), function("in_map", &[A, Map(&A, &B)], Bool)],
    },
    Function {
        name: "size",
        overloads: &[
            function("size_bytes", &[Bytes], Int),
            member("bytes_size", &[Bytes], Int),
            function("size_list", &[List(&A)], Int),
            member("list_size", &[List(&A)], Int),
            function("size_map", &[Map(&A, &B)], Int),
            member("map_size", &[Map(&A, &B)], Int),
            function("size_string", &[String], Int),
            member("string_size", &[String], Int),
        ],
    },
    Function { name: "type", overloads: &[function("type", &[A], Type(&A))] },
    Function {
        name: "bool",
        overloads: &[function("bool_to_bool", &[Bool], Bool), function("string_to_bool", &[String], Bool)],
    },
    Function {
        name: "bytes",
        overloads: &[function("bytes_to_bytes", &[Bytes], Bytes), function("string_to_bytes", &[String], Bytes)],
    },
    Function {
        name: "double",
        overloads: &[
            function("double_to_double", &[Double], Double),
            function("int64_to_double", &[Int], Double),
            function("string_to_double", &[String], Double),
            function("uint64_to_double", &[Uint], Double),
        ],
    },
    Function {
        name: "duration",
        overloads: &[
            function("duration_to_duration", &[Duration], Duration),
            function("int64_to_duration", &[Int], Duration).until(36),
            function("string_to_duration", &[String], Duration),
        ],
    },
    Function { name: "dyn", overloads: &[function("to_dyn", &[A], Dyn)] },
    Function {
        name: "int",
        overloads: &[
            function("int64_to_int64", &[Int], Int),
            function("double_to_int64", &[Double], Int),
            function("duration_to_int64", &[Duration], Int),
            function("string_to_int64", &[String], Int),
            function("timestamp_to_int64", &[Timestamp], Int),
            function("uint64_to_int64", &[Uint], Int),
        ],
    },
    Function {
        name: "string",
        overloads: &[
            function("string_to_string", &[String], String),
            function("bool_to_string", &[Bool], String),
            function("bytes_to_string", &[Bytes], String),
            function("double_to_string", &[Double], String),
            function("duration_to_string", &[Duration], String),
            function("int64_to_string", &[Int], String),
            function("timestamp_to_string", &[Timestamp], String),
            function("uint64_to_string", &[Uint], String),
        ],
    },
    Function {
        name: "timestamp",
        overloads: &[
            function("timestamp_to_timestamp", &[Timestamp], Timestamp),
            function("int64_to_timestamp", &[Int], Timestamp),
            function("string_to_timestamp", &[String], Timestamp),
        ],
    },
    Function {
        name: "uint",
        overloads: &[
            function("uint64_to_uint64", &[Uint], Uint),
            function("double_to_uint64", &[Double], Uint),
            function("int64_to_uint64", &[Int], Uint),
            function("string_to_uint64", &[String], Uint),
        ],
    },
    Function { name: "contains", overloads: &[member("contains_string", &[String, String], Bool)] },
    Function { name: "endsWith", overloads: &[member("ends_with_string", &[String, String], Bool)] },
    Function { name: "startsWith", overloads: &[member("starts_with_string", &[String, String], Bool)] },
    Function {
        name: "matches",
        overloads: &[function("matches", &[String, String], Bool), member("matches_string", &[String, String], Bool)],
    },
    Function {
        name: "getFullYear",
        overloads: &[
            member("timestamp_to_year", &[Timestamp], Int),
            member("timestamp_to_year_with_tz", &[Timestamp, String], Int),
        ],
    },
    Function {
        name: "getMonth",
        overloads: &[
            member("timestamp_to_month", &[Timestamp], Int),
            member("timestamp_to_month_with_tz", &[Timestamp, String], Int),
        ],
    },
    Function {
        name: "getDayOfYear",
        overloads: &[
            member("timestamp_to_day_of_year", &[Timestamp], Int),
            member("timestamp_to_day_of_year_with_tz", &[Timestamp, String], Int),
        ],
    },
    Function {
        name: "getDayOfMonth",
        overloads: &[
            member("timestamp_to_day_of_month", &[Timestamp], Int),
            member("timestamp_to_day_of_month_with_tz", &[Timestamp, String], Int),
        ],
    },
    Function {
        name: "getDate",
        overloads: &[
            member("timestamp_to_day_of_month_1_based", &[Timestamp], Int),
            member("timestamp_to_day_of_month_1_based_with_tz", &[Timestamp, String], Int),
        ],
    },
    Function {
        name: "getDayOfWeek",
        overloads: &[
            member("timestamp_to_day_of_week", &[Timestamp], Int),
            member("timestamp_to_day_of_week_with_tz", &[Timestamp, String], Int),
        ],
    },
    Function {
        name: "getHours",
        overloads: &[
            member("timestamp_to_hours", &[Timestamp], Int),
            member("timestamp_to_hours_with_tz", &[Timestamp, String], Int),
            member("duration_to_hours", &[Duration], Int),
        ],
    },
    Function {
        name: "getMinutes",
        overloads: &[
            member("timestamp_to_minutes", &[Timestamp], Int),
            member("timestamp_to_minutes_with_tz", &[Timestamp, String], Int),
            member("duration_to_minutes", &[Duration], Int),
        ],
    },
    Function {
        name: "getSeconds",
        overloads: &[
            member("timestamp_to_seconds", &[Timestamp], Int),
            member("timestamp_to_seconds_tz", &[Timestamp, String], Int),
            member("duration_to_seconds", &[Duration], Int),
        ],
    },
    Function {
        name: "getMilliseconds",
        overloads: &[
            member("timestamp_to_milliseconds", &[Timestamp], Int),
            member("timestamp_to_milliseconds_with_tz", &[Timestamp, String], Int),
            member("duration_to_milliseconds", &[Duration], Int),
        ],
    },
];
