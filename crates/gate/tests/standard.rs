//! The levels of the Pod Security Standards give the verdicts of `k8s.io/pod-security-admission` on its own
//! fixtures, for each level and version.
//!
//! The fixtures are not part of this project. They are looked for in `PALISADE_PSA_TESTDATA`
//! (`.../pod-security-admission/test/testdata`), or in the Go module cache, where the control plane of the tests
//! puts them. Where they are missing, the test is ignored, or fails if they are expected (`palisade_needs`).
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is tests")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "fixtures are files")]

use std::{fs, path::Path, process::ExitCode};

use palisade_api::{Level, ToolSecurityProfile, settings::standard};
use palisade_gate::{Decision, ValidationRequest, Validator};
use serde_json::{Value as Json, json};

/// The version of the Go module whose fixtures are looked for.
const MODULE: &str = "k8s.io/pod-security-admission@v0.36.1";

/// What the message must contain, by how the name of a failing fixture begins: what the suite of the standards
/// itself expects (`expectErrorSubstring` in `test/fixtures_*.go`).
const WORDS: [(&str, &str); 19] = [
    ("allowprivilegeescalation", "allowPrivilegeEscalation"),
    ("apparmorprofile", "forbidden AppArmor profile"),
    ("capabilities_baseline", "capabilities"),
    ("capabilities_restricted", "unrestricted capabilities"),
    ("hostnamespaces", "host namespaces"),
    ("hostpathvolumes", "hostPath"),
    ("hostports", "hostPort"),
    ("hostprobesandhostlifecycle", "probe or lifecycle host"),
    ("privileged", "privileged"),
    ("procmount", "procMount"),
    ("restrictedvolumes", "restricted volume types"),
    ("runasnonroot", "runAsNonRoot"),
    ("runasuser", "runAsUser"),
    ("seccompprofile_baseline", "seccompProfile"),
    ("seccompprofile_restricted", "seccompProfile"),
    ("selinuxoptions", "seLinuxOptions"),
    ("sysctls", "forbidden sysctl"),
    ("windowshostprocess", "hostProcess"),
    ("base", ""),
];

fn main() -> ExitCode {
    let fixtures = palisade_needs::module(MODULE, "test/testdata", "PALISADE_PSA_TESTDATA");
    palisade_needs::run(vec![fixtures.trial("fixtures_of_the_standards_get_their_verdicts", |path| {
        fixtures_of_the_standards_get_their_verdicts(&path);
    })])
}

fn policy(level: Level, version: &str) -> Validator {
    let profile: ToolSecurityProfile = serde_json::from_value(json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "standard"},
        "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": level, "baselineVersion": version},
    }))
    .unwrap();
    Validator::new(&palisade_compiler::compile(&profile).unwrap().bundle.pods.policy).unwrap()
}

fn judge(policy: &Validator, pod: &Json) -> Decision {
    policy.evaluate(&ValidationRequest::create("Pod", pod)).unwrap()
}

/// What is wrong with the verdict on a fixture, if anything.
fn wrong(policy: &Validator, name: &str, passes: bool, pod: &Json) -> Option<String> {
    let decision = judge(policy, pod);
    let right = match &decision {
        Decision::Admit => passes,
        Decision::Deny { message, .. } => {
            let word = WORDS.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, word)| word);
            !passes && word.is_some_and(|word| !word.is_empty() && message.contains(word))
        }
    };
    (!right).then(|| format!("{decision:?}"))
}

fn fixtures_of_the_standards_get_their_verdicts(testdata: &Path) {
    let (mut count, mut again, mut mistakes) = (0, 0, Vec::new());
    for (level, directory) in [(Level::Baseline, "baseline"), (Level::Restricted, "restricted")] {
        // Versions that the fixtures do not know yet are judged by the newest that they know.
        let mut newest = None;
        for minor in 0..=standard::LATEST {
            let version = format!("v1.{minor}");
            let path = testdata.join(directory).join(&version);
            let known = path.is_dir();
            let path = if known { path } else { newest.clone().expect("there are fixtures of v1.0") };
            newest = Some(path.clone());
            let policy = policy(level, &version);
            for (verdict, passes) in [("pass", true), ("fail", false)] {
                for file in fs::read_dir(path.join(verdict)).unwrap() {
                    let file = file.unwrap().path();
                    let pod: Json = serde_saphyr::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
                    let name = file.file_stem().unwrap().to_string_lossy().into_owned();
                    *(if known { &mut count } else { &mut again }) += 1;
                    if let Some(found) = wrong(&policy, &name, passes, &pod) {
                        mistakes.push(format!("{directory} {version}: {}: {found}", file.display()));
                    }
                }
            }
        }
    }
    let all = count + again;
    println!(
        "{all} fixtures, {} right ({again} of them the newest, by a version newer than they)",
        all - mistakes.len()
    );
    assert!(count > 4000, "{} holds only {count} fixtures", testdata.display());
    assert!(
        mistakes.is_empty(),
        "{} of {all} are wrong:\n{}",
        mistakes.len(),
        mistakes[..mistakes.len().min(20)].join("\n")
    );
}
