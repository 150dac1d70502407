//! `palisade prove`: proofs about changes of profiles, and the pods that refute them.

use serde_json::Value as Json;

use super::{Run, directory, run_in};

fn run(files: &[(&str, &[u8])], arguments: &[&str]) -> Run {
    run_in(directory(files).path(), arguments, "")
}

/// A profile with these settings.
fn profile(name: &str, settings: &str) -> String {
    format!(
        "apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {{name: {name}}}
spec:
  namespaceSelector: {{matchLabels: {{tenancy: tool}}}}
{settings}"
    )
}

/// The exit code and the output of a comparison.
fn compared(old: &str, new: &str) -> (Option<i32>, Json) {
    let (old, new) = (profile("tools", old), profile("tools", new));
    let files = [("old.yaml", old.as_bytes()), ("new.yaml", new.as_bytes())];
    let run = run(&files, &["prove", "old.yaml", "new.yaml", "-o", "json"]);
    let found: Json = serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {} {}", run.out, run.err));
    (run.code, found["comparisons"][0].clone())
}

/// The row of a check.
fn row<'a>(found: &'a Json, side: &str, check: &str) -> &'a Json {
    found[side].as_array().unwrap().iter().find(|row| row["check"] == check).unwrap_or(&Json::Null)
}

const BASE: &str = "  baseline: Baseline\n";

#[test]
fn equal_profiles_are_proved_equal() {
    let (code, found) = compared(BASE, BASE);
    assert_eq!((code, found["change"].as_str()), (Some(0), Some("neither")), "{found:#}");
}

#[test]
fn tightening_is_proved_and_its_opposite_has_an_example() {
    let stricter = "  baseline: Baseline\n  images: {allowedRegistries: [registry.example]}\n";
    let (code, found) = compared(BASE, stricter);
    assert_eq!((code, found["change"].as_str()), (Some(0), Some("tightening")), "{found:#}");
    let (code, found) = compared(stricter, BASE);
    assert_eq!((code, found["change"].as_str()), (Some(1), Some("loosening")), "{found:#}");
    let row = row(&found, "newlyAdmitted", "imageRegistries");
    assert_eq!(row["result"], "Differs", "{found:#}");
    assert!(row["pod"]["spec"]["containers"][0].get("image").is_some_and(|image| image != "registry.example"), "{row}");
}

#[test]
fn ranges_that_are_as_strict_together_are_equal() {
    let ports = |ranges: &str| format!("  baseline: Baseline\n  host: {{ports: [{ranges}]}}\n");
    let (one, two) = (ports("{min: 80, max: 9000}"), ports("{min: 80, max: 443}, {min: 400, max: 9000}"));
    let (code, found) = compared(&one, &two);
    assert_eq!((code, found["change"].as_str()), (Some(0), Some("neither")), "{found:#}");
}

#[test]
fn level_is_implied_or_refuted() {
    let restricted = profile("tools", "  baseline: Restricted\n");
    let files = [("p.yaml", restricted.as_bytes())];
    for level in ["restricted", "baseline", "restricted@v1.34"] {
        let run = run(&files, &["prove", "--implies", level, "p.yaml"]);
        assert_eq!(run.code, Some(0), "{level}: {} {}", run.out, run.err);
        assert!(run.out.contains("implies"), "{}", run.out);
    }
    let baseline = profile("tools", BASE);
    let run = run(&[("p.yaml", baseline.as_bytes())], &["prove", "--implies", "restricted", "p.yaml"]);
    assert_eq!(run.code, Some(1), "{} {}", run.out, run.err);
    assert!(run.out.contains("does not imply") && run.out.contains("kind: Pod"), "{}", run.out);
}

#[test]
fn arguments_without_a_meaning_are_rejected() {
    let text = profile("tools", BASE);
    let files = [("p.yaml", text.as_bytes())];
    for line in [
        &["prove", "p.yaml"][..],
        &["prove", "--implies", "restricted", "p.yaml", "p.yaml"],
        &["prove", "--implies", "strict", "p.yaml"],
        &["prove", "--implies", "restricted@1", "p.yaml"],
        &["prove", "toolforge@3", "p.yaml"],
    ] {
        let run = run(&files, line);
        assert_eq!(run.code, Some(2), "{line:?}: {} {}", run.out, run.err);
    }
}
