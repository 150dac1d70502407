//! Any bytes as each input of each subcommand, and any JSON in place of a part of it: no panic, no hang, no memory
//! without bounds, and an exit code that is documented.
#![no_main]

#[path = "../../crates/cli/tests/support/commands.rs"]
mod commands;

use std::{path::PathBuf, sync::LazyLock};

use commands::{COMMANDS, objects, part, parts, run};
use libfuzzer_sys::fuzz_target;
use palisade_fuzz::json;
use serde_json::Value as Json;

/// In memory, where there is such a thing: each run writes files.
static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let at = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let directory = at.join(format!("palisade-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory for files can be made");
    directory
});

const WORDS: &[&str] = &[
    "apiVersion", "kind", "metadata", "name", "namespace", "labels", "annotations", "finalizers", "spec", "status", "data",
    "items", "v1", "apps/v1", "Pod", "Namespace", "List", "PodList", "Deployment", "Lease", "ConfigMap", "ToolSecurityProfile",
    "toolsecurity.dev/v1alpha1", "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "containers", "image",
    "nginx", "securityContext", "privileged", "capabilities", "add", "volumes", "hostPath", "path", "parameters", "$uid",
    "rules", "expression", "object.metadata.name == 'x'", "params", "true", "2026-01-01T00:00:00Z", "2026-01-01T00:00:0é",
    "[privileged] pod: x", "1Gi", "100m", "é😀", "", "x",
];

fuzz_target!(|input: &[u8]| {
    let [which, at, how, rest @ ..] = input else { return };
    let inputs = COMMANDS.iter().flat_map(|command| (0..command.inputs.len()).map(move |input| (command, input)));
    let inputs: Vec<_> = inputs.collect();
    let (command, input) = inputs[usize::from(*which) % inputs.len()];
    let bytes = if how % 4 == 0 {
        rest.to_vec()
    } else {
        let mut all = objects(command.inputs[input].1);
        let index = usize::from(*at) + 256 * usize::from(how / 4);
        let mut wanted = index % all.iter().map(parts).sum::<usize>();
        for object in &mut all {
            let own = parts(object);
            if wanted < own {
                if let Some(part) = part(object, wanted) {
                    *part = json(rest, WORDS);
                }
                break;
            }
            wanted -= own;
        }
        all.iter().map(|object: &Json| format!("{object}\n---\n")).collect::<String>().into_bytes()
    };
    let outcome = run(command, &DIRECTORY, input, &bytes);
    assert!(outcome.code <= 2, "exit code {}", outcome.code);
});
