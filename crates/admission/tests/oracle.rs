//! Answers of the API server's own code to objects with one change each (`tests/oracle`).
#![allow(clippy::disallowed_methods, reason = "golden files are files")]

use std::{collections::BTreeMap, fs, io::Read, path::Path};

use flate2::read::GzDecoder;
use palisade_cel::Minor;
use serde_json::Value;

/// The lines of a minor, of a directory of the oracle.
pub(crate) fn lines(of: &str, minor: Minor) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/oracle/{of}/golden/{minor}.jsonl.gz"));
    let mut text = String::new();
    GzDecoder::new(fs::File::open(&file).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The id of a line.
pub(crate) fn id(line: &Value) -> &str {
    line["id"].as_str().unwrap()
}

/// The lines of a minor: those of 1.36, and in their place those that differ, which are marked.
pub(crate) fn golden(of: &str, minor: Minor) -> Vec<(Value, bool)> {
    let mut all: Vec<_> = lines(of, Minor::V1_36).into_iter().map(|line| (line, minor == Minor::V1_36)).collect();
    if minor == Minor::V1_36 {
        return all;
    }
    let places: BTreeMap<String, usize> =
        all.iter().enumerate().map(|(i, (line, _))| (id(line).to_owned(), i)).collect();
    for line in lines(of, minor) {
        match places.get(id(&line)) {
            Some(at) => all[*at] = (line, true),
            None => all.push((line, true)),
        }
    }
    all.retain(|(line, _)| line["absent"] != true);
    all
}

/// The object with the change of a line.
pub(crate) fn changed(base: &Value, line: &Value) -> Value {
    let mut object = base.clone();
    let Some(at) = line["at"].as_str() else { return object };
    let (parent, key) = at.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    let to = line.get("to").cloned().unwrap_or_default();
    match object.pointer_mut(parent).unwrap() {
        Value::Object(fields) if line["gone"] == true => drop(fields.remove(&key)),
        Value::Object(fields) => drop(fields.insert(key, to)),
        Value::Array(list) if key == "-" => list.push(to),
        Value::Array(list) => list[key.parse::<usize>().unwrap()] = to,
        other => panic!("{at}: {other}"),
    }
    object
}
