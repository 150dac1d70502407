//! The string extensions of cel-go (`ext/strings.go`, version 2: without `reverse`).
//!
//! Offsets and lengths count code points.

fn out_of_range(index: i64) -> String {
    format!("index out of range: {index}")
}

/// The index as one of `0..=length`.
fn within(index: i64, length: usize) -> Result<usize, String> {
    usize::try_from(index).ok().filter(|&index| index <= length).ok_or_else(|| out_of_range(index))
}

/// `string.charAt(int)`: the character there; empty at the end of the text.
pub(crate) fn char_at(text: &str, index: i64) -> Result<String, String> {
    let position = within(index, text.chars().count())?;
    Ok(text.chars().nth(position).map(String::from).unwrap_or_default())
}

/// `string.indexOf(string)` and, with an offset to begin at, `string.indexOf(string, int)`; -1 if it is not found.
pub(crate) fn index_of(text: &str, part: &str, offset: i64) -> Result<i64, String> {
    if part.is_empty() {
        return Ok(offset);
    }
    let Ok(start) = usize::try_from(offset) else { return Err(out_of_range(offset)) };
    let Some((byte, _)) = text.char_indices().nth(start) else { return Ok(-1) };
    Ok(text[byte..].find(part).map_or(-1, |found| length(&text[..byte + found])))
}

/// `string.lastIndexOf(string)`; -1 if it is not found.
pub(crate) fn last_index_of(text: &str, part: &str) -> i64 {
    text.rfind(part).map_or(-1, |found| length(&text[..found]))
}

/// `string.lastIndexOf(string, int)`: the last place that is not after the offset.
pub(crate) fn last_index_of_offset(text: &str, part: &str, offset: i64) -> Result<i64, String> {
    if part.is_empty() {
        return Ok(offset);
    }
    let Ok(last) = usize::try_from(offset) else { return Err(out_of_range(offset)) };
    let starts: Vec<usize> = text.char_indices().map(|(byte, _)| byte).collect();
    if last >= starts.len() {
        return Ok(-1);
    }
    let found = starts[..=last].iter().rposition(|&byte| text[byte..].starts_with(part));
    Ok(found.map_or(-1, |index| i64::try_from(index).unwrap_or(i64::MAX)))
}

/// `string.size()`: the number of code points.
pub(crate) fn length(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

/// `string.lowerAscii()`.
pub(crate) fn lower_ascii(text: &str) -> String {
    text.to_ascii_lowercase()
}

/// `string.upperAscii()`.
pub(crate) fn upper_ascii(text: &str) -> String {
    text.to_ascii_uppercase()
}

/// `string.replace(string, string, int)`: a negative limit means no limit. Go's `strings.Replace`.
pub(crate) fn replace(text: &str, old: &str, new: &str, limit: i64) -> String {
    match usize::try_from(limit) {
        Ok(limit) => text.replacen(old, new, limit),
        Err(_) => text.replace(old, new),
    }
}

/// `string.split(string, int)`: a negative limit means no limit, and 0 gives an empty list. Go's `strings.SplitN`.
pub(crate) fn split<'a>(text: &'a str, separator: &str, limit: i64) -> Vec<&'a str> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if !separator.is_empty() {
        return text.splitn(limit, separator).collect();
    }
    let (mut rest, mut parts) = (text, Vec::new());
    while parts.len() < limit && !rest.is_empty() {
        let end = if parts.len() + 1 == limit { rest.len() } else { rest.chars().next().map_or(0, char::len_utf8) };
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    parts
}

/// `string.substring(int)`.
pub(crate) fn substring(text: &str, start: i64) -> Result<String, String> {
    let start = within(start, text.chars().count())?;
    Ok(text.chars().skip(start).collect())
}

/// `string.substring(int, int)`: without the character at `end`.
pub(crate) fn substring_range(text: &str, start: i64, end: i64) -> Result<String, String> {
    if start > end {
        return Err(format!("invalid substring range. start: {start}, end: {end}"));
    }
    let count = text.chars().count();
    let (start, end) = (within(start, count)?, within(end, count)?);
    Ok(text.chars().skip(start).take(end - start).collect())
}

/// `string.trim()`: Unicode's white space.
pub(crate) fn trim(text: &str) -> &str {
    text.trim()
}

/// `list.join(string)`. A list of other types is an error, `join: invalid input: <the element>`.
pub(crate) fn join<'a>(items: impl IntoIterator<Item = &'a str>, separator: &str) -> String {
    items.into_iter().collect::<Vec<_>>().join(separator)
}

/// `strings.quote(string)`: a CEL literal. Characters that are not printable stay as they are.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::library::truth::{check, int, string};

    #[test]
    fn results_match_the_api_server() {
        check(include_str!("testdata/strings.jsonl"), |call, args| {
            let text = || string(&args[0]);
            let first = || string(&args[1]);
            let list = || args[0].as_array().unwrap().iter().map(string);
            Ok(match call {
                "x0.charAt(x1)" => json!(char_at(text(), int(&args[1]))?),
                "x0.indexOf(x1)" => json!(index_of(text(), first(), 0)?),
                "x0.indexOf(x1, x2)" => json!(index_of(text(), first(), int(&args[2]))?),
                "x0.lastIndexOf(x1)" => json!(last_index_of(text(), first())),
                "x0.lastIndexOf(x1, x2)" => json!(last_index_of_offset(text(), first(), int(&args[2]))?),
                "x0.lowerAscii()" => json!(lower_ascii(text())),
                "x0.upperAscii()" => json!(upper_ascii(text())),
                "x0.replace(x1, '-', x2)" => json!(replace(text(), first(), "-", int(&args[2]))),
                "x0.replace(x1, x2)" => json!(replace(text(), first(), string(&args[2]), -1)),
                "x0.split(x1)" => json!(split(text(), first(), -1)),
                "x0.split(x1, x2)" => json!(split(text(), first(), int(&args[2]))),
                "x0.substring(x1)" => json!(substring(text(), int(&args[1]))?),
                "x0.substring(x1, x2)" => json!(substring_range(text(), int(&args[1]), int(&args[2]))?),
                "x0.trim()" => json!(trim(text())),
                "x0.size()" => json!(length(text())),
                "x0.contains(x1)" => json!(text().contains(first())),
                "x0.startsWith(x1)" => json!(text().starts_with(first())),
                "x0.endsWith(x1)" => json!(text().ends_with(first())),
                "strings.quote(x0)" => json!(quote(text())),
                "x0.join()" => json!(join(list(), "")),
                "x0.join(x1)" => json!(join(list(), first())),
                call => panic!("{call}"),
            })
        });
    }
}
