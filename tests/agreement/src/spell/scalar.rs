//! Scalars, in each form that they can have.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::Random;

/// Whether a text is most likely itself without quotes.
pub(super) fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 12] = ["y", "n", "yes", "no", "true", "false", "on", "off", "null", "nan", "inf", "~"];
    let first = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '/' || c == '_');
    first
        && !text.ends_with([' ', ':', '\t'])
        && !text.contains([',', '[', ']', '{', '}', '\n', '\r', '\t', '\u{85}', '\u{2028}', '\u{2029}', '\u{feff}'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.chars().any(char::is_control)
        && !WORDS.contains(&&*text.to_lowercase())
}

pub(super) fn can_be_block(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(|c| (c.is_control() && c != '\n' && c != '\t') || c == '\u{feff}')
}

/// A scalar after `key: `, or within a flow.
pub(super) fn inline(value: &Json, indent: usize, flow: bool, random: &mut Random) -> String {
    match value {
        Json::Null if flow => random.pick(&["null", "~", "Null"]).to_owned(),
        Json::Null => random.pick(&["", "null", "~", "NULL", "!!null ''"]).to_owned(),
        Json::Bool(true) => random.pick(&["true", "true", "True", "TRUE", "yes", "on", "y", "!!bool yes"]).to_owned(),
        Json::Bool(false) => random.pick(&["false", "false", "False", "no", "Off", "N", "!!bool 'no'"]).to_owned(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => integer(number, random),
            (None, Some(number)) => match random.below(3) {
                0 => format!("{number:e}"),
                1 => format!("!!float {number}"),
                _ => number.to_string(),
            },
            _ => number.to_string(),
        },
        Json::String(text) => string(text, indent, flow, random),
        // Only what is empty comes here.
        Json::Array(_) => "[]".to_owned(),
        Json::Object(_) => "{}".to_owned(),
    }
}

fn integer(number: i64, random: &mut Random) -> String {
    let (sign, size) = (if number < 0 { "-" } else { "" }, number.unsigned_abs());
    match random.below(12) {
        0 => format!("{sign}0x{size:x}"),
        1 => format!("{sign}0o{size:o}"),
        2 => format!("{sign}0{size:o}"),
        3 => format!("{sign}0b{size:b}"),
        4 => format!("{sign}{size}_0").replace("_0", "_"),
        5 if number >= 0 => format!("+{size}"),
        6 => format!("!!int \"{number}\""),
        7 => format!("{number}.0"),
        8 if size % 1000 == 0 && size > 0 => format!("{sign}{}e3", size / 1000),
        _ => number.to_string(),
    }
}

fn string(text: &str, indent: usize, flow: bool, random: &mut Random) -> String {
    if is_plain(text) && !random.one_in(4) {
        if !flow && random.one_in(15) {
            return folded(text, indent + 1, random);
        }
        return text.to_owned();
    }
    if !text.chars().any(char::is_control) && random.one_in(2) {
        let quoted = text.replace('\'', "''");
        // Within quotes any indentation will do.
        let column = if random.one_in(3) { random.below(indent + 1) } else { indent + 2 };
        let quoted = if random.one_in(4) { folded(&quoted, column, random) } else { quoted };
        return format!("'{quoted}'");
    }
    if random.one_in(15) {
        return format!("!!str {}", double(text, indent, random));
    }
    double(text, indent, random)
}

pub(super) fn quoted_key(key: &str, random: &mut Random) -> String {
    if !key.chars().any(char::is_control) && random.one_in(2) {
        return format!("'{}'", key.replace('\'', "''"));
    }
    serde_json::to_string(key).unwrap_or_default()
}

/// A text whose words go on in the next line here and there.
fn folded(text: &str, column: usize, random: &mut Random) -> String {
    let mut out = String::new();
    let chars: Vec<_> = text.chars().collect();
    for (index, c) in chars.iter().enumerate() {
        let alone = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|c| c.is_alphanumeric());
        if *c == ' ' && alone(index.checked_sub(1)) && alone(Some(index + 1)) && random.one_in(3) {
            out.push_str(random.pick(&["\n", " \n", "\t\n"]));
            out.extend(std::iter::repeat_n(' ', column));
            if random.one_in(8) {
                out.push('\t');
            }
        } else {
            out.push(*c);
        }
    }
    out
}

fn double(text: &str, indent: usize, random: &mut Random) -> String {
    let mut out = String::from("\"");
    let column = if random.one_in(3) { random.below(indent + 1) } else { indent + 2 };
    let fold = random.one_in(4);
    let chars: Vec<_> = text.chars().collect();
    for (index, &c) in chars.iter().enumerate() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str(random.pick(&["\\t", "\t", "\\\t"])),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str(random.pick(&["\\0", "\\x00", "\\u0000"])),
            '/' if random.one_in(10) => out.push_str("\\/"),
            '\'' if random.one_in(10) => out.push_str("\\'"),
            ' ' if fold && random.one_in(4) => {
                let word = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|c| c.is_alphanumeric());
                if word(index.checked_sub(1)) && word(Some(index + 1)) {
                    out.push_str(random.pick(&["\n", " \\\n", "\t\n"]));
                    out.extend(std::iter::repeat_n(' ', column));
                } else {
                    out.push(' ');
                }
            }
            c if c.is_control()
                || c == '\u{feff}'
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}') =>
            {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c if u32::from(c) > 0xffff && random.one_in(2) => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
            c if !c.is_ascii() && u32::from(c) <= 0xffff && random.one_in(2) => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A literal or folded block after `key:`, with the end of its last line. `width` more than `indent` is its indentation.
pub(super) fn block(text: &str, indent: usize, width: usize, random: &mut Random) -> String {
    let body = text.trim_end_matches('\n');
    let ends = text.len() - body.len();
    // Where lines are indented or empty, other rules hold for breaks.
    let folds = random.one_in(3) && ends < 2 && !["\n ", "\n\t", "\n\n"].iter().any(|line| body.contains(line));
    let folds = folds && !body.starts_with([' ', '\t', '\n']);
    let chomp = match ends {
        0 => "-",
        1 => "",
        _ => "+",
    };
    let explicit = body.starts_with([' ', '\n', '\t']) || random.one_in(10);
    let mark = if explicit { width.to_string() } else { String::new() };
    let style = if folds { '>' } else { '|' };
    let mut out = if random.one_in(2) { format!(" {style}{mark}{chomp}") } else { format!(" {style}{chomp}{mark}") };
    out.push_str(random.pick(&["", "", " # comment", "  "]));
    out.push('\n');
    let pad = " ".repeat(indent + width);
    for line in body.split('\n') {
        if line.is_empty() {
            out.push_str(random.pick(&["", "", &pad[..1]]));
        } else {
            out.push_str(&pad);
            out.push_str(line);
        }
        out.push('\n');
        if folds && !line.is_empty() {
            // A break is written as two.
            out.push('\n');
        }
    }
    for _ in 1..ends {
        out.push('\n');
    }
    out
}
