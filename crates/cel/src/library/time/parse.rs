//! Timestamps and durations as Go reads them (`time/format.go`).

use super::calendar;

/// A text that is read from its beginning.
struct Reader<'t>(&'t [u8]);

impl Reader<'_> {
    /// These bytes.
    fn skip(&mut self, bytes: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(bytes)?;
        Some(())
    }

    /// That many digits.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let digits = self.0.get(..count).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        self.0 = &self.0[count..];
        Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    /// Two digits that are at most so much.
    fn upto(&mut self, most: i64) -> Option<i64> {
        self.digits(2).filter(|number| *number <= most)
    }

    /// `2006-01-02`, in days since 1970.
    fn date(&mut self) -> Option<i64> {
        let year = self.digits(4)?;
        self.skip(b"-")?;
        let month = self.upto(12).filter(|month| *month > 0)?;
        self.skip(b"-")?;
        let date = self.digits(2)?;
        let day = calendar::days(year, month, date);
        // A day that the month has not is one of another month.
        (calendar::date(day) == (year, month, date)).then_some(day)
    }

    /// `15:04:05.999`, in seconds and nanoseconds. An hour may have one digit, and a comma is a point.
    fn time(&mut self) -> Option<(i64, u32)> {
        let digits = if self.0.get(1).is_some_and(u8::is_ascii_digit) { 2 } else { 1 };
        let hour = self.digits(digits).filter(|hour| *hour < 24)?;
        self.skip(b":")?;
        let minute = self.upto(59)?;
        self.skip(b":")?;
        let second = self.upto(59)?;
        let mut nanos = 0;
        if let [b'.' | b',', rest @ ..] = self.0
            && rest.first().is_some_and(u8::is_ascii_digit)
        {
            let count = rest.iter().take_while(|digit| digit.is_ascii_digit()).count();
            let mut scale = 100_000_000;
            for digit in &rest[..count.min(9)] {
                nanos += u32::from(digit - b'0') * scale;
                scale /= 10;
            }
            self.0 = &rest[count..];
        }
        Some((hour * 3600 + minute * 60 + second, nanos))
    }

    /// `Z` or `+07:00`, in seconds. Offsets of 24 hours and 60 minutes are accepted.
    fn offset(&mut self) -> Option<i32> {
        if self.skip(b"Z").is_some() {
            return Some(0);
        }
        let (sign, rest) = self.0.split_first()?;
        let sign = match sign {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        self.0 = rest;
        let hours = self.upto(24)?;
        self.skip(b":")?;
        i32::try_from((hours * 60 + self.upto(60)?) * 60 * sign).ok()
    }
}

/// Seconds since 1970, nanoseconds, and the offset from UTC in seconds, of a text in RFC 3339.
pub(super) fn timestamp(text: &[u8]) -> Option<(i64, u32, i32)> {
    let mut reader = Reader(text);
    let days = reader.date()?;
    reader.skip(b"T")?;
    let (seconds, nanos) = reader.time()?;
    let offset = reader.offset()?;
    reader.0.is_empty().then_some((days * 86_400 + seconds - i64::from(offset), nanos, offset))
}

/// Whether Go's `time.Parse` reads the text as `2006-01-02`.
pub(crate) fn is_date(text: &str) -> bool {
    let mut reader = Reader(text.as_bytes());
    reader.date().is_some() && reader.0.is_empty()
}

/// Nanoseconds of a duration: `1h30m`, `-1.5s`, `.5us`, `0`.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as in Go")]
pub(super) fn duration(text: &str) -> Option<i64> {
    const LIMIT: u64 = 1 << 63;
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (whole, after) = rest.split_at(digits(rest));
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(digits(after)),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let (unit, after) = after.split_at(after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len()));
        let unit: u64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        if whole > LIMIT / unit {
            return None;
        }
        let (fraction, scale) = leading_fraction(fraction);
        let part = whole * unit + (fraction as f64 * (unit as f64 / scale)) as u64;
        total = total.checked_add(part)?;
        if part > LIMIT || total > LIMIT {
            return None;
        }
        rest = after;
    }
    if negative { Some(0_i64.wrapping_sub_unsigned(total)) } else { i64::try_from(total).ok() }
}

/// The digits behind a point as a number and what to divide it by; those that make it too large are left out.
fn leading_fraction(digits: &str) -> (u64, f64) {
    let (mut value, mut scale) = (0_u64, 1.0);
    for digit in digits.bytes() {
        if value > (i64::MAX / 10).unsigned_abs() {
            break;
        }
        let next = value * 10 + u64::from(digit - b'0');
        if next > 1 << 63 {
            break;
        }
        value = next;
        scale *= 10.0;
    }
    (value, scale)
}
