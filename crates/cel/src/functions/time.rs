//! Fields of timestamps, in UTC or in a time zone, and durations in units.

use super::{EvalResult, text};
use crate::{
    library::time::Field,
    value::{Duration, Error, Value},
};

/// A field of a timestamp, whose time zone may be the second argument, or a duration in a unit.
fn get<'a>(args: &[Value<'a>], field: Field, unit: fn(Duration) -> i64) -> EvalResult<'a> {
    match &args[0] {
        Value::Timestamp(time) => {
            let zone = if args.len() > 1 { Some(text(args, 1)?) } else { None };
            Ok(time.get(field, zone)?.into())
        }
        Value::Duration(duration) => Ok(unit(*duration).into()),
        _ => Err(Error::no_such_overload()),
    }
}

macro_rules! fields {
    ($($name:ident: $field:ident, $unit:expr;)*) => {
        $(pub(super) fn $name<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
            get(args, Field::$field, $unit)
        })*
    };
}

// Durations have only the last four, as the rows say.
fields! {
    full_year: FullYear, Duration::hours;
    month: Month, Duration::hours;
    day_of_year: DayOfYear, Duration::hours;
    day_of_month: DayOfMonth, Duration::hours;
    date: Date, Duration::hours;
    day_of_week: DayOfWeek, Duration::hours;
    hours: Hours, Duration::hours;
    minutes: Minutes, Duration::minutes;
    seconds: Seconds, Duration::seconds;
    milliseconds: Milliseconds, Duration::milliseconds;
}
