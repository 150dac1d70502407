//! `palisade lint`, as its users meet it.

use std::{fs, path::Path};

use serde_json::Value as Json;

use super::run_in;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A policy that is refused, one that is dangerous, and one without a fault.
fn example(name: &str) -> String {
    fs::read_to_string(format!("{ROOT}/crates/lint/src/catalogue/{name}.yaml")).unwrap()
}

#[test]
fn exit_codes() {
    let at = tempfile::tempdir().unwrap();
    let warned = example("blocks_finalizers.bad");
    let refused = example("api_server_rejects.bad");
    for (args, input, code) in [
        (&["lint", "-"][..], example("blocks_finalizers.good"), 0),
        (&["lint", "-"], warned.clone(), 0),
        (&["lint", "--fail-on", "warning", "-"], warned.clone(), 1),
        (&["lint", "--deny", "blocks-finalizers", "-"], warned.clone(), 1),
        (&["lint", "--fail-on", "warning", "--allow", "blocks-finalizers", "-"], warned, 0),
        (&["lint", "-"], refused.clone(), 1),
        (&["lint", "--fail-on", "never", "-"], refused, 0),
        (&["lint", "-"], "kind: [".to_owned(), 1),
        (&["lint", "missing.yaml"], String::new(), 2),
        (&["lint", "--allow", "no-such-rule", "-"], String::new(), 2),
        (&["lint", "-o", "xml", "-"], String::new(), 2),
        (&["lint"], String::new(), 2),
    ] {
        let run = run_in(at.path(), args, &input);
        assert_eq!(run.code, Some(code), "{args:?}: {}{}", run.out, run.err);
    }
}

#[test]
fn finding_points_at_its_line_and_column() {
    let at = tempfile::tempdir().unwrap();
    let text = "apiVersion: v1\nkind: Pod\n---\n".to_owned() + &example("api_server_rejects.bad");
    let run = run_in(at.path(), &["lint", "-"], &text);
    assert!(run.out.contains("does not compile: 1:30: invalid matches argument"), "{}", run.out);
    assert!(run.out.contains("<stdin>:15:36"), "{}", run.out);
    assert!(run.out.contains("1 error in 2 objects; skipped objects of kinds without rules: 1 Pod"), "{}", run.out);
}

#[test]
fn directory_walk_survives_symlink_loops() {
    let at = tempfile::tempdir().unwrap();
    let inner = at.path().join("policies/inner");
    fs::create_dir_all(&inner).unwrap();
    fs::write(inner.join("a.yaml"), example("blocks_finalizers.bad")).unwrap();
    fs::write(at.path().join("policies/.hidden.yaml"), "kind: [").unwrap();
    fs::write(at.path().join("policies/notes.txt"), "kind: [").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("..", inner.join("up")).unwrap();
    let run = run_in(at.path(), &["lint", "-o", "json", "policies"], "");
    let report: Json = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["findings"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(report["findings"][0]["file"], "policies/inner/a.yaml");
    assert_eq!(report["findings"][0]["rule"], "blocks-finalizers");
    assert_eq!(report["objects"], 2);
}

#[test]
fn helm_output_is_linted_and_unrendered_template_recognized() {
    let at = tempfile::tempdir().unwrap();
    let rendered = format!("---\n# Source: x\n\n---\n{}---\n# nothing\n", example("blocks_finalizers.good"));
    let run = run_in(at.path(), &["lint", "-"], &rendered);
    assert_eq!((run.code, &*run.out), (Some(0), "no findings in 2 objects\n"), "{}", run.err);
    let run =
        run_in(at.path(), &["lint", "-"], "metadata:\n  name: {{ .Release.Name }}\n  {{- if .x }}\nspec: {{ .y }}\n");
    assert_eq!(run.code, Some(1));
    assert!(run.out.contains("helm template"), "{}", run.out);
}

#[test]
fn output_formats_contain_their_required_fields() {
    let at = tempfile::tempdir().unwrap();
    fs::write(at.path().join("a b.yaml"), example("api_server_rejects.bad")).unwrap();
    let args = ["lint", "-o", "github", "-o", "sarif=x.sarif", "-o", "junit=x.xml", "-o", "json=x.json", "a b.yaml"];
    let run = run_in(at.path(), &args, "");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.out.starts_with("::error file=a b.yaml,line=12,endLine=12,col="), "{}", run.out);
    assert_eq!(run.out.lines().count(), 1, "{}", run.out);

    let read = |name: &str| fs::read_to_string(at.path().join(name)).unwrap();
    let sarif: Json = serde_json::from_str(&read("x.sarif")).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let driver = &sarif["runs"][0]["tool"]["driver"];
    assert!(driver["name"].is_string());
    let result = &sarif["runs"][0]["results"][0];
    assert!(result["message"]["text"].as_str().unwrap().contains("does not compile"));
    let rule = &driver["rules"][usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
    assert_eq!(rule["id"], result["ruleId"]);
    assert!(rule["helpUri"].as_str().unwrap().ends_with("docs/lint/api-server-rejects.md"));
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a%20b.yaml");
    assert_eq!(place["region"]["startLine"], 12);

    let junit = read("x.xml");
    let junit = roxmltree::Document::parse(&junit).unwrap();
    let counts = ["tests", "failures", "errors"].map(|name| junit.root_element().attribute(name));
    assert_eq!(counts, [Some("1"), Some("1"), Some("0")]);
    let of = |tag: &str| junit.descendants().find(|node| node.has_tag_name(tag)).unwrap();
    assert_eq!(of("testsuite").attribute("name"), Some("a b.yaml"));
    assert_eq!(of("testcase").attribute("classname"), Some("palisade.lint.api-server-rejects"));
    assert!(of("failure").text().unwrap().starts_with("a b.yaml:12:"));
    let json: Json = serde_json::from_str(&read("x.json")).unwrap();
    assert_eq!(json["findings"][0]["path"], "spec.validations[0].expression");
}

#[test]
fn rules_are_listed_and_explained() {
    let at = tempfile::tempdir().unwrap();
    let list = run_in(at.path(), &["lint", "--list"], "");
    assert!(list.out.lines().count() > 30, "{}", list.out);
    for line in list.out.lines() {
        let id = line.split(' ').next().unwrap();
        let page = run_in(at.path(), &["lint", "--explain", id], "");
        assert!(page.code == Some(0) && page.out.contains("lint-ignore"), "{id}: {}", page.err);
        assert!(Path::new(ROOT).join(format!("docs/lint/{id}.md")).is_file(), "{id} has no page");
    }
    let run = run_in(at.path(), &["lint", "--explain", "matches-lease"], "");
    assert!(run.code == Some(2) && run.err.contains("did you mean matches-leases?"), "{}", run.err);
}

#[test]
fn completions_and_man_pages_are_generated() {
    let at = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = run_in(at.path(), &["completions", shell], "");
        assert!(run.code == Some(0) && run.out.contains("lint"), "{shell}: {}", run.err);
    }
    let page = run_in(at.path(), &["man"], "").out;
    assert!(page.contains(".TH palisade 1"), "{page}");
    let run = run_in(at.path(), &["man", "--directory", "."], "");
    assert_eq!(run.code, Some(0), "{}", run.err);
    let page = fs::read_to_string(at.path().join("palisade-lint.1")).unwrap();
    assert!(page.contains("fail\\-on"), "{page}");
}

#[test]
fn defaults_of_lint_are_in_the_file_of_defaults() {
    let at = tempfile::tempdir().unwrap();
    let lint = |file: &str, more: &[&str]| {
        fs::write(at.path().join(".palisade.yaml"), file).unwrap();
        run_in(at.path(), &[&["lint", "-"], more].concat(), example("blocks_finalizers.bad"))
    };
    for (file, more, code) in [
        ("", &[][..], 0),
        ("lint: {failOn: warning}", &[], 1),
        ("lint: {failOn: warning}", &["--fail-on", "error"], 0),
        ("lint: {failOn: warning, allow: [blocks-finalizers]}", &[], 0),
        ("lint: {deny: [blocks-finalizers]}", &[], 1),
        ("lint: {deny: [blocks-finalizers]}", &["--allow", "blocks-finalizers"], 0),
        // Those of check do not concern lint.
        ("profiles: [p.yaml]\nfailOn: warning", &[], 0),
    ] {
        let run = lint(file, more);
        assert_eq!(run.code, Some(code), "{file} {more:?}: {}{}", run.out, run.err);
    }
    let json = lint("output: [json]", &[]);
    assert!(json.out.starts_with("{\n"), "{}", json.out);
    for (file, expected) in [
        ("lint: {allow: [block-finalizers]}", "lint.allow[0]: no rule has the id \"block-finalizers\""),
        ("lint: {failOn: warn}", "lint.failOn: unknown value \"warn\""),
        ("lint: {ignore: [x]}", "unknown field \"ignore\""),
    ] {
        let run = lint(file, &[]);
        let place = run.err.contains(".palisade.yaml:1:");
        assert!(run.code == Some(2) && run.err.contains(expected) && place, "{file}: {}", run.err);
    }
}
