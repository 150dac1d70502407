//! Exceptions that tenants ask for: each command judges by those that are approved, and says which have no effect.

use super::{directory, run_in};

const PROFILE: &str = "
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools}
spec:
  namespaceSelector: {matchLabels: {tenancy: tool}}
  baseline: Baseline
  exceptionRequests: {checks: [privileged], message: Ask ops}
";

const NAMESPACE: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: tool-a, labels: {tenancy: tool}}
";

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: bad, namespace: tool-a}
spec:
  containers:
  - {name: app, image: registry.example/app:1, securityContext: {privileged: true}}
";

const SUITE: &str = "
apiVersion: test.toolsecurity.dev/v1alpha1
kind: PolicyTest
policies: [profile.yaml]
resources: [namespace.yaml]
cases:
- {name: the pod, object: {file: pod.yaml}, expect: allow}
";

const UID: &str = "0b1e7d9a-5a0b-4a2e-9a53-5f4f6f1a2b3c";

fn exception(scope: &str, expires: &str, generation: u32) -> String {
    format!(
        "---
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityException
metadata: {{name: asked, namespace: tool-a, uid: {UID}, generation: 2, creationTimestamp: '2026-01-01T00:00:00Z'}}
spec: {{profile: tools, checks: [privileged], scope: {scope}, reason: x, expires: '{expires}'}}
status: {{approval: {{uid: {UID}, generation: {generation}}}}}
"
    )
}

#[test]
fn every_command_judges_by_what_is_approved() {
    let later = "2999-01-01T00:00:00Z";
    for (scope, expires, generation, admitted, note) in [
        ("{kind: Pod, name: bad, imagePrefix: registry.example/}", later, 2, true, None),
        ("{kind: Namespace, container: other}", later, 2, false, None),
        ("{kind: Namespace}", later, 1, false, Some("no effect; ApprovalOutdated")),
        ("{kind: Namespace}", "2026-01-02T00:00:00Z", 2, false, Some("no effect; Expired")),
    ] {
        let tenant = format!("{NAMESPACE}{}", exception(scope, expires, generation));
        let files = directory(&[
            ("profile.yaml", PROFILE),
            ("namespace.yaml", tenant.as_str()),
            ("pod.yaml", POD),
            ("suite.yaml", SUITE),
        ]);
        let commands: [&[&str]; 3] = [
            &["eval", "--policies", "profile.yaml", "--policies", "namespace.yaml", "pod.yaml"],
            &["check", "--explain", "pod.yaml", "--profile", "profile.yaml", "--namespaces", "namespace.yaml"],
            &["test", "suite.yaml"],
        ];
        for command in commands {
            let run = run_in(files.path(), command, "");
            assert_eq!(run.code, Some(i32::from(!admitted)), "{command:?} {scope} {expires}: {}{}", run.out, run.err);
            if let Some(note) = note.filter(|_| command[0] != "test") {
                assert!(run.err.contains(note), "{command:?}: {}", run.err);
            }
        }
    }
}
