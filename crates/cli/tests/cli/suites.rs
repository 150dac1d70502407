//! `palisade test`, as its users meet it.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::Stdio,
};

use super::{Run, palisade, run_in};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/policy-tests");
const MUTATED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/mutated");
const TOOLFORGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/toolforge/profile.yaml");

/// The exit code, standard output and standard error.
fn test(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Run { code, out, err } = run_in(directory, &[&["test"], arguments].concat(), "");
    (code.unwrap(), out, err)
}

/// The example, in a directory of its own, with one text of the policy replaced.
fn example(from: &str, to: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(EXAMPLES).unwrap() {
        let path = entry.unwrap().path();
        let mut text = fs::read_to_string(&path).unwrap();
        if path.ends_with("policy.yaml") {
            assert!(text.contains(from), "{from}");
            text = text.replacen(from, to, 1);
        }
        fs::write(directory.path().join(path.file_name().unwrap()), text).unwrap();
    }
    directory
}

#[test]
fn example_suite_has_full_coverage_and_no_survivors() {
    let arguments = ["--coverage", "--mutate", "--fail-on-survivors=all", "--min-coverage", "100"];
    let (code, out, err) = test(Path::new(EXAMPLES), &arguments);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    insta::assert_snapshot!("example", out);
}

#[test]
fn failing_case_reports_why() {
    let directory = example("replicas <= variables.limit", "replicas < variables.limit + 3");
    let (code, out, _) = test(directory.path(), &["--coverage", "--mutate"]);
    assert_eq!(code, 1);
    insta::assert_snapshot!("failing", out);
}

#[test]
fn low_coverage_or_survivors_fail_on_request() {
    let directory = example("replicas <=", "replicas <=");
    let filter = ["--filter", "scaling up"];
    let (code, out, _) = test(directory.path(), &filter);
    assert_eq!(code, 0);
    assert!(out.ends_with("2 passed, 0 failed\n"), "{out}");
    let (code, _, err) = test(directory.path(), &[&filter[..], &["--min-coverage", "90"]].concat());
    assert_eq!(code, 1);
    assert!(err.contains("the coverage must be at least 90 %"), "{err}");
    let (code, _, err) = test(directory.path(), &[&filter[..], &["--fail-on-survivors"]].concat());
    assert_eq!(code, 1);
    assert!(err.contains("surviving mutants: "), "{err}");
}

#[test]
fn message_survivors_fail_only_with_fail_on_survivors_all() {
    let directory = example("replicas <=", "replicas <=");
    let suite = directory.path().join("deployments.test.yaml");
    let text = fs::read_to_string(&suite).unwrap();
    assert!(text.contains("      reason: Forbidden\n"));
    fs::write(&suite, text.replace("      reason: Forbidden\n", "")).unwrap();
    let (code, out, err) = test(directory.path(), &["--fail-on-survivors"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("mutants: 100.0 % killed"), "{out}");
    assert!(out.contains("mutants of messages: 75.0 % killed (3 of 4)"), "{out}");
    assert!(out.contains("policy.yaml:28:13: deployments validations[0].reason: write `Invalid`"), "{out}");
    let (code, _, err) = test(directory.path(), &["--fail-on-survivors=all"]);
    assert_eq!(code, 1);
    assert!(err.contains("surviving mutants of messages: 1"), "{err}");
    let (code, out, _) = test(directory.path(), &["-o", "json", "--mutate"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["messages"]["killed"], &json["messages"]["total"]), (0, &3.into(), &4.into()));
}

#[test]
fn coverage_gaps_of_a_profile_are_located_until_cases_close_them() {
    let directory = tempfile::tempdir().unwrap();
    let suite = fs::read_to_string(Path::new(MUTATED).join("mutated.test.yaml")).unwrap();
    for file in ["profile.yaml", "labels.yaml", "namespaces.yaml"] {
        fs::copy(Path::new(MUTATED).join(file), directory.path().join(file)).unwrap();
    }
    let (kept, more) = suite.split_once("# What fills the gaps.\n").unwrap();
    let arguments = ["--coverage", "--mutate"];
    let write = |text: &str| fs::write(directory.path().join("a.test.yaml"), text).unwrap();
    write(kept);
    let (code, out, err) = test(directory.path(), &arguments);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    insta::assert_snapshot!("gaps", out);
    write(&format!("{kept}{more}"));
    let all = [&arguments[..], &["--fail-on-survivors=all", "--min-coverage", "100"]].concat();
    let (code, out, err) = test(directory.path(), &all);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
}

#[test]
fn json_junit_and_tap_reports_agree() {
    let directory = example("replicas <= variables.limit", "replicas > 0");
    let arguments = ["-o", "json", "-o", "junit=a.xml", "-o", "tap=a.tap", "--coverage", "--mutate"];
    let (code, out, _) = test(directory.path(), &arguments);
    assert_eq!(code, 1);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let cases = json["suites"][0]["cases"].as_array().unwrap();
    let failed = cases.iter().filter(|case| case["status"] == "failed").count();
    assert_eq!((json["failed"].as_u64(), cases.len()), (Some(failed as u64), 12));
    assert!(json["coverage"]["total"].as_u64() > Some(15) && json["mutation"]["total"].as_u64() > Some(10), "{json}");
    let tap = fs::read_to_string(directory.path().join("a.tap")).unwrap();
    assert_eq!(tap.lines().nth(1), Some("1..12"));
    assert_eq!(tap.lines().filter(|line| line.starts_with("not ok ")).count(), failed);
    let junit = fs::read_to_string(directory.path().join("a.xml")).unwrap();
    let junit = roxmltree::Document::parse(&junit).unwrap();
    let count = |tag: &str| junit.descendants().filter(|node| node.has_tag_name(tag)).count();
    assert_eq!((count("failure"), count("testcase")), (failed, 12));
}

#[test]
fn suite_that_cannot_run_exits_with_code_2() {
    let empty = tempfile::tempdir().unwrap();
    let (code, _, err) = test(empty.path(), &[]);
    assert_eq!(code, 2);
    assert!(err.contains("no suite found"), "{err}");
    let (code, _, err) = test(empty.path(), &["nowhere"]);
    assert_eq!(code, 2, "{err}");
    let directory = example("replicas <=", "replicas <=");
    let suite = directory.path().join("deployments.test.yaml");
    let text = fs::read_to_string(&suite).unwrap();
    fs::write(&suite, text.replace("resources: [cluster.yaml]", "resources: [clusters.yaml]")).unwrap();
    let (code, _, err) = test(directory.path(), &[]);
    assert_eq!(code, 2);
    assert!(err.contains("cannot read \"clusters.yaml\"") && err.contains("deployments.test.yaml:6:"), "{err}");
}

#[test]
fn suites_of_the_example_profiles_pass() {
    for (name, cases) in [("domains", 9), ("shared-ingress", 8), ("tenants", 14), ("toolforge", 9)] {
        let directory = format!("{EXAMPLES}/../{name}");
        let (code, out, err) = test(std::path::Path::new(&directory), &["."]);
        assert_eq!(code, 0, "{name}: {out}{err}");
        assert!(out.contains(&format!("{cases} passed, 0 failed")), "{name}: {out}");
    }
}

#[test]
fn init_writes_a_passing_suite_for_a_profile() {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(TOOLFORGE, directory.path().join("profile.yaml")).unwrap();
    let (code, out, err) = test(directory.path(), &["--init", "profile.yaml"]);
    assert_eq!((code, out.as_str()), (0, "wrote profile.test.yaml\n"), "{err}");
    let (code, out, err) = test(directory.path(), &[]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("21 passed, 0 failed"), "{out}");
    let (code, _, err) = test(directory.path(), &["--init", "profile.yaml"]);
    assert_eq!(code, 2);
    assert!(err.contains("cannot write profile.test.yaml"), "{err}");
}

#[test]
fn watch_mode_reruns_when_a_file_changes() {
    let directory = example("replicas <=", "replicas <=");
    let mut command = palisade(directory.path());
    let mut child = command.args(["test", "--watch"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut summaries = lines.map(Result::unwrap).filter(|line| line.contains(" passed, "));
    assert_eq!(summaries.next().as_deref(), Some("12 passed, 0 failed"));
    // It reports this after it has read the times of the files.
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(notes.any(|note| note.starts_with("waiting for changes")));
    let policy = directory.path().join("policy.yaml");
    let text = fs::read_to_string(&policy).unwrap();
    fs::write(&policy, text.replace("replicas <=", "replicas <")).unwrap();
    let second = summaries.next();
    child.kill().unwrap();
    child.wait().unwrap();
    // Four cases are at the limit, and expect to be allowed.
    assert_eq!(second.as_deref(), Some("8 passed, 4 failed"));
}
