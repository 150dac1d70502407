//! `examples/ci`, run as GitHub and pre-commit run it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
};

use serde_json::Value as Json;
use tempfile::TempDir;

use super::{
    Run,
    check::{BAD, GOOD, PROFILE},
    directory,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn text(name: &str) -> String {
    fs::read_to_string(format!("{ROOT}/examples/ci/{name}")).unwrap()
}

fn example(name: &str) -> Json {
    serde_saphyr::from_str(&text(name)).unwrap()
}

fn list(of: &Json) -> &[Json] {
    of.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn keys(of: &Json) -> BTreeSet<&str> {
    of.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}

/// What stands behind a prefix in expressions, as `manifests` in `${{ inputs.manifests }}`.
fn used<'a>(text: &'a str, prefix: &str) -> BTreeSet<&'a str> {
    let expressions = text.split("${{").skip(1).map(|rest| rest.split_once("}}").unwrap().0.trim());
    expressions.filter_map(|expression| expression.strip_prefix(prefix)).collect()
}

/// A suite that passes or fails, as the manifests do.
fn suite(verdict: &str) -> String {
    format!(
        "apiVersion: test.toolsecurity.dev/v1alpha1\nkind: PolicyTest\npolicies: [a.yaml]\nresources: [{{apiVersion: v1, kind: \
         Namespace, metadata: {{name: x, labels: {{tenancy: tool}}}}}}]\ncases:\n- name: another class\n  object: {{apiVersion: \
         v1, kind: PersistentVolumeClaim, metadata: {{name: a, namespace: x}}, spec: {{accessModes: [ReadWriteOnce], resources: \
         {{requests: {{storage: 1Gi}}}}}}}}\n  expect: {verdict}\n"
    )
}

/// A repository with a manifest, a profile, a policy, its suite, and the defaults of `examples/ci`.
fn repository(manifest: &str) -> TempDir {
    let at = directory(&[(".palisade.yaml", text("palisade.yaml"))]);
    let lint = format!("{ROOT}/crates/lint/src/catalogue/blocks_finalizers");
    let policy = |which: &str| fs::read_to_string(format!("{lint}.{which}.yaml")).unwrap();
    let policy = policy(if manifest == GOOD { "good" } else { "bad" });
    for (name, text) in [("profiles", PROFILE), ("manifests", manifest), ("policies", &policy)] {
        fs::create_dir(at.path().join(name)).unwrap();
        fs::write(at.path().join(name).join("a.yaml"), text).unwrap();
    }
    let verdict = if manifest == GOOD { "deny" } else { "allow" };
    fs::write(at.path().join("policies/palisade-test.yaml"), suite(verdict)).unwrap();
    at
}

/// Runs a program there, with the binary in PATH.
fn run(at: &Path, program: &str, arguments: &[&str], variables: &BTreeMap<String, String>) -> Run {
    let binaries = Path::new(env!("CARGO_BIN_EXE_palisade")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(program);
    command.current_dir(at).args(arguments).env_clear().env("PATH", path).envs(variables);
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// A step of an action as GitHub runs it: `sh -e FILE`, expressions replaced, outputs in a file. Returns the outputs, too.
fn step(at: &Path, step: &Json, inputs: &BTreeMap<&str, &str>) -> (Run, BTreeMap<String, String>) {
    assert_eq!(step["shell"], "sh", "{step}");
    let replaced = |text: &str| {
        let mut text = text.to_owned();
        for (name, value) in inputs {
            text = text.replace(&format!("${{{{ inputs.{name} }}}}"), value);
        }
        assert!(!text.contains("${{"), "{text}");
        text
    };
    let (script, outputs) = (at.join("step.sh"), at.join("outputs"));
    fs::write(&script, replaced(step["run"].as_str().unwrap())).unwrap();
    fs::write(&outputs, "").unwrap();
    let variable = |(name, value): (&String, &Json)| (name.clone(), replaced(value.as_str().unwrap()));
    let mut variables: BTreeMap<_, _> = step["env"].as_object().into_iter().flatten().map(variable).collect();
    variables.insert("GITHUB_OUTPUT".to_owned(), outputs.display().to_string());
    let run = run(at, "sh", &["-e", &script.display().to_string()], &variables);
    let outputs = fs::read_to_string(&outputs).unwrap();
    let pairs = outputs.lines().map(|line| line.split_once('=').unwrap());
    (run, pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// The inputs of the action, where nothing else is given.
fn defaults(action: &Json) -> BTreeMap<&str, &str> {
    let inputs = action["inputs"].as_object().unwrap();
    inputs.iter().map(|(name, input)| (name.as_str(), input["default"].as_str().unwrap())).collect()
}

#[test]
fn action_judges_manifests_as_its_inputs_say() {
    let action = example("action.yml");
    let [only] = list(&action["runs"]["steps"]) else { panic!("{action:#}") };
    let with = |manifest: &str, given: &[(&'static str, &'static str)]| {
        let at = repository(manifest);
        let mut inputs = defaults(&action);
        inputs.extend(given.iter().copied());
        let (run, outputs) = step(at.path(), only, &inputs);
        (at, run, outputs)
    };
    for (manifest, given, code) in [
        (GOOD, &[][..], 0),
        (BAD, &[], 1),
        (BAD, &[("options", "--fail-on never")], 0),
        (BAD, &[("options", "--profile profiles/a.yaml --param uid=7"), ("sarif", "a file.sarif")], 1),
        (GOOD, &[("manifests", "manifests/a.yaml profiles")], 0),
        (GOOD, &[("manifests", "nowhere")], 2),
        (GOOD, &[("options", "--nothing")], 2),
    ] {
        let (at, run, outputs) = with(manifest, given);
        assert_eq!(run.code, Some(code), "{given:?}: {}{}", run.out, run.err);
        let file = given.iter().find(|(name, _)| *name == "sarif").map_or("palisade.sarif", |(_, value)| value);
        assert_eq!(outputs, [("sarif".to_owned(), file.to_owned())].into(), "{given:?}");
        assert_eq!(at.path().join(file).is_file(), code < 2, "{given:?}");
        if code == 2 {
            continue;
        }
        let sarif: Json = serde_json::from_str(&fs::read_to_string(at.path().join(file)).unwrap()).unwrap();
        let results = list(&sarif["runs"][0]["results"]).len();
        assert_eq!(results == 0, manifest == GOOD, "{sarif:#}");
        let annotations = ["error", "warning"].map(|kind| format!("::{kind} file=manifests/a.yaml,"));
        let found: usize = annotations.iter().map(|one| run.out.matches(one).count()).sum();
        assert_eq!(found, results, "{}", run.out);
    }
}

#[test]
fn action_declares_what_it_uses() {
    let (action, raw) = (example("action.yml"), text("action.yml"));
    for key in ["name", "description"] {
        assert!(action[key].as_str().is_some_and(|text| !text.is_empty()), "{key}");
    }
    assert_eq!(action["runs"]["using"], "composite");
    assert_eq!(used(&raw, "inputs."), keys(&action["inputs"]));
    for (_, declared) in ["inputs", "outputs"].iter().flat_map(|of| action[of].as_object().unwrap()) {
        assert!(declared["description"].as_str().is_some_and(|text| !text.is_empty()), "{declared}");
    }
    let at = repository(GOOD);
    let mut written = BTreeSet::new();
    for one in list(&action["runs"]["steps"]) {
        let script = one["run"].as_str().unwrap();
        for name in keys(&one["env"]) {
            assert!(script.contains(&format!("${name}")), "{name} is not used");
        }
        let (_, outputs) = step(at.path(), one, &defaults(&action));
        written.extend(outputs.into_keys().map(|name| format!("{}.outputs.{name}", one["id"].as_str().unwrap())));
    }
    let declared: BTreeSet<_> = used(&raw, "steps.").into_iter().map(str::to_owned).collect();
    assert_eq!(declared, written);
    let values = action["outputs"].as_object().unwrap().values().map(|output| output["value"].as_str().unwrap());
    assert_eq!(values.filter(|value| value.contains("${{ steps.")).count(), keys(&action["outputs"]).len());
}

#[test]
fn workflow_gives_the_action_what_it_takes() {
    let (workflow, action) = (example("github-workflow.yaml"), example("action.yml"));
    assert!(text("action.yml").contains("Copy to .github/actions/palisade/action.yml"));
    let (mut uses, mut commands) = (0, BTreeSet::new());
    for job in workflow["jobs"].as_object().unwrap().values() {
        let (steps, raw) = (list(&job["steps"]), job.to_string());
        for one in steps {
            assert!(one["uses"].is_string() != one["run"].is_string(), "{one}");
            if one["uses"] == "./.github/actions/palisade" {
                uses += 1;
                assert!(keys(&one["with"]).is_subset(&keys(&action["inputs"])), "{one}");
                let prefix = format!("steps.{}.outputs.", one["id"].as_str().unwrap());
                let taken = used(&raw, &prefix);
                assert!(!taken.is_empty() && taken.is_subset(&keys(&action["outputs"])), "{taken:?}");
                let [only] = list(&action["runs"]["steps"]) else { panic!("{action:#}") };
                let mut inputs = defaults(&action);
                let given = one["with"].as_object().unwrap();
                inputs.extend(given.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())));
                for (manifest, code) in [(GOOD, 0), (BAD, 1)] {
                    let (run, _) = step(repository(manifest).path(), only, &inputs);
                    assert_eq!(run.code, Some(code), "{}{}", run.out, run.err);
                }
            }
        }
        let scripts = steps.iter().filter_map(|one| one["run"].as_str()).filter(|run| run.starts_with("palisade "));
        for script in scripts {
            for (manifest, code) in [(GOOD, 0), (BAD, 1)] {
                let at = repository(manifest);
                let run = run(at.path(), "sh", &["-e", "-c", script], &BTreeMap::new());
                assert_eq!(run.code, Some(code), "{script}: {}{}", run.out, run.err);
                let file = script.split_once("sarif=").and_then(|(_, rest)| rest.split(' ').next());
                let uploaded = |file: &str| steps.iter().any(|one| one["with"]["sarif_file"] == file);
                assert!(file.is_none_or(|file| at.path().join(file).is_file() && uploaded(file)), "{script}: {file:?}");
                commands.extend(script.split(' ').nth(1).map(str::to_owned));
            }
        }
    }
    assert_eq!((uses, commands), (1, ["lint", "test"].map(str::to_owned).into()));
}

/// A release is made of empty files, and the checksum of its archive does not fit.
#[test]
fn workflow_installs_a_release_whose_checksum_fits() {
    let workflow = example("github-workflow.yaml");
    let steps = list(&workflow["jobs"]["policies"]["steps"]);
    let script = steps.iter().find(|one| one["name"] == "Install palisade").unwrap()["run"].as_str().unwrap();
    let text = |name: &str| workflow["env"][name].as_str().unwrap();
    let version = text("PALISADE_VERSION");
    assert_eq!(version, env!("CARGO_PKG_VERSION"), "the workflow has another version");
    assert!(text("PALISADE_RELEASES").starts_with("https://"));
    let at = tempfile::tempdir().unwrap();
    let release = at.path().join(format!("v{version}"));
    fs::create_dir(&release).unwrap();
    let archive = format!("palisade-{version}-x86_64-linux.tar.gz");
    fs::write(release.join(&archive), "").unwrap();
    fs::write(release.join("SHA256SUMS"), format!("{}  {archive}\n", "0".repeat(64))).unwrap();
    fs::copy(format!("{ROOT}/packaging/install.sh"), release.join("install.sh")).unwrap();
    let variables = [
        ("RUNNER_TEMP", at.path().display().to_string()),
        ("GITHUB_PATH", at.path().join("path").display().to_string()),
        ("PALISADE_VERSION", version.to_owned()),
        ("PALISADE_RELEASES", format!("file://{}", at.path().display())),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value)).into();
    let run = run(at.path(), "bash", &["-e", "-c", script], &variables);
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    assert!(run.err.contains("is not the file that SHA256SUMS names"), "{}", run.err);
    assert!(!at.path().join("path").exists());
}

/// A hook as pre-commit runs it, if a file of these names changes: `entry`, `args` and, unless it says no, the files.
fn hook(at: &Path, hook: &Json, changed: &str) -> Option<Run> {
    for key in ["id", "name", "entry", "language"] {
        assert!(hook[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {hook}");
    }
    assert_eq!((&hook["language"], &hook["pass_filenames"]), (&"system".into(), &false.into()), "{hook}");
    let pattern = hook["files"].as_str().unwrap();
    let matches = ["-c", "printf %s \"$0\" | grep -qE -- \"$1\"", changed, pattern];
    if run(at, "sh", &matches, &BTreeMap::new()).code != Some(0) {
        return None;
    }
    let mut words = hook["entry"].as_str().unwrap().split(' ');
    let program = words.next().unwrap();
    let more = list(&hook["args"]).iter().map(|one| one.as_str().unwrap());
    Some(run(at, program, &words.chain(more).collect::<Vec<_>>(), &BTreeMap::new()))
}

#[test]
fn hooks_run_on_what_is_committed() {
    let hooks = example("pre-commit-hooks.yaml");
    let config = example("pre-commit-config.yaml");
    let local = |repo: &Json| {
        assert_eq!(repo["repo"], "local", "{repo}");
        list(&repo["hooks"]).to_vec()
    };
    let local: Vec<_> = list(&config["repos"]).iter().flat_map(local).collect();
    let all = [(list(&hooks), "manifests"), (&local, "policies")];
    for (hooks, directory) in all {
        assert!(!hooks.is_empty());
        for one in hooks {
            for (manifest, code) in [(GOOD, 0), (BAD, 1)] {
                let at = repository(manifest);
                let run = hook(at.path(), one, &format!("{directory}/a.yaml")).unwrap();
                assert_eq!(run.code, Some(code), "{one}: {}{}", run.out, run.err);
            }
            assert!(hook(repository(GOOD).path(), one, "README.md").is_none(), "{one}");
        }
    }
    // Who uses the hook may say what is judged. If there is nothing to judge, the hook says so.
    let mut other = hooks[0].clone();
    other["args"] = serde_json::json!(["profiles"]);
    let run = hook(repository(BAD).path(), &other, "profiles/a.yaml").unwrap();
    assert_eq!(run.code, Some(2), "{}{}", run.out, run.err);
    assert!(run.err.contains("no object was evaluated"), "{}", run.err);
}

#[test]
fn unknown_field_of_the_defaults_has_its_place() {
    let at = repository(GOOD);
    fs::write(at.path().join(".palisade.yaml"), "profiles: [profiles]\nnamespce: x\n").unwrap();
    let run = run(at.path(), "palisade", &["check", "manifests"], &BTreeMap::new());
    assert!(run.code == Some(2) && run.err.contains(".palisade.yaml:2:1"), "{}", run.err);
    assert!(run.err.contains("did you mean namespace"), "{}", run.err);
}
