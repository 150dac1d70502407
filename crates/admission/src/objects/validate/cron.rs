//! When jobs run: schedules as `github.com/robfig/cron/v3` reads them (`ParseStandard`), with its texts, and time zones.

use jiff::tz::TimeZoneDatabase;
use palisade_cel::Minor;

use crate::validation::quote;

/// The least and the most of a field, and names for its numbers from the least on.
type Bounds = (u64, u64, &'static [&'static str]);

const FIELDS: [Bounds; 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// The error in a schedule that is not empty.
pub(super) fn schedule(minor: Minor, text: &str) -> Result<(), String> {
    let mut rest = text;
    if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
        let Some((zone, schedule)) = text.split_once(' ') else {
            return Err(if minor >= Minor::V1_34 {
                "invalid schedule format: runtime error: slice bounds out of range [:-1]".to_owned()
            } else {
                "the API server panics".to_owned()
            });
        };
        let name = zone.split_once('=').map_or("", |(_, name)| name);
        if !is_known(name) {
            return Err(format!("provided bad location {name}: unknown time zone {name}"));
        }
        rest = schedule.trim();
    }
    if let Some(descriptor) = rest.strip_prefix('@') {
        return described(rest, descriptor);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    for (field, bounds) in fields.iter().zip(FIELDS) {
        for range in field.split(',').filter(|range| !range.is_empty()) {
            self::range(range, bounds)?;
        }
    }
    Ok(())
}

fn described(text: &str, descriptor: &str) -> Result<(), String> {
    match descriptor {
        "yearly" | "annually" | "monthly" | "weekly" | "daily" | "midnight" | "hourly" => Ok(()),
        _ => match descriptor.strip_prefix("every ") {
            Some(every) => duration(every).map_err(|why| format!("failed to parse duration {text}: {why}")),
            None => Err(format!("unrecognized descriptor: {text}")),
        },
    }
}

fn range(text: &str, (least, most, names): Bounds) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end) = if matches!(ends[0], "*" | "?") {
        (least, most)
    } else {
        let start = number_or_name(ends[0], least, names)?;
        match ends[..] {
            [_] => (start, start),
            [_, end] => (start, number_or_name(end, least, names)?),
            _ => return Err(format!("too many hyphens: {text}")),
        }
    };
    let step = match parts[..] {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            if ends.len() == 1 {
                end = most;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {text}"));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {text}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn number_or_name(text: &str, least: u64, names: &[&str]) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match (least..).zip(names).find(|(_, name)| **name == lower) {
        Some((number, _)) => Ok(number),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let number = integer(text).map_err(|why| format!("failed to parse int from {text}: {why}"))?;
    u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

/// `strconv.Atoi`.
pub(super) fn integer(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("strconv.Atoi: parsing {}: invalid syntax", quote(text)));
    }
    text.parse().map_err(|_| format!("strconv.Atoi: parsing {}: value out of range", quote(text)))
}

/// `time.ParseDuration`, as far as it rejects.
fn duration(text: &str) -> Result<(), String> {
    let invalid = || format!("time: invalid duration {}", quote(text));
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let whole = digits(rest);
        let mut at = whole;
        if rest[at..].starts_with('.') {
            at += 1 + digits(&rest[at + 1..]);
        }
        if whole == 0 && at < 2 {
            return Err(invalid());
        }
        rest = &rest[at..];
        let unit_end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
        let (unit, after) = rest.split_at(unit_end);
        match unit {
            "" => return Err(format!("time: missing unit in duration {}", quote(text))),
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => rest = after,
            _ => return Err(format!("time: unknown unit {} in duration {}", quote(unit), quote(text))),
        }
    }
    Ok(())
}

/// Is there such a time zone? Go is particular about case.
fn is_known(name: &str) -> bool {
    matches!(name, "" | "UTC" | "Local")
        || TimeZoneDatabase::bundled().get(name).is_ok_and(|zone| zone.iana_name() == Some(name))
}

/// The errors in the name of a time zone (`validateTimeZone`).
pub(super) fn time_zone(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["timeZone must be nil or non-empty string".to_owned()];
    }
    let unknown = format!("unknown time zone {name}");
    let part = |part: &str| {
        part != "."
            && part != ".."
            && !part.starts_with('-')
            && (1..=14).contains(&part.len())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_+".contains(&b))
    };
    if !name.split('/').all(part) {
        return vec![unknown];
    }
    let mut wrong = Vec::new();
    if name.eq_ignore_ascii_case("local") {
        let text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        wrong.push(text.to_owned());
    }
    if !is_known(name) {
        wrong.push(unknown);
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cron_schedules_are_parsed_like_the_go_library() {
        for good in
            ["* * * * *", "*/5 0-3 1,15 JAN-mar ?", "@daily", "@every 1h30m", "TZ=UTC 0 0 * * *", "5/15 * * * 0"]
        {
            assert_eq!(schedule(Minor::DEFAULT, good), Ok(()), "{good}");
        }
        for (bad, wanted) in [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
            ("-1 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("@often", "unrecognized descriptor: @often"),
            ("@every soon", "failed to parse duration @every soon: time: invalid duration \"soon\""),
            ("TZ=Nowhere 0 0 * * *", "provided bad location Nowhere: unknown time zone Nowhere"),
        ] {
            assert_eq!(schedule(Minor::DEFAULT, bad), Err(wanted.to_owned()), "{bad}");
        }
    }

    #[test]
    fn time_zones_are_known_by_their_exact_names() {
        for good in ["Europe/Berlin", "UTC", "Etc/GMT+1"] {
            assert_eq!(time_zone(good), Vec::<String>::new());
        }
        assert_eq!(time_zone("europe/berlin"), ["unknown time zone europe/berlin"]);
        assert_eq!(time_zone("../a"), ["unknown time zone ../a"]);
        assert_eq!(time_zone(""), ["timeZone must be nil or non-empty string"]);
    }
}
