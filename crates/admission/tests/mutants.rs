//! What the API server's own code says of objects with one change each (`tests/oracle/mutants`), compared with what this
//! crate says: why one cannot be decoded, what is wrong with it, and what is warned of.
#![allow(clippy::disallowed_methods, reason = "golden files are files")]

use std::collections::{BTreeMap, BTreeSet};

use palisade_admission::objects::{AdmissionObject, Kinds, Refused, RequestContext, Submission, is_validated};
use palisade_cel::Minor;
use serde_json::{Value, json};

use crate::oracle::{changed, golden, id, lines};

/// Until 1.33 the server shows structs as Go writes them, with addresses of its memory: what is before and after is
/// compared.
fn same(wanted: &str, found: &str) -> bool {
    let is_struct = ["resource.Quantity{", ": core.", ": apps.", ": batch.", ": networking.", ": v1.", "(0x)"];
    if !is_struct.iter().any(|part| wanted.contains(part)) {
        return wanted == found;
    }
    let tail = wanted.rsplit_once("}: ").map_or("", |(_, tail)| tail);
    wanted.split(": ").next() == found.split(": ").next() && found.ends_with(tail)
}

/// The golden files have no allocators of addresses and ports, only what comes before these.
fn without_allocators(prepared: &mut Value, decoded: &Value) {
    for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "ports", "healthCheckNodePort"] {
        match decoded["spec"].get(key) {
            Some(value) => prepared["spec"][key] = value.clone(),
            None => drop(prepared["spec"].as_object_mut().unwrap().remove(key)),
        }
    }
    let spec = &mut prepared["spec"];
    if spec["clusterIPs"].is_null() && spec["clusterIP"].is_string() {
        spec["clusterIPs"] = json!([spec["clusterIP"]]);
    }
}

/// An empty list where nothing may be set, which is refused by the server and here is as if nothing were there: owners in
/// a template, further groups on Windows, claims of the resources of a pod; and lists of items, until 1.33.
const EMPTY: &[&str] =
    &["pods/0/7e47f27b", "pods/3/a9bc8db4", "workloads/9/dd9b2cc9", "pods/2/4990ec6f", "pods/2/2b6f3f46"];

/// Is there an empty list or map in a value? What is absent and what is empty are one thing to policies and in JSON, and
/// two in Go, where the texts of some mistakes show which it is.
fn has_empty(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty() || list.iter().any(has_empty),
        Value::Object(map) => map.is_empty() || map.values().any(has_empty),
        _ => false,
    }
}

/// What of a line is answered in another way.
fn difference(kinds: &Kinds, line: &Value, object: &Value) -> Option<String> {
    let user = json!({"username": "admin", "groups": ["system:masters"]});
    let around = RequestContext { user: &user, ..RequestContext::default() };
    let text = |key: &str| object[key].as_str().unwrap();
    let resource = kinds.by_kind(text("apiVersion"), text("kind"))?;
    let sent = Submission { resource, subresource: "", namespace: "default", object, old: None };
    let wanted_error = line["error"].as_str();
    let AdmissionObject { object: decoded, mut warnings } = match kinds.decode(sent) {
        Ok(_) if wanted_error.is_some() => return Some(format!("decodes; wanted: {}", line["error"])),
        Ok(received) => received,
        Err(Refused::Decode(error)) if wanted_error.is_some_and(|wanted| error.ends_with(wanted)) => return None,
        Err(refused) => return Some(format!("found: {refused}\n    wanted: {}", line["error"])),
    };
    let sent = Submission { object: &decoded, ..sent };
    let mut prepared = match kinds.prepare(sent, &around) {
        Ok(prepared) => prepared,
        Err(refused) => return Some(refused.to_string()),
    };
    if resource.plural == "services" {
        without_allocators(&mut prepared, &decoded);
    }
    let mut wanted: Vec<(&str, &str)> = line["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cause| (cause[0].as_str().unwrap(), cause[1].as_str().unwrap()))
        .collect();
    let causes = match kinds.validate(sent, &prepared) {
        Ok(()) => vec![],
        Err(Refused::Validation { causes, .. }) => causes,
        Err(Refused::NoVerdict(_)) => return None,
        Err(other) => return Some(other.to_string()),
    };
    if line["panics"] == true {
        return Some("a panic is wanted".to_owned());
    }
    let mut extra = Vec::new();
    for cause in &causes {
        match wanted.iter().position(|(field, body)| *field == cause.field && same(body, &cause.body)) {
            Some(at) => drop(wanted.remove(at)),
            None => extra.push(format!("+ {}: {}", cause.field, cause.body)),
        }
    }
    if !wanted.is_empty() || !extra.is_empty() {
        // Which texts say what is empty is not compared, and few refuse what is empty and not what is absent.
        if has_empty(&line["to"]) && !line["causes"].is_null() && (!causes.is_empty() || EMPTY.contains(&id(line))) {
            return None;
        }
        extra.extend(wanted.iter().map(|(field, body)| format!("- {field}: {body}")));
        return Some(extra.join("\n    "));
    }
    if !causes.is_empty() {
        return None;
    }
    warnings.extend(kinds.warnings(sent, &prepared));
    warnings.sort();
    let wanted: Vec<_> = line["warnings"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|w| w.as_str().unwrap())
        // Whether a key fits its certificate is not looked at.
        .filter(|warning| !warning.starts_with("tls: "))
        .collect();
    (wanted != warnings && !EMPTY.contains(&id(line))).then(|| format!("warned: {warnings:?}\n    wanted: {wanted:?}"))
}

/// Compares all objects of a minor; of those that are as in 1.36 a third, unless all are asked for.
#[expect(clippy::disallowed_methods, reason = "which lines are compared is asked of the environment")]
fn compare(minor: Minor) {
    let all = std::env::var("MUTANTS").is_ok_and(|which| which == "all");
    let kinds = Kinds::builtin(minor);
    let mut bases = BTreeMap::new();
    let (mut valid, mut invalid, mut undecodable, mut hit) = (0, 0, 0, BTreeSet::new());
    let mut failures = Vec::new();
    for (i, (line, own)) in golden("mutants", minor).iter().enumerate() {
        let base = id(line).splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
        if !line["sent"].is_null() {
            bases.insert(base.clone(), line["sent"].clone());
        }
        if !own && !all && i % 3 != usize::from(minor.number()) % 3 {
            continue;
        }
        let object = changed(&bases[&base], line);
        if let Some(text) = difference(&kinds, line, &object) {
            failures.push(format!("{minor} {} {} {}:\n    {text}", id(line), line["at"], line["to"]));
        }
        let causes = line["causes"].as_array().map_or(0, Vec::len);
        valid += usize::from(line["error"].is_null() && causes == 0);
        invalid += usize::from(causes > 0);
        undecodable += usize::from(!line["error"].is_null());
        for cause in line["causes"].as_array().into_iter().flatten() {
            hit.insert(cause[0].as_str().unwrap().replace(|c: char| c.is_ascii_digit(), ""));
        }
    }
    println!(
        "{minor}: {} objects; {valid} valid, {invalid} invalid in {} places, {undecodable} not decoded",
        bases.len(),
        hit.len()
    );
    assert!(valid > 500 && invalid > 500 && undecodable > 300, "{minor}");
    let count = failures.len();
    failures.truncate(if all { usize::MAX } else { 40 });
    assert!(failures.is_empty(), "{count} differ:\n{}", failures.join("\n"));
}

#[test]
fn validation_matches_kubernetes_1_32() {
    compare(Minor::V1_32);
}

#[test]
fn validation_matches_kubernetes_1_33() {
    compare(Minor::V1_33);
}

#[test]
fn validation_matches_kubernetes_1_34() {
    compare(Minor::V1_34);
}

#[test]
fn validation_matches_kubernetes_1_35() {
    compare(Minor::V1_35);
}

#[test]
fn validation_matches_kubernetes_1_36() {
    compare(Minor::V1_36);
}

#[test]
fn validation_matches_kubernetes_1_37() {
    compare(Minor::V1_37);
}

#[test]
fn every_validated_kind_has_golden_objects() {
    let kinds = Kinds::builtin(Minor::V1_36);
    let mut seen = BTreeSet::new();
    for line in lines("mutants", Minor::V1_36).iter().filter(|line| !line["sent"].is_null()) {
        let text = |key: &str| line["sent"][key].as_str().unwrap();
        let resource = kinds.by_kind(text("apiVersion"), text("kind")).unwrap();
        seen.insert((resource.group.clone(), resource.plural.clone()));
    }
    let wanted: BTreeSet<_> = kinds
        .resources()
        .iter()
        .filter(|resource| is_validated(resource))
        .map(|resource| (resource.group.clone(), resource.plural.clone()))
        .collect();
    assert_eq!(seen, wanted);
}
