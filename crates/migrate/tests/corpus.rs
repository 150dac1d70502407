//! `PodSecurityPolicies` of other projects: each becomes a profile that is accepted, and pods that those projects say
//! are allowed and denied get these verdicts.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "all of this is tests, and some read files")]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "migrate/common.rs"]
mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use common::{defaulted, denial, judge, migrate, yaml};
use serde_json::{Value as Json, json};

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    palisade_needs::run(vec![
        palisade_needs::corpus(&root, "psp")
            .trial("every_policy_becomes_a_profile", |path| every_policy_becomes_a_profile(&path)),
        palisade_needs::corpus(&root, "psp-cases")
            .trial("allowed_pods_pass_and_others_do_not", |path| allowed_pods_pass_and_others_do_not(&path)),
    ])
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The pod in a file. Some files have only the path of another file, as a checkout without links has it.
fn pod(path: &Path) -> Option<Json> {
    let text = fs::read_to_string(path).ok()?;
    let text = if text.starts_with("../") { fs::read_to_string(path.parent()?.join(text.trim())).ok()? } else { text };
    let mut pod = yaml(&text);
    // The API server does both before it asks anybody: null is what absent is, and in the node's network a port is
    // the node's.
    without_nulls(&mut pod);
    if pod["spec"]["hostNetwork"] == json!(true) {
        for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
            for port in container.get_mut("ports").and_then(Json::as_array_mut).into_iter().flatten() {
                port["hostPort"] = port["containerPort"].clone();
            }
        }
    }
    Some(pod)
}

fn without_nulls(value: &mut Json) {
    match value {
        Json::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Json::Array(elements) => elements.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

fn every_policy_becomes_a_profile(directory: &Path) {
    let mut count = 0;
    for path in entries(directory).iter().filter(|path| path.extension().is_some_and(|extension| extension == "yaml")) {
        let migrated = migrate(&yaml(&fs::read_to_string(path).unwrap()));
        judge(&migrated);
        println!("{}", path.file_name().unwrap().display());
        for note in &migrated.notes {
            println!("    {note}");
        }
        count += 1;
    }
    assert!(count > 0);
}

fn allowed_pods_pass_and_others_do_not(directory: &Path) {
    let mut wrong = 0;
    println!("{:34}{:12}{:22}", "policy", "pod", "after what is defaulted");
    for case in entries(directory) {
        let migrated = migrate(&yaml(&fs::read_to_string(case.join("psp.yaml")).unwrap()));
        let judge = judge(&migrated);
        for (name, allowed) in [("allowed", true), ("disallowed", false)] {
            let shown = case.file_name().unwrap().display().to_string();
            let Some(written) = pod(&case.join(format!("{name}.yaml"))) else {
                println!("{shown:34}{name:12}not in the collection");
                continue;
            };
            let denial = denial(&judge, &defaulted(&migrated, &written));
            let says = if denial.is_none() == allowed { "" } else { "WRONG" };
            println!("{shown:34}{name:12}{:22}{says}", denial.as_deref().unwrap_or("admitted"));
            wrong += usize::from(denial.is_none() != allowed);
        }
    }
    assert_eq!(wrong, 0);
}
