//! Timestamps and durations (cel-go `common/types/timestamp.go`, `duration.go` and `overflow.go`), which are those of Go.

mod calendar;
mod parse;

use std::cmp::Ordering;

use super::double::{conversion_error, to_fixed};
pub(crate) use calendar::Field;
pub(crate) use parse::is_date;

/// `0001-01-01T00:00:00Z` and `9999-12-31T23:59:59Z`, in seconds since 1970.
const RANGE: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
const NANOS: i64 = 1_000_000_000;

/// A point in time, and the offset from UTC with which it was written: `string` writes it with the same one.
///
/// Two are equal if they are at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    /// Since 1970.
    seconds: i64,
    /// Below a thousand million.
    nanos: u32,
    /// Seconds east of UTC.
    offset: i32,
}

/// A duration in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub(crate) i64);

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

fn overflow() -> String {
    "integer overflow".to_owned()
}

impl Timestamp {
    /// Since 1970; rejects what is before the year 1 or after 9999.
    fn new(seconds: i64, nanos: u32, offset: i32) -> Result<Self, String> {
        if RANGE.contains(&seconds) {
            Ok(Self { seconds, nanos, offset })
        } else {
            Err("timestamp overflow".to_owned())
        }
    }

    /// The beginning of the year 1, in UTC: Go's zero time.
    pub(crate) const ZERO: Self = Self { seconds: *RANGE.start(), nanos: 0, offset: 0 };

    /// The beginning of 1970, in UTC.
    pub(crate) const EPOCH: Self = Self { seconds: 0, nanos: 0, offset: 0 };

    /// RFC 3339 of a value with a schema, which may be before the year 1.
    pub(crate) fn rfc3339(text: &str) -> Option<Self> {
        let (seconds, nanos, offset) = parse::timestamp(text.as_bytes())?;
        Some(Self { seconds, nanos, offset })
    }

    /// So many seconds after the beginning of a day in UTC, if there is such a day.
    pub(crate) fn on((year, month, day): (i64, i64, i64), seconds: i64, nanos: u32) -> Option<Self> {
        let days = calendar::days(year, month, day);
        let seconds = days * 86_400 + seconds;
        (calendar::date(days) == (year, month, day)).then_some(Self { seconds, nanos, offset: 0 })
    }

    /// The same time, written in UTC.
    pub(crate) fn to_utc(self) -> Self {
        Self { offset: 0, ..self }
    }

    /// `timestamp(int)`: seconds since 1970.
    pub(crate) fn from_seconds(seconds: i64) -> Result<Self, String> {
        Self::new(seconds, 0, 0)
    }

    /// `timestamp(string)`: RFC 3339, as lenient as Go is.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parsed = parse::timestamp(text.as_bytes());
        let (seconds, nanos, offset) = parsed.ok_or_else(|| conversion_error("string", "google.protobuf.Timestamp"))?;
        Self::new(seconds, nanos, offset)
    }

    /// `int(timestamp)`: seconds since 1970.
    pub(crate) fn seconds(self) -> i64 {
        self.seconds
    }

    /// `timestamp + duration`.
    pub(crate) fn add(self, duration: Duration) -> Result<Self, String> {
        let nanos = i64::from(self.nanos) + duration.0 % NANOS;
        let seconds = self.seconds.checked_add(duration.0 / NANOS + nanos.div_euclid(NANOS)).ok_or_else(overflow)?;
        Self::new(seconds, u32::try_from(nanos.rem_euclid(NANOS)).unwrap_or(0), self.offset)
    }

    /// `timestamp - duration`.
    pub(crate) fn sub(self, duration: Duration) -> Result<Self, String> {
        self.add(duration.negate()?)
    }

    /// `timestamp - timestamp`.
    pub(crate) fn since(self, earlier: Self) -> Result<Duration, String> {
        let seconds = self.seconds.checked_sub(earlier.seconds).and_then(|seconds| seconds.checked_mul(NANOS));
        let nanos = i64::from(self.nanos) - i64::from(earlier.nanos);
        seconds.and_then(|seconds| seconds.checked_add(nanos)).map(Duration).ok_or_else(overflow)
    }

    /// `timestamp.getHours(string)` and so on; without a time zone that is UTC.
    pub(crate) fn get(self, field: Field, zone: Option<&str>) -> Result<i64, String> {
        let offset = zone.map_or(Ok(0), |zone| calendar::offset(zone, self.seconds))?;
        Ok(calendar::get(field, self.seconds.saturating_add(offset), self.nanos))
    }
}

/// `string(timestamp)`.
impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let local = self.seconds + i64::from(self.offset);
        let (days, time) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (year, month, day) = calendar::date(days);
        write!(f, "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}", time / 3600, time / 60 % 60, time % 60)?;
        if self.nanos > 0 {
            write!(f, ".{}", format!("{:09}", self.nanos).trim_end_matches('0'))?;
        }
        if self.offset == 0 {
            return f.write_str("Z");
        }
        let (sign, minutes) = (if self.offset < 0 { '-' } else { '+' }, self.offset.unsigned_abs() / 60);
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl Duration {
    /// `duration(string)`: Go's `time.ParseDuration`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        parse::duration(text).map(Self).ok_or_else(|| conversion_error("string", "google.protobuf.Duration"))
    }

    /// `duration + duration`.
    pub(crate) fn add(self, other: Self) -> Result<Self, String> {
        self.0.checked_add(other.0).map(Self).ok_or_else(overflow)
    }

    /// `duration - duration`.
    pub(crate) fn sub(self, other: Self) -> Result<Self, String> {
        self.0.checked_sub(other.0).map(Self).ok_or_else(overflow)
    }

    /// CEL has no negation of durations; a subtraction is one.
    fn negate(self) -> Result<Self, String> {
        self.0.checked_neg().map(Self).ok_or_else(overflow)
    }

    /// Go counts units as a double, whole units and the rest, and a double is short of digits for long durations.
    #[expect(clippy::cast_precision_loss, reason = "as Go does")]
    fn units(self, unit: i64) -> f64 {
        (self.0 / unit) as f64 + (self.0 % unit) as f64 / unit as f64
    }

    /// `duration.getHours()`, all of them.
    pub(crate) fn hours(self) -> i64 {
        whole(self.units(3600 * NANOS))
    }

    /// `duration.getMinutes()`, all of them.
    pub(crate) fn minutes(self) -> i64 {
        whole(self.units(60 * NANOS))
    }

    /// `duration.getSeconds()`, all of them.
    pub(crate) fn seconds(self) -> i64 {
        whole(self.units(NANOS))
    }

    /// `duration.getMilliseconds()`, all of them.
    pub(crate) fn milliseconds(self) -> i64 {
        self.0 / 1_000_000
    }
}

#[expect(clippy::cast_possible_truncation, reason = "what is behind the point is to be cut off")]
fn whole(value: f64) -> i64 {
    value as i64
}

/// `string(duration)`: seconds.
impl std::fmt::Display for Duration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}s", to_fixed(self.units(NANOS)))
    }
}

#[cfg(test)]
mod tests;
