//! The schema of times in specs. `format: date-time` accepts times that a controller cannot read: the year 9999 with an
//! offset, more than nine fractional digits, offsets of more than a day, and any string after a second `T`.

use schemars::{Schema, SchemaGenerator, json_schema};

/// Maximum length of a time, in characters.
pub(crate) const MAX_LENGTH: i64 = 64;

/// Times that all readers can represent, except for 29 February: RFC 3339 with at most nine fractional digits, years
/// 1970 to 9998. RE2 and Rust interpret it in the same way.
pub(crate) const PATTERN: &str = r"^(19[7-9][0-9]|[2-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|[12][0-9]))[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$";

/// CEL expression that is true if the time is in a leap year or not on 29 February.
const LEAP: &str = "self.substring(4, 10) != '-02-29' || (int(self.substring(0, 4)) % 4 == 0 \
                    && (int(self.substring(0, 4)) % 100 != 0 || int(self.substring(0, 4)) % 400 == 0))";

/// Message of the API server for an invalid time.
const MESSAGE: &str = "must be a time such as 2027-01-31T00:00:00Z: years 1970 to 9998, at most nine fractional digits, \
                       and Z or an offset such as +02:00 at the end";

/// The schema of a time in a spec. It has no format, because CEL rules get a string with that format as a timestamp and
/// cannot report its error.
pub(crate) fn written(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": MAX_LENGTH,
        "x-kubernetes-validations": [{
            "rule": format!("self.matches('{PATTERN}') && ({LEAP})"),
            "message": MESSAGE,
        }],
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use regex::Regex;
    use serde_json::json;

    use super::*;

    fn is_read(text: &str) -> bool {
        serde_json::from_value::<Time>(json!(text)).is_ok()
    }

    #[test]
    fn a_time_that_the_definition_accepts_is_read() {
        let pattern = Regex::new(PATTERN).unwrap();
        let years = ["1970", "2024", "2027", "2999", "8999", "9899", "9989", "9998"];
        let days = ["01-01", "01-31", "02-28", "04-30", "11-30", "12-31"];
        let times = ["00:00:00", "23:59:59", "12:00:00.1", "23:59:59.999999999"];
        let zones = ["Z", "z", "+00:00", "-00:00", "+23:59", "-23:59", "+14:00"];
        for year in years {
            for day in days {
                for time in times {
                    for zone in zones {
                        for t in ["T", "t"] {
                            let text = format!("{year}-{day}{t}{time}{zone}");
                            assert!(pattern.is_match(&text) && is_read(&text), "{text}");
                        }
                    }
                }
            }
        }
        assert!(pattern.is_match("2024-02-29T00:00:00Z") && is_read("2024-02-29T00:00:00Z"));
    }

    #[test]
    fn a_time_that_cannot_be_read_is_not_accepted() {
        let pattern = Regex::new(PATTERN).unwrap();
        for text in [
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59-23:59",
            "9999-01-01T00:00:00Z",
            "0001-01-01T00:00:00+23:59",
            "2027-01-01T00:00:00.999999999999Z",
            "2027-01-01T00:00:00.Z",
            "2027-01-01T00:00:00x1Z",
            "2016-12-31T23:59:60Z",
            "2027-01-01T24:00:00Z",
            "2027-02-30T00:00:00Z",
            "2027-04-31T00:00:00Z",
            "2027-13-01T00:00:00Z",
            "2027-01-01T00:00:00+24:00",
            "2027-01-01T00:00:00+99:99",
            "2027-01-01T00:00:00ZTx",
            "2027-01-01T00:00:00",
            "2027-01-01 00:00:00Z",
            "2027-01-01",
            " 2027-01-01T00:00:00Z",
            "2027-01-01T00:00:00Z\n",
            "tomorrow",
            "",
        ] {
            assert!(!pattern.is_match(text), "{text}");
        }
    }
}
