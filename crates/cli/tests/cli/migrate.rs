//! `palisade migrate psp`, as its users meet it.

use std::path::Path;

use super::{Run, directory, run_in};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/psp");

/// The smallest policy, to be changed.
const POLICY: &str = "\
apiVersion: policy/v1beta1
kind: PodSecurityPolicy
metadata:
  name: small
  annotations:
    seccomp.security.alpha.kubernetes.io/allowedProfileNames: '*'
spec:
  privileged: false
  volumes: [emptyDir]
  runAsUser: {rule: RunAsAny}
  fsGroup: {rule: RunAsAny}
  supplementalGroups: {rule: RunAsAny}
  seLinux: {rule: RunAsAny}
";

/// Runs it in a directory.
fn psp(directory: &Path, arguments: &[&str], input: &str) -> Run {
    run_in(directory, &[&["migrate", "psp"], arguments].concat(), input)
}

/// Runs it on the text of a file.
fn migrate(text: &str, arguments: &[&str]) -> Run {
    psp(directory(&[("p.yaml", text)]).path(), &[&["p.yaml"], arguments].concat(), "")
}

/// Asserts that the policy with one text replaced by another is wrong, and that all of `expected` is said.
fn wrong(from: &str, to: &str, expected: &[&str]) {
    assert!(POLICY.contains(from), "{from}");
    let run = migrate(&POLICY.replacen(from, to, 1), &[]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{}", run.err);
    for expected in expected {
        assert!(run.err.contains(expected), "{expected:?} is not in:\n{}", run.err);
    }
}

#[test]
fn example_psps_migrate_to_profiles() {
    let run = psp(Path::new(EXAMPLES), &["tools.yaml"], "");
    assert_eq!(run.code, Some(0), "{}", run.err);
    insta::assert_snapshot!("tools", run.out);
    insta::assert_snapshot!("tools_said", run.err);
}

#[test]
fn migrated_profiles_can_be_rendered() {
    let run = psp(Path::new(EXAMPLES), &["tools.yaml", "--stage", "Deny"], "");
    let rendered = run_in(directory(&[("profiles.yaml", run.out)]).path(), &["render", "profiles.yaml"], "");
    assert_eq!(rendered.code, Some(0), "{}", rendered.err);
    assert_eq!(rendered.out.matches("kind: ValidatingAdmissionPolicy\n").count(), 4);
    assert!(rendered.out.contains("- Deny"));
}

#[test]
fn json_and_yaml_output_are_equal() {
    let yaml = migrate(POLICY, &[]).out;
    let yaml: Vec<serde_json::Value> = serde_saphyr::from_multiple(&yaml).unwrap();
    let json: serde_json::Value = serde_json::from_str(&migrate(POLICY, &["-o", "json"]).out).unwrap();
    assert_eq!(json["items"], serde_json::Value::from(yaml));
}

#[test]
fn migrate_applies_selector_and_stage_options() {
    let labelled = migrate(POLICY, &["--namespace-selector", "tenancy=tool,tier=a", "--stage", "Warn", "-o", "json"]);
    let list: serde_json::Value = serde_json::from_str(&labelled.out).unwrap();
    let spec = &list["items"][0]["spec"];
    assert_eq!(spec["namespaceSelector"], serde_json::json!({"matchLabels": {"tenancy": "tool", "tier": "a"}}));
    assert_eq!(spec["enforcement"]["pods"], "Warn");
    // Unless told otherwise, nothing is denied.
    let list: serde_json::Value = serde_json::from_str(&migrate(POLICY, &["-o", "json"]).out).unwrap();
    assert_eq!(list["items"][0]["spec"]["enforcement"]["pods"], "Audit");
    assert_eq!(list["items"][0]["spec"]["baseline"], "Privileged");
}

#[test]
fn strict_fails_if_the_migration_is_not_equivalent() {
    let strict = ["--strict", "--namespace-selector", "a=b"];
    let run = migrate(POLICY, &strict);
    assert_eq!(run.code, Some(0), "{}", run.err);
    // What is defaulted as before is no difference.
    let run = migrate(&POLICY.replace("volumes", "readOnlyRootFilesystem: true\n  volumes"), &strict);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.contains("[defaulted] spec.readOnlyRootFilesystem"), "{}", run.out);
    let run = migrate(&POLICY.replace("volumes", "requiredDropCapabilities: [ALL]\n  volumes"), &strict);
    assert_eq!(run.code, Some(1));
    assert!(run.out.contains("kind: ToolSecurityProfile"), "it is printed all the same");
    for expected in
        ["stricter: spec.requiredDropCapabilities", "p.yaml:9:29", "--strict: the profiles differ from the policies"]
    {
        assert!(run.err.contains(expected), "{expected:?} is not in:\n{}", run.err);
    }
}

#[test]
fn migrate_reads_lists_files_and_standard_input() {
    let policy: serde_json::Value = serde_saphyr::from_str(POLICY).unwrap();
    let mut untyped = policy.clone();
    untyped.as_object_mut().unwrap().retain(|key, _| key != "kind" && key != "apiVersion");
    untyped["metadata"]["name"] = "second".into();
    let lists = [
        serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [{"kind": "Pod", "apiVersion": "v1"}, policy]}),
        serde_json::json!({"apiVersion": "policy/v1beta1", "kind": "PodSecurityPolicyList", "items": [untyped]}),
    ];
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.json"), lists[0].to_string()).unwrap();
    let run = psp(directory.path(), &["a.json", "-"], &lists[1].to_string());
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.contains("name: small\n") && run.out.contains("name: second\n"), "{}", run.out);
    let said = "note: a.json: ignored documents that are not a PodSecurityPolicy, role or binding: 1 Pod\n";
    assert!(run.err.starts_with(said), "{}", run.err);
    assert!(run.out.contains("# PodSecurityPolicy second, <stdin>:1"), "{}", run.out);
}

#[test]
fn errors_are_shown_at_their_position() {
    wrong(
        "privileged: false",
        "privilegd: false",
        &["spec.privilegd: unknown field", "p.yaml:8:3", "did you mean privileged?"],
    );
    wrong(
        "privileged: false",
        "privileged: maybe",
        &["spec.privileged: is string \"maybe\", not a boolean", "p.yaml:8:15"],
    );
    wrong(
        "rule: RunAsAny",
        "rule: MayRunAs",
        &["spec.runAsUser.rule: unknown value \"MayRunAs\"", "p.yaml:10:21", "MustRunAs"],
    );
    wrong("  fsGroup: {rule: RunAsAny}\n", "", &["spec: missing field \"fsGroup\"", "p.yaml:7:1"]);
    wrong("rule: RunAsAny", "rule: MustRunAs", &["spec.runAsUser: has no ranges", "p.yaml:10:14"]);
    wrong(
        "[emptyDir]",
        "[emptydir]",
        &["spec.volumes[0]: \"emptydir\" is not a kind of volume", "p.yaml:9:13", "emptyDir"],
    );
    wrong("'*'", "docker", &["\"docker\" is not a valid profile name", "p.yaml:6:63"]);
    wrong("policy/v1beta1", "policy/v2", &["apiVersion: unknown: \"policy/v2\"", "p.yaml:1:13"]);
    wrong("name: small", "name: Small", &["metadata.name: \"Small\" is not a valid object name", "p.yaml:4:9"]);
    wrong("{rule: RunAsAny}", "{rule: RunAsAny]", &["p.yaml:10"]);
    let twice = format!("{POLICY}---\n{POLICY}");
    let run = migrate(&twice, &[]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.err.contains("must be unique: another policy is named \"small\"") && run.err.contains("p.yaml:18:9"),
        "{}",
        run.err
    );
    let homeless = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: x}\nroleRef: {kind: Role, name: x}\n";
    let run = migrate(&format!("{POLICY}---\n{homeless}"), &[]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("metadata.namespace: is required") && run.err.contains("p.yaml:17:11"), "{}", run.err);
}

#[test]
fn migrate_without_usable_input_exits_with_code_2() {
    for (text, arguments, expected) in [
        ("", &[][..], "p.yaml: a PodSecurityPolicy is required"),
        ("apiVersion: v1\nkind: Pod\n", &[], "1 Pod"),
        ("kind: Pod\n", &[], "this Pod has no apiVersion"),
        (POLICY, &["missing.yaml"], "missing.yaml: No such file"),
        (POLICY, &["-", "-"], "only one FILE can be standard input"),
        (POLICY, &["--stage", "deny"], "Deny"),
        (POLICY, &["--namespace-selector", "a"], "must be key=value"),
    ] {
        let run = migrate(text, arguments);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{arguments:?} {}", run.err);
        assert!(run.err.contains(expected), "{expected:?} is not in:\n{}", run.err);
    }
    let run = psp(Path::new("."), &[], "");
    assert_eq!(run.code, Some(2));
}

#[test]
fn hostile_annotation_cannot_break_out_of_a_comment() {
    let hostile = POLICY.replace("  annotations:", "  annotations:\n    \"a\\nkind: b\\e[31m\\u2028c: d\": x");
    let run = migrate(&hostile, &[]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(!run.out.contains('\x1b') && !run.err.contains('\x1b'));
    let kinds: Vec<_> = run.out.lines().filter(|line| line.starts_with("kind:")).collect();
    assert_eq!(kinds, ["kind: ToolSecurityProfile"]);
    let profiles: Vec<serde_json::Value> = serde_saphyr::from_multiple(&run.out).unwrap();
    assert_eq!(profiles.len(), 1);
}
