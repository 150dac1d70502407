//! Workflows of GitHub: nothing else runs them here, so what they name must be there.

use serde_json::Value as Json;

use super::{
    commands::{targets, wrong_task},
    files, root,
};

/// What a step of a workflow names that is not there, or leaves open.
fn wrong(step: &Json) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(action) = step["uses"].as_str() {
        let is_digest = |text: &str| text.len() == 40 && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
        if !action.split_once('@').is_some_and(|(_, commit)| is_digest(commit)) {
            problems.push(format!("{action}: name a commit by its digest; a tag can change"));
        }
    }
    for line in step["run"].as_str().unwrap_or_default().lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["make", target, ..] if !targets().contains(target) => {
                problems.push(format!("the Makefile has no target {target}"));
            }
            ["cargo", "xtask", ..] => problems.extend(wrong_task(&words)),
            [program, ..] if program.contains('/') && !root().join(program).is_file() => {
                problems.push(format!("there is no {program}"));
            }
            _ => {}
        }
    }
    let file = step["with"]["go-version-file"].as_str();
    problems.extend(file.filter(|file| !root().join(file).is_file()).map(|file| format!("there is no {file}")));
    problems
}

#[test]
fn workflows_name_what_is_there() {
    for (step, expected) in [
        (serde_json::json!({"uses": "actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683"}), 0),
        (serde_json::json!({"uses": "actions/checkout@main"}), 1),
        (serde_json::json!({"uses": "actions/checkout@v4.2.2"}), 1),
        (serde_json::json!({"run": "make deny DENY=advisories"}), 0),
        (serde_json::json!({"run": "cargo xtask release --version 1"}), 0),
        (serde_json::json!({"run": "cargo xtask nothing"}), 1),
        (serde_json::json!({"run": "make nothing"}), 1),
        (serde_json::json!({"run": ".ci/run"}), 0),
        (serde_json::json!({"run": ".ci/walk"}), 1),
        (serde_json::json!({"with": {"go-version-file": "go.mod"}}), 1),
    ] {
        assert_eq!(wrong(&step).len(), expected, "{step}");
    }
    let workflows: Vec<_> =
        files(&[".yaml"]).into_iter().filter(|(path, _)| path.starts_with(".github/workflows")).collect();
    assert!(workflows.len() >= 3, "there are workflows for changes, releases and advisories");
    let mut problems = Vec::new();
    for (path, text) in workflows {
        // Updates of the digest need the version.
        let unnamed = text.lines().filter(|line| line.contains("uses: ") && !line.contains(" # v"));
        problems.extend(unnamed.map(|line| format!("{}: no version behind {}", path.display(), line.trim())));
        let workflow: Json = serde_saphyr::from_str(&text).unwrap();
        for (name, job) in workflow["jobs"].as_object().unwrap() {
            let steps = job["steps"].as_array().unwrap();
            let limited = job["timeout-minutes"].is_u64() && workflow["permissions"].is_object();
            if !limited || steps.is_empty() {
                problems.push(format!("{}: {name} needs steps, timeout-minutes and permissions", path.display()));
            }
            problems.extend(steps.iter().flat_map(wrong).map(|problem| format!("{}: {problem}", path.display())));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
