//! Functions that the macros of two-variable comprehensions call (cel-go `ext/comprehensions.go`).

use super::{EvalResult, take};
use super::{Function, K, V, function};
use crate::types::Decl::Map;
use crate::value::{self, Entries, Error, Value};

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function::new(
    "cel.@mapInsert",
    &[
        function("@mapInsert_map_key_value", &[Map(&K, &V), K, V], Map(&K, &V)).since(32).eval(insert),
        function("@mapInsert_map_map", &[Map(&K, &V), Map(&K, &V)], Map(&K, &V)).since(32).eval(insert_all),
    ],
)];

// Evaluation.

fn insert<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let (value, key) = (take(args, 2), take(args, 1));
    let mut entries = map(take(args, 0))?.into_entries();
    insert_one(&mut entries, key, value)?;
    Ok(entries.into())
}

fn insert_all<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let more = map(take(args, 1))?;
    let mut entries = map(take(args, 0))?.into_entries();
    for (key, value) in more.entries() {
        insert_one(&mut entries, key, value)?;
    }
    Ok(entries.into())
}

fn insert_one<'a>(entries: &mut Entries<'a>, key: Value<'a>, value: Value<'a>) -> Result<(), Error> {
    if entries.find(&key).is_some() {
        return Err(Error::new(format!("insert failed: key {key} already exists")));
    }
    if matches!(key, Value::Bytes(_)) {
        return Err(Error::fatal("internal error: runtime error: hash of unhashable type types.Bytes"));
    }
    entries.insert(key, value);
    Ok(())
}

fn map(value: Value<'_>) -> Result<value::Map<'_>, Error> {
    match value {
        Value::Map(map) => Ok(map),
        _ => Err(Error::no_such_overload()),
    }
}
