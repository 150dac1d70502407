//! `palisade render`, as its users meet it, and what holds for any command.

use std::{fmt::Write as _, path::Path, process::Stdio};

use super::{Run, directory, palisade, run_in};

const TOOLFORGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/toolforge/profile.yaml");

const NAMESPACES: &str = "\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Namespace
  metadata: {name: tool-b, labels: {tenancy: tool}, annotations: {toolforge.org/uid: \"50002\"}}
- apiVersion: v1
  kind: Namespace
  metadata: {name: tool-a, labels: {tenancy: tool}, annotations: {toolforge.org/uid: \"50001\"}}
- apiVersion: v1
  kind: Namespace
  metadata: {name: tool-leaving, labels: {tenancy: tool}, deletionTimestamp: \"2026-11-20T00:00:00Z\"}
- apiVersion: v1
  kind: Namespace
  metadata: {name: kube-system, labels: {tenancy: tool}}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: other}
---
apiVersion: v1
kind: Namespace
metadata: {name: elsewhere}
";

/// Runs the binary with files in its directory and nothing on standard input.
fn run(files: &[(&str, &[u8])], arguments: &[&str]) -> Run {
    run_in(directory(files).path(), arguments, "")
}

/// The Toolforge profile with one text replaced by another.
fn toolforge(from: &str, to: &str) -> String {
    let text = std::fs::read_to_string(TOOLFORGE).unwrap();
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

/// Asserts that a profile is wrong, and that all of `expected` is said.
fn wrong(profile: &str, expected: &[&str]) {
    let run = run(&[("p.yaml", profile.as_bytes())], &["render", "p.yaml"]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{}", run.err);
    for expected in expected {
        assert!(run.err.contains(expected), "{expected:?} is not in:\n{}", run.err);
    }
}

/// Asserts that nothing could be done, and why.
fn could_not_run(run: &Run, expected: &str) {
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{}", run.err);
    assert!(run.err.contains(expected), "{expected:?} is not in:\n{}", run.err);
}

fn kinds(yaml: &str) -> Vec<String> {
    yaml.lines().filter_map(|line| line.strip_prefix("kind: ").map(str::to_owned)).collect()
}

#[test]
fn renders_the_toolforge_profile() {
    let run = run(&[], &["render", TOOLFORGE]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!("toolforge", run.out);
}

#[test]
fn render_is_deterministic_with_parameters_first() {
    let render = || run(&[("ns.yaml", NAMESPACES.as_bytes())], &["render", TOOLFORGE, "--namespaces", "ns.yaml"]);
    let first = render();
    assert_eq!(first.code, Some(0), "{}", first.err);
    assert_eq!(first.err, "note: ns.yaml: ignored documents that are not a Namespace: 1 ConfigMap\n");
    assert_eq!(first.out, render().out);
    assert_eq!(
        kinds(&first.out),
        [
            "ToolSecurityParams",
            "ToolSecurityParams",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingAdmissionPolicyBinding",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
        ]
    );
    insta::assert_snapshot!("params", first.out.split("---\n").next().unwrap_or_default());
}

#[test]
fn json_and_yaml_output_are_equal() {
    let render = |format: &[&str]| {
        let arguments = [&["render", TOOLFORGE, "--namespaces", "ns.yaml"], format].concat();
        run(&[("ns.yaml", NAMESPACES.as_bytes())], &arguments).out
    };
    let json: serde_json::Value = serde_json::from_str(&render(&["-o", "json"])).unwrap();
    let yaml: Vec<serde_json::Value> = serde_saphyr::from_multiple(&render(&[])).unwrap();
    assert_eq!(json["kind"], "List");
    assert_eq!(json["items"], serde_json::Value::from(yaml));
}

#[test]
fn profile_is_read_from_a_json_list_on_standard_input() {
    let text = std::fs::read_to_string(TOOLFORGE).unwrap();
    let profile: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [{"kind": "Pod", "apiVersion": "v1"}, profile]});
    let expected = run(&[], &["render", TOOLFORGE]).out;
    // Tabs indent what `jq --tab` prints.
    for json in [list.to_string(), format!("{list:#}"), format!("{list:#}").replace("  ", "\t")] {
        let run = run_in(Path::new("."), &["render", "-"], json.as_bytes());
        assert_eq!((run.code, run.out.as_str()), (Some(0), expected.as_str()), "{}", run.err);
        assert_eq!(run.err, "note: <stdin>: ignored documents that are not a ToolSecurityProfile: 1 Pod\n");
    }
}

#[test]
fn every_profile_of_a_file_is_rendered() {
    let second = toolforge("name: toolforge", "name: second");
    let text = format!("{}---\napiVersion: v1\nkind: ConfigMap\n---\n---\n{second}", toolforge("$uid", "$uid"));
    let run = run(&[("p.yaml", text.as_bytes())], &["render", "p.yaml"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(run.err, "note: p.yaml: ignored documents that are not a ToolSecurityProfile: 1 ConfigMap\n");
    // Two policies with two bindings each, because there is a parameter, one for other objects with three, and one that
    // mutates with its binding.
    assert_eq!(kinds(&run.out).len(), 24);

    wrong(
        &text.replace("second", "toolforge"),
        &["metadata.name: must be unique: another profile is named", "p.yaml:78:9"],
    );
    // One that is wrong keeps the others from being printed, and is found behind them.
    wrong(&text.replace("name: second", "nam: second"), &["metadata.nam: unknown field", "p.yaml:78:3"]);
}

#[test]
fn namespace_without_a_uid_is_rendered_with_a_warning() {
    let namespace = b"{apiVersion: v1, kind: Namespace, metadata: {name: tool-x, labels: {tenancy: tool}}}";
    let run = run(&[("ns.yaml", namespace)], &["render", TOOLFORGE, "--namespaces", "ns.yaml"]);
    assert_eq!(run.code, Some(0));
    assert!(run.out.contains("problem: \"parameter uid is missing: the namespace has no annotation"), "{}", run.out);
    assert!(
        run.err.contains("warning: namespace tool-x: every pod violates profile toolforge: parameter uid"),
        "{}",
        run.err
    );
}

#[test]
fn errors_are_shown_at_their_position() {
    wrong(&toolforge("required: true}", "required: true]"), &["did not find expected ',' or '}'", "p.yaml:38"]);
    wrong("a: b\n  c: d\n", &["mapping values are not allowed", "p.yaml:2:4"]);
    wrong(
        &toolforge("runAsUser:", "runAsUsr:"),
        &["spec.users.runAsUsr: unknown field", "p.yaml:28:5", "did you mean runAsUser?"],
    );
    wrong(&toolforge("matchLabels", "matchLabel"), &["spec.namespaceSelector.matchLabel", "p.yaml:8:5"]);
    wrong(
        &toolforge("min: $uid, max: $uid", "min: $gid, max: $uid"),
        &["spec.users.runAsUser.ranges[0].min: $gid is not a declared parameter", "p.yaml:28:49", "^^^^"],
    );
    wrong(
        &toolforge("min: 1, max: 49999", "min: 9, max: 3"),
        &["spec.users.supplementalGroups.ranges[0]: min 9 is greater than max 3", "p.yaml:31:51"],
    );
    wrong(
        &toolforge("requireRunAsNonRoot: true", "requireRunAsNonRoot: maybe"),
        &["spec.users.requireRunAsNonRoot: is string \"maybe\"", "p.yaml:32:26"],
    );
    wrong(
        &toolforge("rule: MayRunAs", "rule: MyRunAs"),
        &["spec.users.supplementalGroups.rule: unknown value \"MyRunAs\"", "p.yaml:31:32", "did you mean MayRunAs?"],
    );
    wrong(
        &toolforge("  namespaceSelector:\n    matchLabels: {tenancy: tool}\n", ""),
        &["spec: missing field \"namespaceSelector\"", "p.yaml:6:1"],
    );
    wrong(&toolforge("v1alpha1", "v1"), &["apiVersion: unknown", "p.yaml:2:13", "toolsecurity.dev/v1alpha1"]);
    wrong(&toolforge("kind: ToolSecurityProfile", "kind: ToolSecurityProfil"), &["kind: unknown", "p.yaml:3:7"]);
    wrong(&toolforge("name: uid ", "name: uid\n    default: [1] "), &["spec.parameters[0].default", "p.yaml:14:14"]);
    wrong(
        &toolforge("privileged: false", "privileged: false\n    privileged: true"),
        &["spec.privileges.privileged: given twice", "p.yaml:35:5"],
    );
}

/// A check whose loops could cost more than the API server lets a match condition cost.
#[test]
fn profile_without_a_fast_path_is_rendered_with_a_note() {
    let check = "\n  customChecks:\n  - {id: own, message: x, expression: \"variables.containers.all(c, \
                 c.?args.orValue([]).all(a, isQuantity(a) == false))\"}\nspec:";
    let (before, after) = check.rsplit_once('\n').unwrap();
    let text = toolforge("spec:", &format!("{after}{before}"));
    let run = run(&[("p.yaml", text.as_bytes())], &["render", "p.yaml"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    for name in ["palisade-toolforge-pods", "palisade-toolforge-workloads"] {
        let expected = format!("note: policy {name} evaluates every request in full: ");
        assert!(run.err.contains(&expected), "{}", run.err);
    }
    // The policy for other objects does not have the check.
    assert_eq!(run.out.matches("name: may-violate").count(), 1);
}

#[test]
fn render_warns_about_an_exemption_that_covers_tenants() {
    let controller = "system:serviceaccount:kube-system:daemon-set-controller";
    let profile = toolforge("  enforcement:", &format!("  exemptions: {{users: [\"{controller}\"]}}\n  enforcement:"));
    let run = run(&[("p.yaml", profile.as_bytes())], &["render", "p.yaml"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let expected = format!("warning: profile toolforge: spec.exemptions.users[0]: {controller} is a controller, which");
    assert!(run.err.contains(&expected) && run.err.contains("--explain exempts-tenants"), "{}", run.err);
}

#[test]
fn all_profile_errors_are_shown_at_once() {
    let profile =
        toolforge("min: 1, max: 49999", "min: 9, max: 3").replace("maximum: 65533", "maximum: 65533\n    default: 1");
    wrong(&profile, &["spec.parameters[0].default: is 1, below the minimum", "p.yaml:19:14", "min 9", "p.yaml:32:51"]);
}

#[test]
fn errors_found_only_by_the_gate_are_shown() {
    let profile = toolforge("allowed: [RuntimeDefault], required: true", "allowed: [], required: true");
    wrong(&profile, &["spec: found no pod that complies", "p.yaml:6:1"]);
}

#[test]
fn expression_error_is_shown_at_its_position() {
    let check =
        "spec:\n  customChecks:\n  - id: own\n    message: m\n    expression: |\n      true &&\n        nowhere == 1\n";
    let profile = toolforge("spec:\n", check);
    wrong(&profile, &["spec.customChecks[0].expression:2:3: undeclared reference to 'nowhere'", "p.yaml:12:9"]);
}

/// A profile with constants alone.
const CONSTANT: &str = "\
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: fixed, uid: 00000000-0000-4000-8000-000000000001, generation: 3}
spec:
  guardSources: true
  namespaceSelector: {matchLabels: {tenancy: tool}}
  enforcement: {pods: Deny, workloads: Warn, namespaceStages: ByLabel}
  mutation: {defaults: Secure}
";

#[test]
fn static_objects_are_what_an_api_server_reads_from_a_file() {
    let render = |arguments: &[&str]| run(&[("p.yaml", CONSTANT.as_bytes())], arguments);
    let plain: Vec<serde_json::Value> = serde_saphyr::from_multiple(&render(&["render", "p.yaml"]).out).unwrap();
    let run = render(&["render", "p.yaml", "--static"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.contains("note: profile fixed: its defaults for pods are not printed"), "{}", run.err);
    let objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(&run.out).unwrap();
    let judging = |one: &&serde_json::Value| one["kind"].as_str().unwrap().starts_with("Validating");
    let expected: Vec<_> = plain
        .iter()
        .filter(judging)
        .map(|one| {
            assert!(one["metadata"]["ownerReferences"].is_array());
            let named = |name: &serde_json::Value| format!("{}.static.k8s.io", name.as_str().unwrap());
            let mut one = one.clone();
            one["metadata"].as_object_mut().unwrap().remove("ownerReferences");
            one["metadata"]["name"] = named(&one["metadata"]["name"]).into();
            if one["kind"] == "ValidatingAdmissionPolicyBinding" {
                one["spec"]["policyName"] = named(&one["spec"]["policyName"]).into();
            }
            one
        })
        .collect();
    assert_eq!(objects, expected);
    // Two with four bindings each, and the guard with one.
    assert_eq!(objects.len(), 12);
    assert!(!run.out.contains("paramKind") && !run.out.contains("paramRef"));
    let json: serde_json::Value =
        serde_json::from_str(&render(&["render", "p.yaml", "--static", "-o", "json"]).out).unwrap();
    assert_eq!(json["items"], serde_json::Value::from(expected));
}

#[test]
fn static_objects_cannot_read_parameters() {
    let render = |text: &str, more: &[&str]| {
        run(&[("p.yaml", text.as_bytes())], &[&["render", "p.yaml", "--static"], more].concat())
    };
    let exception =
        "\n  exceptions: [{namespaces: [a], checks: [privileged], reason: r, expires: '2030-01-01T00:00:00Z'}]";
    let both = toolforge("\nspec:", &format!("\nspec:{exception}"));
    let refused = render(&format!("{CONSTANT}---\n{both}"), &[]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{}", refused.err);
    for expected in [
        "spec.parameters: must be empty in profile \"toolforge\"",
        "p.yaml:22:",
        "replace each $name by a value",
        "spec.exceptions: must be empty in profile \"toolforge\"",
        "p.yaml:16:",
        "spec.excludeNamespaces",
        "apply the profile through the controller",
    ] {
        assert!(refused.err.contains(expected), "{expected:?} is not in:\n{}", refused.err);
    }
    could_not_run(
        &render(CONSTANT, &["--kube-version", "1.35"]),
        "--static requires Kubernetes 1.36 or newer, not 1.35",
    );
    could_not_run(&render(CONSTANT, &["--namespaces", "ns.yaml"]), "cannot be used with");
    could_not_run(&render(CONSTANT, &["--pod", "pod.yaml"]), "cannot be used with");
}

#[test]
fn render_without_usable_input_exits_with_code_2() {
    could_not_run(&run(&[("p.yaml", b"")], &["render", "p.yaml"]), "p.yaml: a ToolSecurityProfile is required");
    could_not_run(&run(&[("p.yaml", b"apiVersion: v1\nkind: Pod\n")], &["render", "p.yaml"]), "1 Pod");
    could_not_run(&run(&[("p.yaml", b"kind: Pod\n")], &["render", "p.yaml"]), "this Pod has no apiVersion");
    could_not_run(&run(&[], &["render", "missing.yaml"]), "missing.yaml: No such file");
    could_not_run(&run(&[], &["render", "."]), "the directory has no YAML or JSON file");
    could_not_run(&run(&[("p.yaml", b"a: \xff\n")], &["render", "p.yaml"]), "must be UTF-8 text: invalid at byte 3");
    could_not_run(&run(&[], &["render", TOOLFORGE, "--kube-version", "1.31"]), "supported are 1.32 to 1.37");
    could_not_run(&run(&[], &["render", TOOLFORGE, "--kube-version", "new"]), "supported are 1.32 to 1.37");
    could_not_run(
        &run(&[], &["render", "-", "--namespaces", "-"]),
        "only one of PROFILE, --namespaces and --pod can be standard input",
    );
    could_not_run(&run(&[], &["render"]), "<PROFILE>");
    let namespaces = |text: &[u8]| run(&[("ns.yaml", text)], &["render", TOOLFORGE, "--namespaces", "ns.yaml"]);
    could_not_run(&namespaces(b""), "a Namespace is required");
    could_not_run(&namespaces(b"{}"), "this is not a Kubernetes object");
    could_not_run(&namespaces(b"kind: Namespace\n}\n"), "ns.yaml:2:1");
    could_not_run(
        &namespaces(b"{apiVersion: v1, kind: Namespace, metadata: {labels: {}}}"),
        "metadata.name is required",
    );
}

#[test]
fn supported_versions_are_accepted() {
    for version in ["1.32", "1.33", "v1.36.1", "1.37"] {
        assert_eq!(run(&[], &["render", TOOLFORGE, "--kube-version", version]).code, Some(0), "{version}");
    }
}

#[test]
fn a_profile_that_an_older_minor_cannot_enforce_is_rejected_for_this_minor() {
    let profile = |spec: &str| {
        format!(
            "{{apiVersion: toolsecurity.dev/v1alpha1, kind: ToolSecurityProfile, metadata: {{name: p}}, spec: \
             {{namespaceSelector: {{matchLabels: {{a: b}}}}, baseline: Baseline, {spec}}}}}"
        )
    };
    let removed = profile("users: {supplementalGroupsPolicy: Strict}");
    let newer = profile(
        "customChecks: [{id: one, target: Pod, message: m, expression: \
         'object.metadata.?labels.orValue({}).exists(key, value, key == value)'}]",
    );
    let pod = b"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: tool}, spec: {containers: []}}";
    let namespace = b"{apiVersion: v1, kind: Namespace, metadata: {name: tool, labels: {a: b}}}";
    let minimum = profile("minimumKubeVersion: \"1.33\"");
    for (text, place) in [
        (&removed, "supplementalGroupsPolicy"),
        (&newer, "spec.customChecks[0].expression"),
        (&minimum, "spec.minimumKubeVersion"),
    ] {
        let files: [(&str, &[u8]); 3] = [("p.yaml", text.as_bytes()), ("pod.yaml", pod), ("ns.yaml", namespace)];
        let commands: [&[&str]; 5] = [
            &["render", "p.yaml"],
            &["check", "pod.yaml", "--profile", "p.yaml", "--namespaces", "ns.yaml"],
            &["report", "pod.yaml", "--profile", "p.yaml", "--namespaces", "ns.yaml"],
            &["suggest", "pod.yaml", "--profile", "p.yaml", "--namespaces", "ns.yaml"],
            &["diff", "p.yaml", "p.yaml", "--manifests", "pod.yaml", "--namespaces", "ns.yaml"],
        ];
        for command in commands {
            let on = |version| run(&files, &[command, &["--kube-version", version]].concat());
            let (older, current) = (on("1.32"), on("1.33"));
            let said = format!("{}{}", older.out, older.err);
            assert!(older.code.is_some_and(|code| code != 0) && said.contains(place), "{command:?}: {said}");
            assert!(!current.err.contains(place), "{command:?}: {}", current.err);
        }
    }
}

#[test]
fn hostile_input_is_rejected() {
    let head = "apiVersion: toolsecurity.dev/v1alpha1\nkind: ToolSecurityProfile\n";
    let mut bomb = format!("{head}a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let alias = format!("*a{}, ", level - 1).repeat(10);
        writeln!(bomb, "a{level}: &a{level} [{alias}]").unwrap();
    }
    let inputs: [Vec<u8>; 14] = [
        "[".repeat(100_000).into(),
        "{a: ".repeat(100_000).into(),
        "- ".repeat(100_000).into(),
        format!("{head}spec: {}{}\n", "[".repeat(200), "]".repeat(200)).into(),
        format!("{head}metadata: {{name: {}}}\nspec: {{}}\n", "x".repeat(3_000_000)).into(),
        format!("{head}{}: 1\nspec: {{}}\n", "y".repeat(900)).into(),
        bomb.into(),
        format!("{head}spec: &a [*a]\n").into(),
        format!("{head}<<: [1, *nothing]\nspec: !!binary x\n").into(),
        format!("{head}spec:\n  ? [a, b]\n  : c\n  ? {{}}\n").into(),
        format!("{head}spec: \"\x1b]0;title\x07\u{202e}\"\n").into(),
        "---\n".repeat(100_000).into(),
        (0..=255).collect(),
        b"\xef\xbb\xbf\0\0\r\r\n%TAG ! x\n--- |9\n\t".to_vec(),
    ];
    for (index, input) in inputs.iter().enumerate() {
        let shown = String::from_utf8_lossy(&input[..input.len().min(60)]);
        let refused = |arguments: &[&str]| {
            let run = run_in(Path::new("."), arguments, input);
            assert!(matches!(run.code, Some(1 | 2)), "{shown:?}: {:?}\n{}", run.code, run.err);
            assert_eq!(run.out, "");
            assert!(!run.err.contains('\x1b') && !run.err.contains('\u{202e}'), "{shown:?}: {:?}", run.err);
            assert!(run.err.len() < 5000, "{shown:?}: {} bytes are said", run.err.len());
        };
        refused(&["render", "-"]);
        // The same code reads them, after the profile has been checked at some length.
        if index % 4 == 0 {
            refused(&["render", TOOLFORGE, "--namespaces", "-"]);
        }
    }
}

#[test]
fn closed_stdout_is_not_an_error() {
    let mut child = palisade(Path::new("."))
        .args(["render", TOOLFORGE])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn directories_are_read_or_refused_in_words() {
    let pod = b"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: b}]}\n";
    let profile = std::fs::read(TOOLFORGE).unwrap();
    let directory = directory(&[("d.profile", &*profile), ("d.pod", pod)]);
    let at = |name: &str| directory.path().join(name);
    std::fs::create_dir(at("d")).unwrap();
    std::fs::rename(at("d.profile"), at("d/profile.yaml")).unwrap();
    std::fs::rename(at("d.pod"), at("d/pod.yaml")).unwrap();
    for (arguments, expected) in [
        (&["render", "d"][..], "kind: ValidatingAdmissionPolicy"),
        (&["render", "d", "--pod", "d"], "kind: Pod"),
        (
            &["check", "--explain", "--profile", "d", "d", "-n", "tool-a", "--param", "uid=50001"],
            "Pod/p in namespace tool-a",
        ),
        (&["render", "d", "--namespaces", "d"], "d: is a directory; specify a file"),
        (&["check", "--profile", "d", "d", "--namespaces", "d"], "d: is a directory; specify a file"),
    ] {
        let run = run_in(directory.path(), arguments, "");
        let text = format!("{}{}", run.out, run.err);
        assert!(text.contains(expected) && !text.contains("os error"), "{arguments:?}: {text}");
    }
}
