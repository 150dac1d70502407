//! Compares functions with what the API server's code answered (`testdata/*.jsonl`, written by `testdata/generate`).

use serde_json::{Value, json};

/// Calls `answer` with every line of a table, as the CEL expression and the values of its variables `x0`, `x1`, ...
///
/// # Panics
/// If an answer differs from that of the API server.
pub(super) fn check(table: &str, answer: impl Fn(&str, &[Value]) -> Result<Value, String>) {
    let mut wrong = Vec::new();
    for line in table.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let call = line["call"].as_str().unwrap();
        let args = line["args"].as_array().map_or(&[][..], Vec::as_slice);
        let expected = match line.get("err") {
            Some(error) => Err(error.as_str().unwrap().to_owned()),
            None => Ok(line["ok"].clone()),
        };
        let found = answer(call, args);
        if found != expected {
            wrong.push(format!("{call} with {}:\n     {found:?}\n  not {expected:?}", line["args"]));
        }
    }
    assert!(!table.is_empty());
    let (count, shown) = (wrong.len(), wrong.iter().take(20).cloned().collect::<Vec<_>>());
    assert!(wrong.is_empty(), "{count} answers differ:\n{}", shown.join("\n"));
}

pub(super) fn string(value: &Value) -> &str {
    value.as_str().unwrap()
}

pub(super) fn int(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

/// A double, which the tables write as `{"double": "1.5"}`.
pub(super) fn double(value: &Value) -> Option<f64> {
    Some(value.get("double")?.as_str().unwrap().parse().unwrap())
}

pub(super) fn from_double(value: f64) -> Value {
    json!({"double": super::double::to_string(value)})
}

pub(super) fn uint(value: &Value) -> Option<u64> {
    value.get("uint")?.as_u64()
}

/// Bytes, which the tables write as `{"bytes": "<base64>"}`.
pub(super) fn bytes(value: &Value) -> Option<Vec<u8>> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = value.get("bytes")?.as_str().unwrap().trim_end_matches('=');
    let (mut bits, mut count, mut out) = (0_u32, 0, Vec::new());
    for byte in text.bytes() {
        let digit = ALPHABET.iter().position(|&c| c == byte).unwrap();
        (bits, count) = (bits << 6 | u32::try_from(digit).unwrap(), count + 6);
        if count >= 8 {
            count -= 8;
            out.push((bits >> count & 0xff) as u8);
        }
    }
    Some(out)
}

/// Random texts out of these pieces: what a parser must survive. The same ones in every run.
pub(super) fn texts<'a>(pieces: &'a [&'a str], count: usize) -> impl Iterator<Item = String> + 'a {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    (0..count).map(move |_| (0..=random(12)).map(|_| pieces[random(pieces.len())]).collect())
}
