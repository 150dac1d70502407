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
fn profiles_that_cannot_be_compared_are_rejected() {
    let other = profile(
        "  parameters: [{name: uid, type: Integer, sources: [{namespaceAnnotation: uid}]}]\n  users:\n    runAsUser: {rule: \
         MustRunAs, ranges: [{min: $uid, max: $uid}]}\n",
    );
    let both = format!("{}---\n{}", profile(""), profile("").replace("name: tools", "name: others"));
    let files = directory(&[("old.yaml", &profile("")), ("new.yaml", &other), ("both.yaml", &both)]);
    for (arguments, said) in [
        (["prove", "old.yaml", "new.yaml"], "spec.parameters differ"),
        (["prove", "old.yaml", "both.yaml"], "both.yaml must have one profile"),
        (["prove", "old.yaml", "tools"], "tools must be a file"),
    ] {
        let refused = run_in(files.path(), &arguments, "");
        assert_eq!((refused.code, &*refused.out), (Some(2), ""), "{}", refused.err);
        assert!(refused.err.contains(said), "{}", refused.err);
    }
}
