//! Tests of timestamps and durations.

use serde_json::json;

use super::*;
use crate::library::truth::{check, int, string, texts};

fn field(call: &str) -> Field {
    match call {
        "getFullYear" => Field::FullYear,
        "getMonth" => Field::Month,
        "getDayOfYear" => Field::DayOfYear,
        "getDayOfMonth" => Field::DayOfMonth,
        "getDate" => Field::Date,
        "getDayOfWeek" => Field::DayOfWeek,
        "getHours" => Field::Hours,
        "getMinutes" => Field::Minutes,
        "getSeconds" => Field::Seconds,
        "getMilliseconds" => Field::Milliseconds,
        call => panic!("{call}"),
    }
}

/// Answers of kube-apiserver's code where the database is there as files, as in its image. They are not among the golden
/// files, for where it is not, Go takes an archive, which knows no directories.
#[test]
fn time_zone_name_resolves_as_a_file_path() {
    let new_year = Timestamp::parse("2023-01-01T00:00:00Z").unwrap();
    for (zone, expected) in [
        ("./America/New_York", Ok(19)),
        ("America//New_York", Ok(19)),
        (".", Err("is a directory")),
        ("America", Err("is a directory")),
        ("America/Argentina", Err("is a directory")),
        ("America/.", Err("is a directory")),
        ("America/", Err("is a directory")),
        ("Europe/Berlin/x", Err("not a directory")),
        ("a/../b", Err("time: invalid location name")),
        (" ", Err("unknown time zone  ")),
    ] {
        let found = new_year.get(Field::Hours, Some(zone));
        assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|text| *text), "{zone}");
    }
}

#[test]
fn results_match_the_api_server() {
    let duration = |d: Duration| json!({"duration": d.0});
    let timestamp = |t: Timestamp| json!({"timestamp": t.to_string()});
    check(include_str!("../testdata/time.jsonl"), |call, args| {
        let time = |index: usize| Timestamp::parse(string(&args[index]));
        let span = |index: usize| Duration::parse(string(&args[index]));
        Ok(match call {
            "timestamp(x0)" if args[0].is_i64() => timestamp(Timestamp::from_seconds(int(&args[0]))?),
            "timestamp(x0)" => timestamp(time(0)?),
            "string(timestamp(x0))" => json!(time(0)?.to_string()),
            "int(timestamp(x0))" => json!(time(0)?.seconds()),
            "duration(x0)" => duration(span(0)?),
            "string(duration(x0))" => json!(span(0)?.to_string()),
            "duration(x0).getHours()" => json!(span(0)?.hours()),
            "duration(x0).getMinutes()" => json!(span(0)?.minutes()),
            "duration(x0).getSeconds()" => json!(span(0)?.seconds()),
            "duration(x0).getMilliseconds()" => json!(span(0)?.milliseconds()),
            "duration(x0) + duration(x1)" => duration(span(0)?.add(span(1)?)?),
            "duration(x0) - duration(x1)" => duration(span(0)?.sub(span(1)?)?),
            "timestamp(x0) + duration(x1)" => timestamp(time(0)?.add(span(1)?)?),
            "timestamp(x0) - duration(x1)" => timestamp(time(0)?.sub(span(1)?)?),
            "timestamp(x0) - timestamp(x1)" => duration(time(0)?.since(time(1)?)?),
            "timestamp(x0) == timestamp(x1)" => json!(time(0)? == time(1)?),
            "timestamp(x0) < timestamp(x1)" => json!(time(0)? < time(1)?),
            call => {
                let call = call.strip_prefix("timestamp(x0).").unwrap();
                let (name, zone) = call.split_once('(').unwrap();
                json!(time(0)?.get(field(name), (zone == "x1)").then(|| string(&args[1])))?)
            }
        })
    });
}

#[test]
fn any_text_parses_as_a_time_or_is_rejected() {
    let pieces =
        ["2023", "-01", "-02", "T", "03", ":04", ":05", ".6", "Z", "+", "9", "h", "ms", "é", "µs", "99999999999"];
    for text in texts(&pieces, 20_000) {
        let _ = (Timestamp::parse(&text), Duration::parse(&text));
        let _ = Timestamp::from_seconds(0).unwrap().get(Field::Hours, Some(&text));
    }
}
