//! The standard library (cel-go `common/stdlib/standard.go`), with the time functions that know `UTC` by default.

use super::{A, B, Function, conversions, cost, estimate, function, member, operators, time};
use crate::types::Decl::{Bool, Bytes, Double, Duration, Dyn, Int, List, Map, String, Timestamp, Type, Uint};

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function::new("_?_:_", &[function("conditional", &[Bool, A, A], A)]),
    Function::new("_&&_", &[function("logical_and", &[Bool, Bool], Bool)]),
    Function::new("_||_", &[function("logical_or", &[Bool, Bool], Bool)]),
    Function::new("!_", &[function("logical_not", &[Bool], Bool)]).dynamic(operators::not),
    Function::new("@not_strictly_false", &[function("not_strictly_false", &[Bool], Bool)]),
    Function::new("_==_", &[function("equals", &[A, A], Bool)]).estimate(estimate::EQUALITY),
    Function::new("_!=_", &[function("not_equals", &[A, A], Bool)]).estimate(estimate::INEQUALITY),
    Function::new(
        "_+_",
        &[
            function("add_bytes", &[Bytes, Bytes], Bytes).cost(cost::CONCATENATION),
            function("add_double", &[Double, Double], Double),
            function("add_duration_duration", &[Duration, Duration], Duration),
            function("add_duration_timestamp", &[Duration, Timestamp], Timestamp),
            function("add_timestamp_duration", &[Timestamp, Duration], Timestamp),
            function("add_int64", &[Int, Int], Int),
            function("add_list", &[List(&A), List(&A)], List(&A)),
            function("add_string", &[String, String], String).cost(cost::CONCATENATION),
            function("add_uint64", &[Uint, Uint], Uint),
        ],
    )
    .dynamic(operators::add),
    Function::new(
        "_/_",
        &[
            function("divide_double", &[Double, Double], Double),
            function("divide_int64", &[Int, Int], Int),
            function("divide_uint64", &[Uint, Uint], Uint),
        ],
    )
    .dynamic(operators::divide),
    Function::new("_%_", &[function("modulo_int64", &[Int, Int], Int), function("modulo_uint64", &[Uint, Uint], Uint)])
        .dynamic(operators::modulo),
    Function::new(
        "_*_",
        &[
            function("multiply_double", &[Double, Double], Double),
            function("multiply_int64", &[Int, Int], Int),
            function("multiply_uint64", &[Uint, Uint], Uint),
        ],
    )
    .dynamic(operators::multiply),
    Function::new("-_", &[function("negate_double", &[Double], Double), function("negate_int64", &[Int], Int)])
        .dynamic(operators::negate),
    Function::new(
        "_-_",
        &[
            function("subtract_double", &[Double, Double], Double),
            function("subtract_duration_duration", &[Duration, Duration], Duration),
            function("subtract_int64", &[Int, Int], Int),
            function("subtract_timestamp_duration", &[Timestamp, Duration], Timestamp),
            function("subtract_timestamp_timestamp", &[Timestamp, Timestamp], Duration),
            function("subtract_uint64", &[Uint, Uint], Uint),
        ],
    )
    .dynamic(operators::subtract),
    Function::new(
        "_<_",
        &[
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
            function("less_string", &[String, String], Bool).cost(cost::SHORTER),
            function("less_bytes", &[Bytes, Bytes], Bool).cost(cost::SHORTER),
            function("less_timestamp", &[Timestamp, Timestamp], Bool),
            function("less_duration", &[Duration, Duration], Bool),
        ],
    )
    .dynamic(operators::less)
    .estimate(estimate::ORDER),
    Function::new(
        "_<=_",
        &[
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
            function("less_equals_string", &[String, String], Bool).cost(cost::SHORTER),
            function("less_equals_bytes", &[Bytes, Bytes], Bool).cost(cost::SHORTER),
            function("less_equals_timestamp", &[Timestamp, Timestamp], Bool),
            function("less_equals_duration", &[Duration, Duration], Bool),
        ],
    )
    .dynamic(operators::less_equals)
    .estimate(estimate::ORDER),
    Function::new(
        "_>_",
        &[
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
            function("greater_string", &[String, String], Bool).cost(cost::SHORTER),
            function("greater_bytes", &[Bytes, Bytes], Bool).cost(cost::SHORTER),
            function("greater_timestamp", &[Timestamp, Timestamp], Bool),
            function("greater_duration", &[Duration, Duration], Bool),
        ],
    )
    .dynamic(operators::greater)
    .estimate(estimate::ORDER),
    Function::new(
        "_>=_",
        &[
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
            function("greater_equals_string", &[String, String], Bool).cost(cost::SHORTER),
            function("greater_equals_bytes", &[Bytes, Bytes], Bool).cost(cost::SHORTER),
            function("greater_equals_timestamp", &[Timestamp, Timestamp], Bool),
            function("greater_equals_duration", &[Duration, Duration], Bool),
        ],
    )
    .dynamic(operators::greater_equals)
    .estimate(estimate::ORDER),
    Function::new("_[_]", &[function("index_list", &[List(&A), Int], A), function("index_map", &[Map(&A, &B), A], B)]),
    Function::new(
        "@in",
        &[function("in_list", &[A, List(&A)], Bool).cost(cost::ELEMENTS), function("in_map", &[A, Map(&A, &B)], Bool)],
    )
    .dynamic(operators::contained)
    .estimate(estimate::MEMBERSHIP),
    Function::new(
        "size",
        &[
            function("size_bytes", &[Bytes], Int),
            member("bytes_size", &[Bytes], Int),
            function("size_list", &[List(&A)], Int),
            member("list_size", &[List(&A)], Int),
            function("size_map", &[Map(&A, &B)], Int),
            member("map_size", &[Map(&A, &B)], Int),
            function("size_string", &[String], Int),
            member("string_size", &[String], Int),
        ],
    )
    .dynamic(operators::size),
    Function::new("type", &[function("type", &[A], Type(&A))]).dynamic(conversions::type_of),
    Function::new(
        "bool",
        &[
            function("bool_to_bool", &[Bool], Bool).eval(conversions::dynamic),
            function("string_to_bool", &[String], Bool).eval(conversions::parse_bool),
        ],
    ),
    Function::new(
        "bytes",
        &[
            function("bytes_to_bytes", &[Bytes], Bytes).eval(conversions::dynamic),
            function("string_to_bytes", &[String], Bytes).eval(conversions::to_bytes).cost(cost::TRAVERSAL),
        ],
    )
    .estimate(estimate::TO_BYTES),
    Function::new(
        "double",
        &[
            function("double_to_double", &[Double], Double).eval(conversions::dynamic),
            function("int64_to_double", &[Int], Double).eval(conversions::to_double),
            function("string_to_double", &[String], Double).eval(conversions::to_double),
            function("uint64_to_double", &[Uint], Double).eval(conversions::to_double),
        ],
    ),
    Function::new(
        "duration",
        &[
            function("duration_to_duration", &[Duration], Duration).eval(conversions::dynamic),
            function("int64_to_duration", &[Int], Duration).until(36).eval(conversions::to_duration),
            function("string_to_duration", &[String], Duration).eval(conversions::to_duration),
        ],
    ),
    Function::new("dyn", &[function("to_dyn", &[A], Dyn)]).dynamic(conversions::dynamic),
    Function::new(
        "int",
        &[
            function("int64_to_int64", &[Int], Int).eval(conversions::dynamic),
            function("double_to_int64", &[Double], Int).eval(conversions::to_int),
            function("duration_to_int64", &[Duration], Int).eval(conversions::to_int),
            function("string_to_int64", &[String], Int).eval(conversions::to_int),
            function("timestamp_to_int64", &[Timestamp], Int).eval(conversions::to_int),
            function("uint64_to_int64", &[Uint], Int).eval(conversions::to_int),
        ],
    ),
    Function::new(
        "string",
        &[
            function("string_to_string", &[String], String).eval(conversions::dynamic),
            function("bool_to_string", &[Bool], String).eval(conversions::to_text),
            function("bytes_to_string", &[Bytes], String).eval(conversions::to_text).cost(cost::TRAVERSAL),
            function("double_to_string", &[Double], String).eval(conversions::to_text),
            function("duration_to_string", &[Duration], String).eval(conversions::to_text),
            function("int64_to_string", &[Int], String).eval(conversions::to_text),
            function("timestamp_to_string", &[Timestamp], String).eval(conversions::to_text),
            function("uint64_to_string", &[Uint], String).eval(conversions::to_text),
        ],
    )
    .estimate(estimate::TO_TEXT),
    Function::new(
        "timestamp",
        &[
            function("timestamp_to_timestamp", &[Timestamp], Timestamp).eval(conversions::dynamic),
            function("int64_to_timestamp", &[Int], Timestamp).eval(conversions::to_timestamp),
            function("string_to_timestamp", &[String], Timestamp).eval(conversions::to_timestamp),
        ],
    ),
    Function::new(
        "uint",
        &[
            function("uint64_to_uint64", &[Uint], Uint).eval(conversions::dynamic),
            function("double_to_uint64", &[Double], Uint).eval(conversions::to_uint),
            function("int64_to_uint64", &[Int], Uint).eval(conversions::to_uint),
            function("string_to_uint64", &[String], Uint).eval(conversions::to_uint),
        ],
    ),
    Function::new("contains", &[member("contains_string", &[String, String], Bool).cost(cost::CONTAINS)])
        .dynamic(operators::contains)
        .estimate(estimate::CONTAINS),
    Function::new(
        "endsWith",
        &[
            member("ends_with_string", &[String, String], Bool).until(36).cost(cost::TRAVERSAL),
            member("ends_with_string", &[String, String], Bool).from(37).cost(cost::SECOND_TRAVERSAL),
        ],
    )
    .dynamic(operators::ends_with)
    .estimate(estimate::AFFIX),
    Function::new(
        "startsWith",
        &[
            member("starts_with_string", &[String, String], Bool).until(36).cost(cost::TRAVERSAL),
            member("starts_with_string", &[String, String], Bool).from(37).cost(cost::SECOND_TRAVERSAL),
        ],
    )
    .dynamic(operators::starts_with)
    .estimate(estimate::AFFIX),
    Function::new(
        "matches",
        &[
            function("matches", &[String, String], Bool).until(36),
            function("matches", &[String, String], Bool).from(37).cost(cost::REGEX),
            member("matches_string", &[String, String], Bool).cost(cost::REGEX),
        ],
    )
    .dynamic(operators::matches)
    .estimate(estimate::MATCHING),
    Function::new(
        "getFullYear",
        &[
            member("timestamp_to_year", &[Timestamp], Int).eval(time::full_year),
            member("timestamp_to_year_with_tz", &[Timestamp, String], Int).eval(time::full_year),
        ],
    ),
    Function::new(
        "getMonth",
        &[
            member("timestamp_to_month", &[Timestamp], Int).eval(time::month),
            member("timestamp_to_month_with_tz", &[Timestamp, String], Int).eval(time::month),
        ],
    ),
    Function::new(
        "getDayOfYear",
        &[
            member("timestamp_to_day_of_year", &[Timestamp], Int).eval(time::day_of_year),
            member("timestamp_to_day_of_year_with_tz", &[Timestamp, String], Int).eval(time::day_of_year),
        ],
    ),
    Function::new(
        "getDayOfMonth",
        &[
            member("timestamp_to_day_of_month", &[Timestamp], Int).eval(time::day_of_month),
            member("timestamp_to_day_of_month_with_tz", &[Timestamp, String], Int).eval(time::day_of_month),
        ],
    ),
    Function::new(
        "getDate",
        &[
            member("timestamp_to_day_of_month_1_based", &[Timestamp], Int).eval(time::date),
            member("timestamp_to_day_of_month_1_based_with_tz", &[Timestamp, String], Int).eval(time::date),
        ],
    ),
    Function::new(
        "getDayOfWeek",
        &[
            member("timestamp_to_day_of_week", &[Timestamp], Int).eval(time::day_of_week),
            member("timestamp_to_day_of_week_with_tz", &[Timestamp, String], Int).eval(time::day_of_week),
        ],
    ),
    Function::new(
        "getHours",
        &[
            member("timestamp_to_hours", &[Timestamp], Int).eval(time::hours),
            member("timestamp_to_hours_with_tz", &[Timestamp, String], Int).eval(time::hours),
            member("duration_to_hours", &[Duration], Int).eval(time::hours),
        ],
    ),
    Function::new(
        "getMinutes",
        &[
            member("timestamp_to_minutes", &[Timestamp], Int).eval(time::minutes),
            member("timestamp_to_minutes_with_tz", &[Timestamp, String], Int).eval(time::minutes),
            member("duration_to_minutes", &[Duration], Int).eval(time::minutes),
        ],
    ),
    Function::new(
        "getSeconds",
        &[
            member("timestamp_to_seconds", &[Timestamp], Int).eval(time::seconds),
            member("timestamp_to_seconds_tz", &[Timestamp, String], Int).eval(time::seconds),
            member("duration_to_seconds", &[Duration], Int).eval(time::seconds),
        ],
    ),
    Function::new(
        "getMilliseconds",
        &[
            member("timestamp_to_milliseconds", &[Timestamp], Int).eval(time::milliseconds),
            member("timestamp_to_milliseconds_with_tz", &[Timestamp, String], Int).eval(time::milliseconds),
            member("duration_to_milliseconds", &[Duration], Int).eval(time::milliseconds),
        ],
    ),
];
