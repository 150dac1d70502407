//! The library of policies: each is free of findings, and its suite is green and complete on each minor.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    thread,
};

use palisade_cel::Minor;
use palisade_cli::{CommandOutput, captured};
use serde_json::Value as Json;

const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies");
/// In percent, of mutants of expressions, in each policy.
const LEAST_KILLED: f64 = 90.0;

/// The directories of policies.
fn policies() -> Vec<PathBuf> {
    let entries = fs::read_dir(LIBRARY).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn run(arguments: &[&str]) -> CommandOutput {
    captured(std::iter::once("palisade").chain(arguments.iter().copied()).map(Into::into))
}

fn text(directory: &Path, file: &str) -> String {
    fs::read_to_string(directory.join(file)).unwrap_or_else(|error| panic!("{}/{file}: {error}", directory.display()))
}

/// Judges each policy, several at once, and panics with all that is wrong.
fn each(judge: impl Fn(&Path) -> Result<String, String> + Sync) {
    let policies = policies();
    assert!(policies.len() >= 30, "only {}", policies.len());
    let middle = policies.len() / 2;
    let results: Vec<_> = thread::scope(|scope| {
        let halves = [&policies[..middle], &policies[middle..]];
        let judge = &judge;
        let runs = halves.map(|half| scope.spawn(move || half.iter().map(|path| judge(path)).collect::<Vec<_>>()));
        runs.into_iter().flat_map(|run| run.join().unwrap()).collect()
    });
    let mut wrong = Vec::new();
    for (path, result) in policies.iter().zip(results) {
        let name = path.file_name().unwrap().display();
        match result {
            Ok(said) if said.is_empty() => {}
            Ok(said) => println!("{name}: {said}"),
            Err(why) => wrong.push(format!("{name}: {why}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What lint finds in texts that are one cluster.
fn findings(texts: &[&str], minor: Minor) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    for (index, text) in texts.iter().enumerate() {
        fs::write(directory.path().join(format!("{index}.yaml")), text).unwrap();
    }
    let path = directory.path().to_string_lossy();
    let version = minor.to_string();
    let CommandOutput { code, out, err } = run(&["lint", "--kube-version", &version, "--fail-on", "info", &path]);
    if (code, err.as_str()) == (0, "") { Ok(()) } else { Err(format!("{minor}: {out}{err}")) }
}

#[test]
fn library_is_free_of_lint_findings() {
    let definition = fs::read_to_string(Path::new(LIBRARY).join("parameters.crd.yaml")).unwrap();
    each(|path| {
        let (policy, binding) = (text(path, "policy.yaml"), text(path, "binding.yaml"));
        let parameters = fs::read_to_string(path.join("parameters.yaml")).unwrap_or_default();
        // A binding that only warns lets many rules say nothing.
        let denying = binding.replace("[Warn, Audit]", "[Deny]");
        if denying == binding {
            return Err("binding.yaml is to begin with validationActions: [Warn, Audit]".to_owned());
        }
        let own = if parameters.is_empty() { vec![] } else { vec![definition.as_str(), &parameters] };
        for minor in Minor::ALL {
            findings(&[&own[..], &[&policy, &denying]].concat(), minor)?;
        }
        findings(&[&own[..], &[&policy, &binding]].concat(), Minor::DEFAULT)?;
        Ok(String::new())
    });
}

#[test]
fn library_suites_pass_and_cover_everything_on_each_minor() {
    each(|path| {
        let place = path.to_string_lossy();
        let mut said = String::new();
        for minor in Minor::ALL {
            let version = minor.to_string();
            let mut arguments =
                vec!["test", "--jobs", "1", "--kube-version", &version, "--coverage", "-o", "json", &place];
            // The expressions are the same on each minor, and so are their mutants.
            let mutate = minor == Minor::DEFAULT;
            if mutate {
                arguments.push("--mutate");
            }
            let CommandOutput { code, out, err } = run(&arguments);
            if (code, err.as_str()) != (0, "") {
                let CommandOutput { out, .. } = run(&["test", "--kube-version", &version, &place]);
                return Err(format!("{minor}: {out}{err}"));
            }
            let report: Json = serde_json::from_str(&out).unwrap();
            if report["coverage"]["covered"] != report["coverage"]["total"] {
                let CommandOutput { out, .. } = run(&["test", "--kube-version", &version, "--coverage", &place]);
                return Err(format!("{minor}: {out}"));
            }
            if mutate {
                let score = |of: &str| format!("{} of {}", report[of]["killed"], report[of]["total"]);
                said = format!("mutants killed: {}, of messages {}", score("mutation"), score("messages"));
                if report["mutation"]["percent"].as_f64().unwrap() < LEAST_KILLED {
                    let CommandOutput { out, .. } = run(&["test", "--mutate", &place]);
                    return Err(out);
                }
            }
        }
        Ok(said)
    });
}

/// Each row of `ways.md` names a case of the suite, and the answer that this case expects.
#[test]
fn library_ways_around_policies_have_cases() {
    each(|path| {
        let suite: Json = serde_saphyr::from_str(&text(path, "palisade-test.yaml")).unwrap();
        let verdicts = verdicts(&suite);
        let page = text(path, "ways.md");
        let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
        if rows.len() < 3 {
            return Err("ways.md has fewer than three rows".to_owned());
        }
        let mut wrong = Vec::new();
        for row in rows {
            let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            let [_, answer, why, case] = cells[..] else {
                wrong.push(format!("not four cells: {row}"));
                continue;
            };
            let expected = match verdicts.get(case).map(String::as_str) {
                Some("allow") => "allowed",
                Some("deny") => "denied",
                _ => "a case with a verdict",
            };
            if answer != expected || why.is_empty() {
                wrong.push(format!("{case:?} is to be {expected}: {row}"));
            }
        }
        if wrong.is_empty() { Ok(String::new()) } else { Err(wrong.join("; ")) }
    });
}

/// The verdicts that a suite expects, by the names of cases as `palisade test` prints them.
fn verdicts(suite: &Json) -> BTreeMap<String, String> {
    let verdict = |expect: &Json| expect.as_str().or(expect["verdict"].as_str()).map(str::to_owned);
    let mut found = BTreeMap::new();
    for case in suite["cases"].as_array().into_iter().flatten() {
        let name = case["name"].as_str().unwrap_or_default();
        let of_all = verdict(&case["expect"]);
        for variant in case["variants"].as_array().into_iter().flatten() {
            let expected = verdict(&variant["expect"]).or_else(|| of_all.clone());
            let full = format!("{name}: {}", variant["name"].as_str().unwrap_or_default());
            found.extend(expected.map(|expected| (full, expected)));
        }
        found.extend(of_all.map(|expected| (name.to_owned(), expected)));
    }
    found
}

/// What users copy is what the suites test.
#[test]
fn library_files_belong_together() {
    let severities = ["low", "medium", "high", "critical"];
    let definition = fs::read_to_string(Path::new(LIBRARY).join("parameters.crd.yaml")).unwrap();
    each(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let json = |file| -> Json { serde_saphyr::from_str(&text(path, file)).unwrap() };
        let (policy, binding, suite) = (json("policy.yaml"), json("binding.yaml"), json("palisade-test.yaml"));
        let annotation = |key: &str| {
            let key = format!("policies.toolsecurity.dev/{key}");
            policy["metadata"]["annotations"][key.as_str()].as_str().unwrap_or_default().to_owned()
        };
        let mut wrong = Vec::new();
        let mut demand = |holds: bool, what: &str| {
            if !holds {
                wrong.push(what.to_owned());
            }
        };
        let names = [&policy["metadata"]["name"], &binding["metadata"]["name"], &binding["spec"]["policyName"]];
        demand(names.iter().all(|found| **found == *name), "policy and binding have the name of the directory");
        for key in ["title", "category", "description"] {
            demand(!annotation(key).is_empty(), &format!("there is no annotation {key}"));
        }
        demand(severities.contains(&annotation("severity").as_str()), "the severity is none");
        let minors = format!("{}-{}", Minor::OLDEST, Minor::NEWEST);
        demand(annotation("minors") == minors, "the minors are those that are tested");
        let spec = &policy["spec"];
        demand(spec["failurePolicy"].is_string(), "failurePolicy is left to the default");
        let written = text(path, "policy.yaml");
        let (before, _) = written.split_once("\n  failurePolicy: ").unwrap_or_default();
        demand(
            before.lines().last().is_some_and(|line| line.starts_with("  # ")),
            "no comment justifies failurePolicy",
        );
        for validation in spec["validations"].as_array().into_iter().flatten() {
            let says = ["message", "messageExpression"].iter().any(|key| validation[key].is_string());
            demand(says, "a validation has no message");
        }
        // The suite binds the policy as binding.yaml does, but for what happens.
        let bound = suite["policies"].as_array().into_iter().flatten().find(|one| one["kind"] == binding["kind"]);
        match bound {
            Some(bound) => {
                let reference = |of: &Json| (of["spec"]["policyName"].clone(), of["spec"]["paramRef"].clone());
                demand(reference(bound) == reference(&binding), "the suite binds other parameters than binding.yaml");
            }
            None => demand(suite["generateBindings"] == true, "the suite binds nothing"),
        }
        let has_parameters = path.join("parameters.yaml").exists();
        demand(spec["paramKind"].is_object() == has_parameters, "parameters.yaml belongs to a paramKind");
        if has_parameters {
            let parameters = json("parameters.yaml");
            demand(
                binding["spec"]["paramRef"]["name"] == parameters["metadata"]["name"],
                "the binding names other parameters",
            );
            demand(
                binding["spec"]["paramRef"]["parameterNotFoundAction"] == "Deny",
                "without parameters it fails open",
            );
            for key in parameters["spec"].as_object().into_iter().flatten().map(|(key, _)| key) {
                demand(definition.contains(&format!("              {key}:\n")), "a parameter that is not defined");
            }
        }
        let files: BTreeSet<_> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        for file in ["good.yaml", "bad.yaml"] {
            demand(
                files.contains(file) && text(path, "palisade-test.yaml").contains(file),
                "good.yaml and bad.yaml are tested",
            );
        }
        if wrong.is_empty() { Ok(String::new()) } else { Err(wrong.join("; ")) }
    });
}
