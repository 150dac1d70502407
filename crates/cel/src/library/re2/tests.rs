//! Tests of regular expressions.

use serde_json::json;

use super::*;
use crate::library::truth::{check, int, string, texts};

#[test]
fn results_match_the_api_server() {
    check(include_str!("../testdata/re2.jsonl"), |call, args| {
        let (text, pattern) = (string(&args[0]), string(&args[1]));
        let illegal = |error| format!("Illegal regex: {error}");
        Ok(match call {
            "x0.matches(x1)" => json!(Regex::new(pattern)?.is_match(text)),
            "x0.find(x1)" => json!(Regex::new(pattern).map_err(illegal)?.find(text).unwrap_or_default()),
            "x0.findAll(x1)" => json!(Regex::new(pattern).map_err(illegal)?.find_all(text, -1)),
            "x0.findAll(x1, x2)" => {
                json!(Regex::new(pattern).map_err(illegal)?.find_all(text, int(&args[2])))
            }
            call => panic!("{call}"),
        })
    });
}

/// The summary of a class as in the tables: the number of code points, and the sum of each times its number.
fn summary(class: &regex_syntax::hir::ClassUnicode) -> [u64; 2] {
    let points = class.ranges().iter().flat_map(|range| u32::from(range.start())..=u32::from(range.end()));
    points
        .filter(|point| !(0xd800..0xe000).contains(point))
        .zip(1_u64..)
        .fold([0, 0], |[_, sum], (point, number)| [number, (sum + u64::from(point) * number) % 1_000_000_007])
}

#[test]
fn character_classes_match_go() {
    check(include_str!("../testdata/re2_class.jsonl"), |call, args| {
        let name = string(&args[0]);
        Ok(match call {
            "class" => json!(class::unicode(name, false).map(|class| summary(&class))),
            "folded class" => json!(class::unicode(name, true).map(|class| summary(&class))),
            "folded" => {
                let c = name.chars().next().unwrap();
                let folded = class::fold(&class::of(&[(c, c)]));
                json!(folded.ranges().iter().flat_map(|r| r.start()..=r.end()).collect::<String>())
            }
            call => panic!("{call}"),
        })
    });
}

#[test]
fn pattern_errors_match_go() {
    check(include_str!("../testdata/re2_syntax.jsonl"), |_, args| Regex::new(string(&args[0])).map(|_| json!(null)));
}

#[test]
fn deep_expressions_do_not_overflow_the_stack() {
    for (open, close) in [("(", ")*"), ("(?:a", "b)*"), ("(a|", ")+"), ("(?:", "?){2,}x|")] {
        let pattern = format!("{}c{}", open.repeat(330), close.repeat(330));
        let _ = Regex::new(&pattern).map(|regex| regex.is_match("aac"));
    }
}

#[test]
fn any_pattern_compiles_or_is_rejected() {
    let pieces = [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "2",
        ",",
        "*",
        "?",
        "+",
        "|",
        "\\",
        "p",
        "P",
        "Q",
        "E",
        "x",
        "^",
        "-",
        ":",
        "(?i)",
        "(?P<n>",
        "[:alpha:]",
        "é",
        "a",
        "\\pL",
        "$",
        "\\b",
        "(?s-U:",
    ];
    for pattern in texts(&pieces, 5_000) {
        if let Ok(regex) = Regex::new(&pattern) {
            regex.find_all("aé2\n-", -1);
        }
    }
}
