//! What the API server's own code says of definitions with rules, and of objects of their kinds (`tests/oracle/rules`),
//! compared with what this crate says.
#![allow(clippy::disallowed_methods, reason = "golden files are files")]

use std::{collections::BTreeMap, fs, io::Read, path::Path, process::Command};

use flate2::read::GzDecoder;
use palisade_admission::{
    create::{FieldError, Refused, create},
    objects::{self, Kinds, RequestContext, Submission},
};
use palisade_cel::{
    Environment, Minor, Mode, ResultType,
    estimate::estimate,
    schema::{DeclType, with_metadata},
    types::Type,
};
use serde_json::Value as Json;

/// Cases whose answers are known to differ, with the reason.
const DIFFERENT: &[(&str, &str)] = &[(
    "errors/37/the-root-with-a-status/0",
    "the API server shows the whole schema in the words of its internal type",
)];

fn golden(minor: Minor) -> Vec<Json> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/oracle/rules/golden/{minor}.jsonl.gz"));
    let mut text = String::new();
    GzDecoder::new(fs::File::open(&file).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn lines(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(|error| format!("{}: {}", error.field, error.body)).collect()
}

/// The errors of the API server, and the same with those of this crate if they are the same but for their order, which is
/// random in Go where maps are walked.
fn compare(what: &str, wanted: &Json, found: &[String], failures: &mut Vec<String>) {
    let wanted: Vec<String> = serde_json::from_value(wanted.clone()).unwrap_or_default();
    let sorted = |texts: &[String]| {
        let mut texts = texts.to_vec();
        texts.sort();
        texts
    };
    let random = wanted.is_sorted();
    if wanted != found && !(random && sorted(&wanted) == sorted(found)) {
        failures.push(format!("{what}\n  wanted: {wanted:#?}\n  found:  {found:#?}"));
    }
}

#[test]
fn crds_with_rules_are_validated_like_the_api_server() {
    let mut failures = Vec::new();
    let mut count = 0;
    for minor in Minor::ALL {
        for line in golden(minor) {
            let id = format!("{minor} {}", line["id"].as_str().unwrap());
            count += 1;
            let found = match create(minor, &line["crd"], line.get("old")) {
                Ok(_) => Vec::new(),
                Err(Refused::Status(status)) => lines(&status.causes),
                Err(Refused::NoVerdict(why)) => vec![format!("no verdict: {why}")],
            };
            compare(&id, &line["errors"], &found, &mut failures);
        }
    }
    report(&failures);
    assert!(count > 5 * 300, "golden files are missing");
}

#[test]
fn custom_resources_with_rules_are_validated_like_the_api_server() {
    let mut failures = Vec::new();
    let mut count = 0;
    for minor in Minor::ALL {
        for line in golden(minor) {
            let Some(cases) = line["objects"].as_array() else { continue };
            let mut kinds = Kinds::builtin(minor);
            kinds.add_crd(&line["crd"]).unwrap();
            let resource = kinds.by_kind("example.org/v1", "Case").unwrap();
            let sent = Submission { resource, subresource: "", namespace: "default", object: &Json::Null, old: None };
            for (index, case) in cases.iter().enumerate() {
                let id = format!("{minor} {}/{index} {} {}", line["id"].as_str().unwrap(), case["sent"], case["old"]);
                count += 1;
                let decode = |object: &Json| kinds.decode(Submission { object, ..sent }).unwrap().object;
                let around = RequestContext::default();
                let old = case.get("old").map(|old| kinds.stored(resource, "", "default", old, &around).unwrap());
                let object = decode(&case["sent"]);
                let sent = Submission { object: &object, old: old.as_ref(), ..sent };
                let object = kinds.prepare(sent, &around).unwrap();
                let found = match kinds.validate(sent, &object) {
                    Ok(()) => Vec::new(),
                    Err(objects::Refused::Validation { causes, .. }) => lines(&causes),
                    Err(other) => vec![other.to_string()],
                };
                // Of what is refused nothing is warned.
                let refused = !found.is_empty();
                compare(&id, &case["errors"], &found, &mut failures);
                if refused {
                    continue;
                }
                let mut warnings = kinds.warnings(sent, &object);
                warnings.sort();
                compare(&format!("warnings of {id}"), &case["warnings"], &warnings, &mut failures);
            }
        }
    }
    report(&failures);
    assert!(count > 5 * 150, "golden files are missing");
}

/// Definitions that API servers are known to take: those in `crds/`, and those of the Gateway API, with many rules (which
/// the tests of `k8s.io/apiextensions-apiserver` have; skipped where that is not in the Go module cache).
#[test]
fn well_known_crds_are_accepted() {
    let own = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds")).unwrap();
    let own = own.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    let own = own.filter(|text| text.contains("kind: CustomResourceDefinition"));
    let mut definitions: Vec<Json> = own.map(|text| serde_saphyr::from_str(&text).unwrap()).collect();
    assert!(!definitions.is_empty(), "there are definitions in crds/");
    let cache = Command::new("go").args(["env", "GOMODCACHE"]).output().map(|output| output.stdout).unwrap_or_default();
    let cache = String::from_utf8(cache).unwrap();
    let file =
        "k8s.io/apiextensions-apiserver@v0.36.1/test/integration/ratcheting_test_cases/crds/standard-install.yaml";
    match fs::read_to_string(Path::new(cache.trim()).join(file)) {
        Ok(text) => {
            let documents = text.split("\n---").filter(|document| document.contains("kind: CustomResourceDefinition"));
            definitions.extend(documents.map(|document| serde_saphyr::from_str::<Json>(document).unwrap()));
        }
        Err(error) => println!("skipped {file}: {error}"),
    }
    for minor in Minor::ALL {
        for definition in &definitions {
            let said = create(minor, definition, None);
            assert!(said.is_ok(), "{minor} {}: {said:?}", definition["metadata"]["name"]);
        }
    }
}

/// The estimates of the rules of a schema and all below it, by their place.
fn costs(schema: &Json, typed: &Json, minor: Minor, path: &str, found: &mut BTreeMap<String, [u64; 3]>) {
    let rules = schema["x-kubernetes-validations"].as_array();
    if let (Some(rules), Some(of)) = (rules, DeclType::new(typed, minor)) {
        let (environment, self_type) = of.declare(Environment::kubernetes(minor, Mode::New), "selfType");
        let environment = environment.declare("self", self_type.clone());
        for (index, rule) in rules.iter().enumerate() {
            let old = if rule["optionalOldSelf"] == true {
                Type::Optional(self_type.clone().into())
            } else {
                self_type.clone()
            };
            let environment = environment.clone().declare("oldSelf", old);
            let cost = |key: &str, result: ResultType| {
                let source = rule[key].as_str().filter(|source| !source.trim().is_empty())?;
                environment.compile(source, result).ok()?;
                Some(estimate(&environment.check(source).ok()?, minor, &of).max)
            };
            if let Some(of_rule) = cost("rule", ResultType::Bool) {
                let of_message = cost("messageExpression", ResultType::String).unwrap_or(0);
                found.insert(format!("{path}[{index}]"), [of_rule, of.max_cardinality(), of_message]);
            }
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let typed = typed["properties"].get(name).unwrap_or(property);
        costs(property, typed, minor, &format!("{path}.{name}"), found);
    }
    for key in ["items", "additionalProperties"] {
        if schema[key].is_object() {
            costs(&schema[key], &typed[key], minor, &format!("{path}.{key}"), found);
        }
    }
}

#[test]
fn rule_cost_estimates_match_the_api_server() {
    let mut failures = Vec::new();
    let mut count = 0;
    for minor in Minor::ALL {
        for line in golden(minor) {
            let wanted: BTreeMap<String, [u64; 3]> = serde_json::from_value(line["costs"].clone()).unwrap_or_default();
            count += wanted.len();
            let schema = &line["crd"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let mut found = BTreeMap::new();
            costs(schema, &with_metadata(schema, true, minor), minor, "", &mut found);
            if wanted != found && line.get("costs").is_some() {
                failures.push(format!("{minor} {}\n  wanted: {wanted:?}\n  found:  {found:?}", line["id"]));
            }
        }
    }
    report(&failures);
    assert!(count > 5 * 200, "golden files are missing");
}

/// Differences that are not listed.
fn report(failures: &[String]) {
    let listed = |failure: &&String| !DIFFERENT.iter().any(|(id, _)| failure.contains(id));
    let failures: Vec<_> = failures.iter().filter(listed).collect();
    for failure in failures.iter().take(40) {
        println!("{failure}");
    }
    assert!(failures.is_empty(), "{} differences, see above", failures.len());
}
