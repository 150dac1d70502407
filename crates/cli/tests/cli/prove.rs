//! `palisade prove`: two versions of a profile for all pods.

use serde_json::Value as Json;

use super::{directory, run_in};

fn profile(settings: &str) -> String {
    format!(
        "apiVersion: toolsecurity.dev/v1alpha1\nkind: ToolSecurityProfile\nmetadata: {{name: tools}}\n\
         spec:\n  namespaceSelector: {{matchLabels: {{tenancy: tool}}}}\n{settings}"
    )
}

#[test]
fn tightening_is_proved_and_each_check_has_a_pod() {
    let (baseline, restricted) = (profile("  baseline: Baseline\n"), profile(""));
    let files = directory(&[("old.yaml", &baseline), ("new.yaml", &restricted)]);
    let tighter = run_in(files.path(), &["prove", "old.yaml", "new.yaml", "-o", "json"], "");
    assert_eq!(tighter.code, Some(0), "{}{}", tighter.out, tighter.err);
    let found: Json = serde_json::from_str(&tighter.out).unwrap();
    assert_eq!(found["change"], "tightening", "{found:#}");
    assert_eq!(found["newlyAdmitted"], serde_json::json!({"examples": [], "undecided": null}));
    let checks = |example: &Json| -> Vec<String> {
        let violations = example["violations"].as_array().unwrap();
        violations.iter().map(|one| one["check"].as_str().unwrap().to_owned()).collect()
    };
    let examples = found["newlyDenied"]["examples"].as_array().unwrap();
    let denied: Vec<_> = examples.iter().flat_map(checks).collect();
    for check in ["allowPrivilegeEscalation", "capabilities", "runAsNonRoot", "runAsUser", "restrictedVolumes"] {
        assert!(denied.iter().any(|one| one == check), "{check}: {denied:?}");
    }

    let looser = run_in(files.path(), &["prove", "new.yaml", "old.yaml"], "");
    assert_eq!(looser.code, Some(1), "{}", looser.err);
    assert!(looser.out.starts_with("new.yaml -> old.yaml: a loosening\n"), "{}", looser.out);
    assert!(looser.out.contains("newly denied: no pod (proved)"), "{}", looser.out);

    let same = run_in(files.path(), &["prove", "new.yaml", "new.yaml"], "");
    assert_eq!(same.code, Some(0), "{}", same.err);
    assert!(same.out.contains("the same pods are admitted"), "{}", same.out);
}

#[test]
fn example_is_a_pod_that_violates_only_the_changed_setting() {
    let ports = profile("  host: {ports: [{min: 80, max: 443}]}\n");
    let files = directory(&[("old.yaml", &profile("")), ("new.yaml", &ports)]);
    let found = run_in(files.path(), &["prove", "old.yaml", "new.yaml", "-o", "json"], "");
    assert_eq!(found.code, Some(1), "{}", found.err);
    let found: Json = serde_json::from_str(&found.out).unwrap();
    let [example] = found["newlyAdmitted"]["examples"].as_array().unwrap().as_slice() else { panic!("{found:#}") };
    let port = example["object"]["spec"]["containers"][0]["ports"][0]["hostPort"].as_i64().unwrap();
    assert!((80..=443).contains(&port), "{example:#}");
    let violations = example["violations"].as_array().unwrap();
    assert_eq!(violations.iter().map(|one| one["check"].as_str().unwrap()).collect::<Vec<_>>(), ["hostPorts"]);
}

#[test]
fn a_custom_check_with_the_name_of_a_variable_is_none_of_the_variables() {
    let check =
        "  customChecks:\n  - {id: containers, message: no hostname, expression: \"!has(variables.spec.hostname)\"}\n";
    let [baseline, restricted] =
        ["Baseline", "Restricted"].map(|level| profile(&format!("  baseline: {level}\n{check}")));
    let files = directory(&[("old.yaml", &baseline), ("new.yaml", &restricted)]);
    let found = run_in(files.path(), &["prove", "old.yaml", "new.yaml", "-o", "json"], "");
    assert_eq!(found.code, Some(0), "{}{}", found.out, found.err);
    let found: Json = serde_json::from_str(&found.out).unwrap();
    assert_eq!(
        (&found["change"], &found["newlyDenied"]["undecided"]),
        (&"tightening".into(), &Json::Null),
        "{found:#}"
    );
    for example in found["newlyDenied"]["examples"].as_array().unwrap() {
        assert_eq!(example["object"].pointer("/spec/hostname"), None, "{example:#}");
        assert_eq!(example["object"].pointer("/metadata/labels"), None, "not a probe: {example:#}");
    }
}

#[test]
fn statements_about_a_profile_are_proved_or_refuted() {
    let ports = profile("  host: {ports: [{min: 80, max: 443}]}\n");
    let files = directory(&[("restricted.yaml", &profile("")), ("ports.yaml", &ports)]);
    for (arguments, code, said) in [
        (["restricted.yaml", "--implies", "restricted"], 0, "restricted.yaml implies Restricted@latest: proved\n"),
        (["restricted.yaml", "--implies", "baseline@v1.37"], 0, "restricted.yaml implies Baseline@v1.37: proved\n"),
        // A type that Kubernetes 1.31 added to those that are allowed.
        (["restricted.yaml", "--implies", "baseline@v1.25"], 1, "seLinuxOptions.type is container_engine_t, allowed: "),
        (["ports.yaml", "--implies", "baseline"], 1, "[hostPorts] container \"main\": hostPort"),
        (["ports.yaml", "--never", "variables.spec.?hostPID.orValue(false)"], 0, ": proved\n"),
        (["ports.yaml", "--never", "has(object.spec.hostname)"], 1, "[never] pod: the expression is true\n"),
        (["ports.yaml", "--never", "true) || (true"], 2, "--never: \"true) || (true\" is not a CEL expression"),
        (["ports.yaml", "--never", "variables.nope == 1"], 2, "--never:1:10: undefined field 'nope'"),
        (["ports.yaml", "--implies", "strict"], 2, "must be baseline or restricted, for example restricted@v1.36"),
        (["ports.yaml", "--never", "has(variables.spec.hostnam)"], 2, "not decided: the field hostnam"),
    ] {
        let arguments: Vec<_> = ["prove"].into_iter().chain(arguments).collect();
        let found = run_in(files.path(), &arguments, "");
        assert_eq!(found.code, Some(code), "{arguments:?}: {}{}", found.out, found.err);
        assert!(found.out.contains(said) || found.err.contains(said), "{arguments:?}: {}{}", found.out, found.err);
    }
}

#[test]
fn parameters_are_between_their_minimum_and_maximum() {
    let with = |minimum: i64| {
        profile(&format!(
            "  parameters: [{{name: uid, type: Integer, minimum: {minimum}, sources: [{{namespaceAnnotation: uid}}]}}]\n  \
             users:\n    requireRunAsNonRoot: false\n    runAsUser: {{rule: MustRunAs, ranges: [{{min: $uid, max: $uid}}]}}\n"
        ))
    };
    let files = directory(&[("some.yaml", &with(1)), ("all.yaml", &with(0))]);
    for (file, code) in [("some.yaml", 0), ("all.yaml", 1)] {
        let never = "variables.spec.?securityContext.?runAsUser.orValue(1) == 0";
        let found = run_in(files.path(), &["prove", file, "--never", never], "");
        assert_eq!(found.code, Some(code), "{file}: {}{}", found.out, found.err);
    }
}

#[test]
fn profiles_of_directories_are_compared_by_name() {
    let named = |name: &str, settings: &str| profile(settings).replace("name: tools", &format!("name: {name}"));
    let ports = "  host: {ports: [{min: 80, max: 443}]}\n";
    let old = [named("loosened", ""), named("removed", ""), named("same", ports)].join("---\n");
    let new = [named("added", ""), named("same", ports)].join("---\n");
    let files = directory(&[
        ("old/all.yaml", &old),
        ("new/most.yaml", &new),
        ("new/loosened.yaml", &named("loosened", ports)),
        ("kept/all.yaml", &old),
        ("kept/added.yaml", &named("added", "")),
    ]);
    let found = run_in(files.path(), &["prove", "old", "new/"], "");
    assert_eq!(found.code, Some(1), "{}{}", found.out, found.err);
    for line in [
        "added in new/: added: it admits no pod that was denied before",
        "loosened in old -> loosened in new/: a loosening",
        "removed in old: removed: a loosening, because it no longer denies any pod",
        "same in old -> same in new/: the same pods are admitted",
    ] {
        assert!(found.out.lines().any(|one| one == line), "{line}: {}", found.out);
    }
    let kept = run_in(files.path(), &["prove", "old/", "kept/", "-o", "json"], "");
    assert_eq!(kept.code, Some(0), "{}{}", kept.out, kept.err);
    let answers: Vec<Json> = serde_json::Deserializer::from_str(&kept.out).into_iter().map(Result::unwrap).collect();
    let changes: Vec<_> = answers.iter().map(|one| one["change"].as_str().unwrap()).collect();
    assert_eq!(changes, ["tightening", "equivalent", "equivalent", "equivalent"], "{}", kept.out);
    let implied = run_in(files.path(), &["prove", "old/", "--implies", "baseline"], "");
    assert_eq!(implied.code, Some(1), "{}{}", implied.out, implied.err);
    for line in [
        "loosened in old/ implies Baseline@latest: proved",
        "removed in old/ implies Baseline@latest: proved",
        "same in old/ implies Baseline@latest: refuted",
    ] {
        assert!(implied.out.lines().any(|one| one == line), "{line}: {}", implied.out);
    }
}

#[test]
fn profiles_that_cannot_be_compared_are_rejected() {
    let other = profile(
        "  parameters: [{name: uid, type: Integer, sources: [{namespaceAnnotation: uid}]}]\n  users:\n    runAsUser: {rule: \
         MustRunAs, ranges: [{min: $uid, max: $uid}]}\n",
    );
    let files = directory(&[("old.yaml", &profile("")), ("new.yaml", &other)]);
    let other = run_in(files.path(), &["prove", "old.yaml", "new.yaml"], "");
    assert_eq!(other.code, Some(2), "{}", other.err);
    assert!(other.err.contains("not decided whether a pod is newly admitted: spec.parameters differ"), "{}", other.err);
    assert!(other.out.starts_with("old.yaml -> new.yaml: not decided\n"), "{}", other.out);
    let missing = run_in(files.path(), &["prove", "old.yaml", "tools"], "");
    assert_eq!((missing.code, &*missing.out), (Some(2), ""), "{}", missing.err);
    assert!(missing.err.contains("tools: "), "{}", missing.err);
}
