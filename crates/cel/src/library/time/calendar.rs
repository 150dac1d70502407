//! Years, months, hours and so on of a point in time, in a time zone.

use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::library::double::atoi;

/// A part of a timestamp, by its accessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// `getFullYear`
    FullYear,
    /// `getMonth`, from 0.
    Month,
    /// `getDayOfYear`, from 0.
    DayOfYear,
    /// `getDayOfMonth`, from 0.
    DayOfMonth,
    /// `getDate`: the day of the month, from 1.
    Date,
    /// `getDayOfWeek`, from 0 for Sunday.
    DayOfWeek,
    /// `getHours`
    Hours,
    /// `getMinutes`
    Minutes,
    /// `getSeconds`
    Seconds,
    /// `getMilliseconds`, of the second.
    Milliseconds,
}

/// Year, month and day, from 1, of a number of days since 1970, in the Gregorian calendar.
pub(super) fn date(days: i64) -> (i64, i64, i64) {
    // Years that begin with March end with the day that some have not.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, date)
}

/// The days from 1970 to a date.
pub(super) fn days(year: i64, month: i64, date: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + date - 1;
    era * 146_097 + year * 365 + year / 4 - year / 100 + day - 719_468
}

/// A field of a point in time, in seconds since 1970 on the clock of the place.
pub(super) fn get(field: Field, local: i64, nanos: u32) -> i64 {
    let (day, time) = (local.div_euclid(86_400), local.rem_euclid(86_400));
    let (year, month, date) = date(day);
    match field {
        Field::FullYear => year,
        Field::Month => month - 1,
        Field::DayOfYear => day - days(year, 1, 1),
        Field::DayOfMonth => date - 1,
        Field::Date => date,
        // 1970 began with a Thursday.
        Field::DayOfWeek => (day + 4).rem_euclid(7),
        Field::Hours => time / 3600,
        Field::Minutes => time / 60 % 60,
        Field::Seconds => time % 60,
        Field::Milliseconds => i64::from(nanos / 1_000_000),
    }
}

/// The zone of a name, which is to Go a path below the directory of the database (`time.LoadLocation`).
fn located(name: &str) -> Result<TimeZone, String> {
    let database = TimeZoneDatabase::bundled();
    // The database looks names up without regard to case, and Go does not.
    let file = |path: &str| database.get(path).ok().filter(|found| found.iana_name() == Some(path));
    let path: Vec<_> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let path = path.join("/");
    let is_directory = |path: &str| {
        let below = format!("{path}/");
        path.is_empty() || database.available().any(|zone| zone.as_str().starts_with(&below))
    };
    match file(&path) {
        Some(found) if !name.ends_with('/') && !name.ends_with("/.") => Ok(found),
        Some(_) => Err("not a directory".to_owned()),
        None if is_directory(&path) => Err("is a directory".to_owned()),
        None if path.match_indices('/').any(|(at, _)| file(&path[..at]).is_some()) => Err("not a directory".to_owned()),
        None => Err(format!("unknown time zone {name}")),
    }
}

/// Seconds east of UTC in a time zone at a time: `+01:00`, or a name of the time zone database that is built in.
///
/// The zone `Local` is UTC, as in the API server's container. The version of the database is not that of the API server,
/// which takes the one of its own container: rules for the future change with it.
pub(super) fn offset(zone: &str, seconds: i64) -> Result<i64, String> {
    if let Some((hours, minutes)) = zone.split_once(':') {
        let (hours, minutes) = (atoi(hours)?, atoi(minutes)?);
        let minutes = if zone.starts_with('-') { minutes.wrapping_neg() } else { minutes };
        // Go wraps around here, and then cuts off what is below a second of a duration in nanoseconds.
        let total = hours.wrapping_mul(60).wrapping_add(minutes).wrapping_mul(60 * super::NANOS);
        return Ok(super::Duration(total).seconds());
    }
    if matches!(zone, "" | "UTC" | "Local") {
        return Ok(0);
    }
    if zone.contains("..") || zone.starts_with(['/', '\\']) {
        return Err("time: invalid location name".to_owned());
    }
    let found = located(zone)?;
    let (first, last) = (jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
    let time = jiff::Timestamp::from_second(seconds.clamp(first, last)).map_err(|error| error.to_string())?;
    Ok(found.to_offset(time).seconds().into())
}
