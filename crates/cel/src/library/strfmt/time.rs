//! Dates, times and durations, with Go's errors (`time.Parse`, and kube-openapi's `ParseDateTime` and `ParseDuration`).

use std::fmt::Write as _;

use crate::library::{
    double::atoi,
    time::{Duration, Timestamp},
};

/// The elements of layouts of Go, each with the text before it. That of a date has three of them.
const ELEMENTS: [(&str, &str); 6] = [("", "2006"), ("-", "01"), ("-", "02"), ("T", "15"), (":", "04"), (":", "05")];

/// `2006-01-02`, at the beginning of the day in UTC.
///
/// # Errors
/// Go's text.
pub(crate) fn date(text: &str) -> Result<Timestamp, String> {
    parse(text, &ELEMENTS[..3])
}

/// RFC 3339 as Go reads it, or without an offset; nothing at all is 1970.
///
/// # Errors
/// Go's text, of the last of the layouts that it tries.
pub(crate) fn date_time(text: &str) -> Result<Timestamp, String> {
    if text.is_empty() {
        return Ok(Timestamp::EPOCH);
    }
    Timestamp::rfc3339(text).map_or_else(|| parse(text, &ELEMENTS), Ok)
}

/// A duration as Go writes it, or numbers with units such as `1 week 2 days`, whatever is between them.
///
/// # Errors
/// The text of kube-openapi.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(duration) = Duration::parse(text) {
        return Ok(duration);
    }
    let (mut total, mut found) = (0_i64, false);
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let (digits, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
        rest = after;
        let unit = after.trim_start_matches(['\t', '\n', '\x0c', '\r', ' ']);
        let end = unit.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(unit.len());
        if end == 0 {
            continue;
        }
        let (unit, after) = unit.split_at(end);
        rest = after;
        let count = atoi(digits)?;
        for factor in factors(&unit.to_lowercase()) {
            found = true;
            // As Go's arithmetic of integers.
            total = total.wrapping_add(count.wrapping_mul(factor));
        }
    }
    if found { Ok(Duration(total)) } else { Err(format!("unable to parse {text} as duration")) }
}

/// The nanoseconds of a unit: some names are also taken where they only begin the text.
fn factors(unit: &str) -> impl Iterator<Item = i64> {
    const UNITS: [(&[&str], &str, i64); 8] = [
        (&["ns"], "nano", 1),
        (&["us", "µs"], "micro", 1_000),
        (&["ms"], "milli", 1_000_000),
        (&["s"], "sec", 1_000_000_000),
        (&["m"], "min", 60_000_000_000),
        (&["h", "hr"], "hour", 3_600_000_000_000),
        (&["d"], "day", 86_400_000_000_000),
        (&["w", "wk"], "week", 604_800_000_000_000),
    ];
    let is_it = move |(names, prefix, _): &(&[&str], &str, i64)| names.contains(&unit) || unit.starts_with(prefix);
    UNITS.into_iter().filter(is_it).map(|(.., factor)| factor)
}

/// Go's `time.Parse` with a layout of these elements.
fn parse(text: &str, layout: &[(&str, &str)]) -> Result<Timestamp, String> {
    let about = format!("parsing time {}", quote(text));
    let whole: String = layout.iter().flat_map(|(before, element)| [*before, *element]).collect();
    let cannot = |rest: &[u8], element: &str| {
        Err(format!("{about} as {}: cannot parse {} as {}", quote(&whole), quote_bytes(rest), quote(element)))
    };
    let mut rest = text.as_bytes();
    let mut values = [0_i64; 6];
    let mut nanos = 0;
    for (index, (before, element)) in layout.iter().enumerate() {
        match rest.strip_prefix(before.as_bytes()) {
            Some(after) => rest = after,
            None => return cannot(rest, before),
        }
        let count = match index {
            0 => 4,
            3 if !rest.get(1).is_some_and(u8::is_ascii_digit) => 1,
            _ => 2,
        };
        let digits = rest.get(..count).filter(|digits| digits.iter().all(u8::is_ascii_digit));
        let Some(digits) = digits else { return cannot(rest, element) };
        values[index] = digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        rest = &rest[count..];
        let wrong = match (index, values[index]) {
            (1, ..=0 | 13..) => "month",
            (3, 24..) => "hour",
            (4, 60..) => "minute",
            (5, 60..) => "second",
            _ => "",
        };
        if !wrong.is_empty() {
            return Err(format!("{about}: {wrong} out of range"));
        }
        if let (5, [b'.' | b',', after @ ..]) = (index, rest)
            && after.first().is_some_and(u8::is_ascii_digit)
        {
            let count = after.iter().take_while(|digit| digit.is_ascii_digit()).count();
            let ninth = |place: usize| after[..count].get(place).map_or(0, |digit| u32::from(digit - b'0'));
            nanos = (0..9).fold(0, |number, place| number * 10 + ninth(place));
            rest = &after[count..];
        }
    }
    if !rest.is_empty() {
        return Err(format!("{about}: extra text: {}", quote_bytes(rest)));
    }
    let [year, month, day, hour, minute, second] = values;
    let seconds = hour * 3600 + minute * 60 + second;
    Timestamp::on((year, month, day), seconds, nanos).ok_or_else(|| format!("{about}: day out of range"))
}

/// A string as Go's package `time` quotes it in errors: unlike `strconv.Quote`, it escapes each byte that is not ASCII.
pub fn quote(text: &str) -> String {
    quote_bytes(text.as_bytes())
}

fn quote_bytes(text: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for &byte in text {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' | 0x7f => quoted.push(char::from(byte)),
            // Writing to a string does not fail.
            _ => drop(write!(quoted, "\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}
