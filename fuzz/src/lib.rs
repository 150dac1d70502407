//! What the fuzz targets make of bytes.

pub mod review;

use arbitrary::{Result, Unstructured};
use palisade_cel::{Admission, Environment, Minor, Mode, types::Type};
use serde_json::{Map, Value as Json};

/// The oldest environment for new expressions and the newest for stored ones, with all variables of policies.
pub fn environments() -> [Environment; 2] {
    let admission = Admission { params: Some(Type::Dyn), ..Admission::default() };
    [(Minor::OLDEST, Mode::New), (Minor::NEWEST, Mode::Stored)]
        .map(|(minor, mode)| Environment::kubernetes(minor, mode).with_admission(&admission))
}

/// The text before the first NUL, and the bytes behind it.
pub fn split(input: &[u8]) -> Option<(&str, &[u8])> {
    let end = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
    Some((str::from_utf8(&input[..end]).ok()?, input.get(end + 1..).unwrap_or_default()))
}

/// Any bytes as JSON, whose names and texts are often from these words.
pub fn json(bytes: &[u8], words: &[&str]) -> Json {
    value(&mut Unstructured::new(bytes), words, 0).unwrap_or_default()
}

fn value(u: &mut Unstructured<'_>, words: &[&str], depth: u32) -> Result<Json> {
    // No API server reads what is nested deeper.
    let kinds = if depth > 200 { 6 } else { 10 };
    Ok(match u.int_in_range(0..=kinds)? {
        0 => Json::Null,
        1 => u.arbitrary::<bool>()?.into(),
        2 => u.arbitrary::<i8>()?.into(),
        3 => u.arbitrary::<i64>()?.into(),
        4 => u.arbitrary::<f64>()?.into(),
        5 | 6 => text(u, words)?.into(),
        7 => (0..u.int_in_range(0..=8)?).map(|_| value(u, words, depth + 1)).collect::<Result<Vec<_>>>()?.into(),
        _ => (0..u.int_in_range(0..=8)?)
            .map(|_| Ok((text(u, words)?, value(u, words, depth + 1)?)))
            .collect::<Result<Map<_, _>>>()?
            .into(),
    })
}

fn text(u: &mut Unstructured<'_>, words: &[&str]) -> Result<String> {
    Ok(if u.ratio(7, 8)? { (*u.choose(words)?).to_owned() } else { u.arbitrary()? })
}
