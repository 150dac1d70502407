//! The answers of the API server's own code to random custom resources, and to strings with a format
//! (`tests/oracle/custom`), compared with the answers of this crate.
//!
//! `CUSTOM_RESOURCES=file` compares another file of the oracle in place of the golden ones, as `cargo xtask fuzz-custom`
//! does.
#![allow(clippy::disallowed_methods, reason = "golden files are files")]

use std::{collections::BTreeMap, env, fs, io::Read, path::Path};

use flate2::read::GzDecoder;
use palisade_admission::{
    create::{FieldError, Refused, create},
    objects::{self, Kinds, RequestContext, Submission},
};
use palisade_cel::{Minor, strfmt, value::Value};
use serde_json::{Value as Json, json};

/// The minor whose golden file is whole; of the others there is what differs.
const BASE: Minor = Minor::V1_36;

fn lines(file: &Path) -> Vec<Json> {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(file).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn golden(name: &str) -> Vec<Json> {
    lines(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle/custom").join(name))
}

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(|error| format!("{}: {}", error.field, error.body)).collect()
}

/// The answer to an object, as the oracle writes it.
fn answer(kinds: &Kinds, line: &Json) -> Json {
    let resource = kinds.by_kind("example.org/v1", "Case").unwrap();
    let subresource = if line["status"] == true { "status" } else { "" };
    let around = RequestContext::default();
    let old = line.get("old").map(|old| kinds.stored(resource, "", "default", old, &around).unwrap());
    let sent = Submission { resource, subresource, namespace: "default", object: &line["sent"], old: old.as_ref() };
    let received = match kinds.decode(sent) {
        Ok(received) => received,
        Err(error) => return json!({"error": error.to_string()}),
    };
    let mut out = json!({});
    if plain(&received.object) != plain(&line["sent"]) {
        out["decoded"] = plain(&received.object);
    }
    let sent = Submission { object: &received.object, ..sent };
    let mut warnings = received.warnings;
    let errors = match kinds.prepare(sent, &around).and_then(|object| kinds.validate(sent, &object).map(|()| object)) {
        Ok(object) => {
            warnings.extend(kinds.warnings(sent, &object));
            Vec::new()
        }
        Err(objects::Refused::Validation { causes, .. }) => texts(&causes),
        Err(other) => vec![other.to_string()],
    };
    warnings.sort();
    for (key, texts) in [("warnings", warnings), ("errors", errors)] {
        if !texts.is_empty() {
            out[key] = json!(texts);
        }
    }
    out
}

/// With numbers as in JavaScript, for Go writes whole doubles as integers.
fn plain(value: &Json) -> Json {
    match value {
        Json::Number(number) => json!(number.as_f64()),
        Json::Array(elements) => elements.iter().map(plain).collect(),
        Json::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
        other => other.clone(),
    }
}

/// Whether two answers are the same, but for the order of errors where that is random in Go.
fn is_same(wanted: &Json, found: &Json) -> bool {
    let sorted = |of: &Json| {
        let mut texts: Vec<String> = serde_json::from_value(of["errors"].clone()).unwrap_or_default();
        texts.sort();
        texts
    };
    if wanted["error"] == "varies" {
        return found["error"].is_string();
    }
    let in_order: Vec<String> = serde_json::from_value(wanted["errors"].clone()).unwrap_or_default();
    let same_errors = wanted["errors"] == found["errors"] || (in_order.is_sorted() && sorted(wanted) == sorted(found));
    let decoded = wanted.get("decoded").map(plain);
    same_errors
        && decoded.as_ref() == found.get("decoded")
        && ["error", "warnings"].iter().all(|key| wanted.get(*key) == found.get(*key))
}

/// Compares each object of a file, where some answers are those of another minor; how many differ in whether an object is
/// taken, how many in more, and of how many.
fn compare(minor: Minor, lines: &[Json], others: &BTreeMap<&str, &Json>) -> (usize, usize, usize) {
    let (mut verdicts, mut differences, mut count) = (0, 0, 0);
    let mut kinds = None;
    for line in lines {
        let id = line["id"].as_str().unwrap();
        let other = others.get(id).copied();
        let wanted = other.unwrap_or(line);
        let found = if line.get("crd").is_some() {
            kinds = (wanted["refused"] != true && line["refused"] != true).then(|| {
                let mut kinds = Kinds::builtin(minor);
                kinds.add_crd(&line["crd"]).unwrap();
                kinds
            });
            match create(minor, &line["crd"], None) {
                Ok(_) => json!({}),
                Err(Refused::Status(status)) => json!({"errors": texts(&status.causes)}),
                Err(Refused::NoVerdict(why)) => json!({"error": why}),
            }
        } else {
            let Some(kinds) = &kinds else { continue };
            answer(kinds, line)
        };
        count += 1;
        if !is_same(wanted, &found) {
            differences += 1;
            let taken = |of: &Json| of.get("error").is_none() && of.get("errors").is_none();
            verdicts += usize::from(taken(wanted) != taken(&found));
            if differences <= 20 {
                let part = |key: &str| wanted.get(key).cloned();
                let wanted = json!({"error": part("error"), "decoded": part("decoded"), "warnings": part("warnings"), "errors": part("errors")});
                let what = line.get("crd").or(line.get("sent"));
                println!("{minor} {id}: {what:?}\n  old:    {}\n  wanted: {wanted}\n  found:  {found}", line["old"]);
            }
        }
    }
    (verdicts, differences, count)
}

#[test]
fn random_custom_resources_are_validated_like_the_api_server() {
    if let Some(file) = env::var_os("CUSTOM_RESOURCES") {
        let (verdicts, differences, count) = compare(BASE, &lines(Path::new(&file)), &BTreeMap::new());
        println!("{count} objects: {verdicts} verdicts and {differences} answers differ");
        assert!(verdicts == 0 && differences * 1000 <= count, "see above");
        return;
    }
    let base = golden(&format!("golden/{BASE}.jsonl.gz"));
    let mut differences = 0;
    for minor in Minor::ALL {
        let other = if minor == BASE { Vec::new() } else { golden(&format!("golden/{minor}.jsonl.gz")) };
        let others = other.iter().map(|line| (line["id"].as_str().unwrap(), line)).collect();
        let (_, different, count) = compare(minor, &base, &others);
        assert!(count > 2500, "golden files are missing");
        differences += different;
    }
    assert_eq!(differences, 0, "see above");
}

#[test]
fn texts_have_the_formats_and_values_that_they_have_to_the_api_server() {
    let lines = golden("formats.jsonl.gz");
    let mut failures = Vec::new();
    for line in &lines {
        let (format, text) = (line["format"].as_str().unwrap(), line["text"].as_str().unwrap());
        let is_valid = strfmt::check(BASE, format).is_some_and(|check| check(text));
        let schema = json!({"type": "string", "format": format});
        let json = json!(text);
        let value = Value::typed(&json, &schema);
        let value = value.failure().map_or_else(|| value.canonical(), |why| format!("error: {why}"));
        let wanted = line["value"].as_str().unwrap_or(&value);
        if line["valid"].as_bool().unwrap_or(false) != is_valid || wanted != value {
            failures.push(format!("{line}\n  found: {is_valid} {value}"));
        }
    }
    println!("{}", failures.join("\n"));
    assert!(failures.is_empty(), "{} of {} differ, see above", failures.len(), lines.len());
    assert!(lines.len() > 3000, "golden files are missing");
}

/// A definition with a deprecated version, and one with a warning of its own.
#[test]
fn deprecated_versions_of_definitions_are_warned_of() {
    let version = |name: &str| json!({"name": name, "served": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let (mut old, mut older, new) = (version("v1"), version("v1beta1"), version("v2"));
    (old["deprecated"], older["deprecated"]) = (json!(true), json!(true));
    older["deprecationWarning"] = json!("use v2");
    let definition = json!({"metadata": {"name": "cases.example.org"}, "spec": {
        "group": "example.org", "scope": "Namespaced", "names": {"plural": "cases", "kind": "Case"},
        "versions": [old, older, new],
    }});
    let mut kinds = Kinds::builtin(BASE);
    kinds.add_crd(&definition).unwrap();
    for (version, wanted) in [
        ("v1", vec!["example.org/v1 Case is deprecated; use example.org/v2 Case"]),
        ("v1beta1", vec!["use v2"]),
        ("v2", vec![]),
    ] {
        let api_version = format!("example.org/{version}");
        let object = json!({"apiVersion": api_version, "kind": "Case", "metadata": {"name": "a"}});
        let resource = kinds.by_kind(&api_version, "Case").unwrap();
        let sent = Submission { resource, subresource: "", namespace: "default", object: &object, old: None };
        assert_eq!(kinds.decode(sent).unwrap().warnings, wanted, "{version}");
    }
}

/// The answers of an API server of 1.36 to objects whose schema leaves open what their scale is.
#[test]
fn scale_of_a_custom_resource_must_be_a_number_where_the_schema_leaves_it_open() {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    let definition = json!({"metadata": {"name": "cases.example.org"}, "spec": {
        "group": "example.org", "scope": "Namespaced", "names": {"plural": "cases", "kind": "Case"},
        "versions": [{"name": "v1", "served": true, "subresources": {"status": {}, "scale": scale},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}],
    }});
    let mut kinds = Kinds::builtin(BASE);
    kinds.add_crd(&definition).unwrap();
    let of_type = |shown: &str, of: &str| {
        format!(
            ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: {shown} is of the type {of}, expected int64"
        )
    };
    for (replicas, wanted) in [
        (json!("x"), vec![of_type("x", "string")]),
        (json!(1.5), vec![of_type("1.5", "float64")]),
        (json!({}), vec![of_type("map[]", "map[string]interface {}")]),
        (json!([]), vec![of_type("[]", "[]interface {}")]),
        (json!(null), vec![of_type("<nil>", "<nil>")]),
        (json!(true), vec![of_type("true", "bool")]),
        (json!(1e20), vec![of_type("1e+20", "float64")]),
        (json!(-1), vec![".spec.replicas: Invalid value: -1: should be a non-negative integer".to_owned()]),
        (json!(0), vec![]),
    ] {
        let line = json!({"sent": {
            "apiVersion": "example.org/v1", "kind": "Case", "metadata": {"name": "a"}, "spec": {"replicas": replicas},
        }});
        let found: Vec<String> = serde_json::from_value(answer(&kinds, &line)["errors"].clone()).unwrap_or_default();
        assert_eq!(found, wanted, "{line}");
    }
}
