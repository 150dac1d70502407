//! Compares this crate with the API server's own code on custom resource definitions with one change each
//! (`tests/oracle/definitions`): all verdicts, and most texts. Each is created, replaces a valid one, and is updated without
//! a change.
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "golden files are files")]

use std::collections::{BTreeMap, BTreeSet};

use palisade_admission::create::{Refused, create};
use palisade_cel::Minor;
use serde_json::{Value, json};

use crate::oracle::{changed, golden, id};

use Difference::{Text, Verdict};

/// As an API server keeps one that is in use.
fn established(definition: &Value) -> Value {
    let mut old = definition.clone();
    old["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
    old["metadata"]["generation"] = 1.into();
    old
}

/// The API server prints values of its own types: the test compares only the text before and after them.
fn same(wanted: &str, found: &str) -> bool {
    if wanted == found {
        return true;
    }
    let own = ["Invalid value: {\"ID\"", "Invalid value: [{\"Name\"", "Invalid value: {\"Schema\"", "apiextensions."];
    let tail = wanted.rsplit_once("}: ").or_else(|| wanted.rsplit_once("}]: ")).map_or("", |(_, tail)| tail);
    own.iter().any(|own| wanted.contains(own)) && !tail.is_empty() && found.ends_with(tail)
}

/// How an answer differs from that of the API server.
enum Difference {
    /// One of them refuses the definition, and the other one does not.
    Verdict(String),
    /// Both refuse it, with other words.
    Text(String),
}

fn compare(minor: Minor, what: &str, line: &Value, object: &Value, old: Option<&Value>) -> Option<Difference> {
    let wanted_error = line["error"].as_str();
    let causes = match create(minor, object, old) {
        Ok(_) => vec![],
        Err(Refused::Status(status)) if status.code == 400 => {
            let text = format!("{}\n    wanted: {}", status.message, line["error"]);
            return match wanted_error {
                Some(wanted) => (!status.message.ends_with(wanted)).then_some(Text(text)),
                None => Some(Verdict(text)),
            };
        }
        Err(Refused::Status(status)) => status.causes,
        // Nothing is admitted that the API server refuses.
        Err(Refused::NoVerdict(why)) => {
            return (line["panics"] != true && !is_open(&why)).then(|| Verdict(format!("no verdict: {why}")));
        }
    };
    if let Some(error) = wanted_error {
        let text = format!("decodes; wanted: {error}");
        return Some(if causes.is_empty() { Verdict(text) } else { Text(text) });
    }
    if line["panics"] == true {
        return causes.is_empty().then(|| Verdict("a panic is wanted".to_owned()));
    }
    let wanted = line[what].as_array().into_iter().flatten();
    let mut wanted: Vec<(&str, &str)> =
        wanted.map(|cause| (cause[0].as_str().unwrap(), cause[1].as_str().unwrap())).collect();
    let same_verdict = wanted.is_empty() == causes.is_empty();
    let mut differences = Vec::new();
    for cause in &causes {
        match wanted.iter().position(|(field, body)| *field == cause.field && same(body, &cause.body)) {
            Some(at) => drop(wanted.remove(at)),
            None => differences.push(format!("+ {}: {}", cause.field, cause.body)),
        }
    }
    differences.extend(wanted.iter().map(|(field, body)| format!("- {field}: {body}")));
    let text = differences.join("\n    ");
    (!differences.is_empty()).then_some(if same_verdict { Text(text) } else { Verdict(text) })
}

/// Definitions without a verdict: certificates, and URLs that only Go's parser accepts.
fn is_open(why: &str) -> bool {
    ["whether these are certificates", "what Go makes of the URL"].iter().any(|known| why.contains(known))
}

/// Compares all definitions of a minor; unless all are asked for, of those that are as in 1.36 every 31st, and of
/// the others every fifth.
fn compare_all(minor: Minor) {
    let all = std::env::var("MUTANTS").is_ok_and(|which| which == "all");
    let mut bases = BTreeMap::new();
    let (mut valid, mut invalid, mut hit, mut failures) = (0, 0, BTreeSet::new(), Vec::new());
    let (mut asked, mut texts) = (0, Vec::new());
    for (i, (line, own)) in golden("definitions", minor).iter().enumerate() {
        let base = id(line).splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
        if !line["sent"].is_null() {
            bases.insert(base.clone(), line["sent"].clone());
        }
        if !all && i % if *own { 5 } else { 31 } != usize::from(minor.number()) % 5 {
            continue;
        }
        let object = changed(&bases[&base], line);
        let mut fail = |what: &str, old: Option<&Value>| {
            asked += 1;
            let named = |text: &str| format!("{minor} {what} {} {} {}:\n    {text}", id(line), line["at"], line["to"]);
            match compare(minor, what, line, &object, old) {
                None => {}
                Some(Verdict(text)) => failures.push(named(&text)),
                Some(Text(text)) => texts.push(named(&text)),
            }
        };
        fail("causes", None);
        if line["error"].is_null() && line["panics"] != true {
            fail("update", Some(&established(&bases[&base])));
            fail("kept", Some(&established(&object)));
        }
        valid += usize::from(line["causes"].is_null() && line["error"].is_null());
        invalid += usize::from(!line["causes"].is_null());
        for cause in line["causes"].as_array().into_iter().flatten() {
            hit.insert(cause[0].as_str().unwrap().replace(|c: char| c.is_ascii_digit(), ""));
        }
    }
    println!(
        "{minor}: {valid} valid, {invalid} invalid in {} places; {} of {asked} texts differ",
        hit.len(),
        texts.len()
    );
    assert!(valid > 30 && invalid > 80 && hit.len() > 50, "{minor}");
    let count = failures.len();
    failures.truncate(if all { usize::MAX } else { 40 });
    assert!(failures.is_empty(), "{count} verdicts differ:\n{}", failures.join("\n"));
    assert!(texts.len() * 12 < asked, "{} of {asked} texts differ:\n{}", texts.len(), texts.join("\n"));
}

#[test]
fn definitions_are_validated_as_by_kubernetes_1_32() {
    compare_all(Minor::V1_32);
}

#[test]
fn definitions_are_validated_as_by_kubernetes_1_33() {
    compare_all(Minor::V1_33);
}

#[test]
fn definitions_are_validated_as_by_kubernetes_1_34() {
    compare_all(Minor::V1_34);
}

#[test]
fn definitions_are_validated_as_by_kubernetes_1_35() {
    compare_all(Minor::V1_35);
}

#[test]
fn definitions_are_validated_as_by_kubernetes_1_36() {
    compare_all(Minor::V1_36);
}

#[test]
fn definitions_are_validated_as_by_kubernetes_1_37() {
    compare_all(Minor::V1_37);
}
