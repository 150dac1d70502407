//! What the API server's own code makes of objects (`tests/oracle/objects`), compared with what this crate makes of them.

use std::{collections::BTreeMap, fs, io::Read, path::Path};

use flate2::read::GzDecoder;
use palisade_admission::objects::{AdmissionObject, Kinds, Refused, RequestContext, Submission, is_validated};
use palisade_cel::Minor;
use serde_json::Value;

/// A line of a golden file: `tests/oracle/objects.go` says what it has.
type Receipt = Value;

fn golden(minor: Minor) -> Vec<Receipt> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/oracle/objects/golden")
        .join(format!("{minor}.jsonl.gz"));
    let mut text = String::new();
    GzDecoder::new(fs::File::open(&file).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The first place where two values differ.
fn difference(path: &str, wanted: &Value, found: &Value) -> Option<String> {
    match (wanted, found) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            keys.into_iter().find_map(|key| match (a.get(key), b.get(key)) {
                (Some(a), Some(b)) => difference(&format!("{path}.{key}"), a, b),
                (Some(a), None) => Some(format!("{path}.{key}: {a} is missing")),
                (None, Some(b)) => Some(format!("{path}.{key}: {b} should not be there")),
                (None, None) => None,
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(i, (a, b))| difference(&format!("{path}[{i}]"), a, b))
        }
        _ if wanted == found => None,
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => None,
        _ => Some(format!("{path}: {wanted} is wanted, {found} found")),
    }
}

/// What differs for one object, by stage.
fn compare(kinds: &Kinds, line: &Receipt) -> BTreeMap<&'static str, String> {
    let mut out = BTreeMap::new();
    let user = serde_json::json!({"username": "admin", "groups": ["system:masters"]});
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &line["sent"];
    let resource = kinds.by_kind(&text(&object["apiVersion"]), &text(&object["kind"])).unwrap();
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    let sent = Submission { resource, subresource: "", namespace, object, old: None };
    let AdmissionObject { object: decoded, warnings } = match kinds.decode(sent) {
        Ok(received) if line["error"].is_null() => received,
        Ok(_) => {
            out.insert("error", format!("{} is wanted", line["error"]));
            return out;
        }
        Err(Refused::Decode(error)) if error.ends_with(line["error"].as_str().unwrap_or("-")) => return out,
        Err(refused) => {
            out.insert("error", format!("{} is wanted, {refused} found", line["error"]));
            return out;
        }
    };
    let mut decoded = decoded;
    if line["sent"]["apiVersion"] == "example.org/v1" {
        // The oracle of custom resources has no requests.
        decoded["metadata"].as_object_mut().unwrap().remove("namespace");
    }
    let decoded = decoded;
    out.extend(difference("", &line["decoded"], &decoded).map(|text| ("decoded", text)));
    let mut warnings = warnings;
    warnings.sort();
    let mut wanted: Vec<String> = line["warnings"].as_array().into_iter().flatten().map(text).collect();
    wanted.sort();
    if wanted != warnings {
        out.insert("warnings", format!("{wanted:?} is wanted, {warnings:?} found"));
    }
    let sent = Submission { object: &decoded, ..sent };
    if line["created"].is_null() {
        if let Some(wanted) = line["invalid"].as_str() {
            let found = kinds.validate(sent, &decoded).unwrap_err();
            // The API server walks properties in random order.
            let same = match &found {
                Refused::Validation { causes, .. } => {
                    let texts = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.body));
                    found.to_string().len() == wanted.len() && texts.into_iter().all(|text| wanted.contains(&text))
                }
                _ => false,
            };
            if !same {
                out.insert("text", format!("\n  {wanted} is wanted,\n  {found} found"));
            }
        } else if line["sent"]["apiVersion"] == "example.org/v1" {
            out.extend(kinds.validate(sent, &decoded).err().map(|refused| ("valid", refused.to_string())));
        }
        return out;
    }
    match kinds.prepare(sent, &RequestContext { user: &user, ..RequestContext::default() }) {
        Err(refused) => drop(out.insert("created", refused.to_string())),
        Ok(mut created) => {
            let judged = kinds.validate(sent, &created);
            if resource.plural == "services" {
                // The golden files have no allocators.
                for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "ports"] {
                    match line["created"]["spec"].get(key) {
                        Some(value) => created["spec"][key] = value.clone(),
                        None => drop(created["spec"].as_object_mut().unwrap().remove(key)),
                    }
                }
            }
            out.extend(difference("", &line["created"], &created).map(|text| ("created", text)));
            match (judged, line["invalid"].as_str()) {
                // Services are compared with their allocators left out, in `mutants.rs`.
                (Ok(()), Some(wanted)) if is_validated(resource) && resource.plural != "services" => {
                    out.insert("missed", wanted.to_owned());
                }
                (Ok(()), Some(wanted)) => drop(out.insert("lenient", wanted.to_owned())),
                (Err(refused), None) => drop(out.insert("valid", format!("found: {refused}"))),
                (Err(refused), Some(wanted)) if wanted != "invalid" && kinds.minor() <= Minor::V1_36 => {
                    if refused.to_string() != wanted {
                        out.insert("text", format!("\n  {wanted} is wanted,\n  {refused} found"));
                    }
                }
                (Ok(()), None) | (Err(_), Some(_)) => {}
            }
        }
    }
    out
}

#[test]
fn prepared_objects_match_the_api_server() {
    let mut failures = Vec::new();
    for minor in Minor::ALL {
        let mut kinds = Kinds::builtin(minor);
        let mut counts = BTreeMap::<String, (usize, usize)>::new();
        let mut lenient = 0;
        for line in golden(minor) {
            let kind = format!("{} {}", line["sent"]["apiVersion"], line["sent"]["kind"]);
            if line["sent"]["kind"] == "CustomResourceDefinition" {
                let mut definition = line["sent"].clone();
                for version in definition["spec"]["versions"].as_array_mut().unwrap() {
                    // Here the oracle validates by the schema alone; `customs.rs` compares what the strategy adds.
                    version.as_object_mut().unwrap().remove("subresources");
                }
                kinds.add_crd(&definition).unwrap();
                continue;
            }
            let differences = compare(&kinds, &line);
            let count = counts.entry(kind).or_default();
            count.0 += 1;
            count.1 += usize::from(differences.keys().all(|stage| *stage == "lenient"));
            for (stage, text) in differences {
                if stage == "lenient" {
                    lenient += 1;
                } else {
                    failures.push(format!("{minor} {} {stage}: {text}", line["id"]));
                }
            }
        }
        println!("{minor}: {counts:?}, {lenient} invalid ones are not seen to be");
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
