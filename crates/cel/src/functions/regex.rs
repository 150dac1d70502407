//! Regular expressions (apiserver `pkg/cel/library/regex.go`).

use super::{EvalResult, int, text, texts};
use super::{Function, cost, estimate, member};
use crate::types::Decl::{Int, List, String};
use crate::{
    library::re2::Regex,
    value::{Error, Value},
};

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function::new("find", &[member("string_find_string", &[String, String], String).eval(find)])
        .cost(cost::REGEX)
        .estimate(estimate::FINDING),
    Function::new(
        "findAll",
        &[
            member("string_find_all_string", &[String, String], List(&String)).eval(find_all),
            member("string_find_all_string_int", &[String, String, Int], List(&String)).eval(find_all),
        ],
    )
    .cost(cost::REGEX)
    .estimate(estimate::FINDING),
];

// Evaluation.

/// A regular expression that is not known ahead of time.
fn regex(args: &[Value<'_>]) -> Result<Regex, Error> {
    Regex::new(text(args, 1)?).map_err(|error| Error::new(format!("Illegal regex: {error}")))
}

fn find<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(regex(args)?.find(text(args, 0)?).unwrap_or_default().to_owned().into())
}

fn find_all<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let limit = if args.len() > 2 { int(args, 2)? } else { -1 };
    Ok(texts(regex(args)?.find_all(text(args, 0)?, limit)))
}
