//! Color, as users of the binary meet it: no stream of these tests is a terminal.

use std::fs;

use super::{directory, palisade};

const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: a}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: object.spec.}]
";

const PROFILE: &str = "
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools}
spec: {namespaceSelector: {matchLabels: {tenancy: tool}}}
";

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {hostPID: true, containers: [{name: a, image: a}]}
";

#[test]
fn color_is_where_the_command_line_says() {
    let at = directory(&[("policy.yaml", POLICY), ("profile.yaml", PROFILE), ("pod.yaml", POD)]);
    let commands = [
        // A finding on standard output, a violation there, a problem on standard error, a mistake in the command line, help.
        "lint policy.yaml",
        "check --profile profile.yaml pod.yaml",
        "eval -f missing.yaml --request pod.yaml",
        "lint --nothing",
        "lint --help",
    ];
    for command in commands {
        for (flag, no_color, expected) in [
            (None, false, false),
            (Some("--color=never"), false, false),
            (Some("--color=always"), false, true),
            (Some("--color=always"), true, true),
        ] {
            let mut palisade = palisade(at.path());
            palisade.args(command.split(' ').chain(flag)).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
            if no_color {
                palisade.env("NO_COLOR", "1");
            }
            let output = palisade.output().unwrap();
            let text = [output.stdout, output.stderr].concat();
            assert!(!text.is_empty(), "{command}");
            assert_eq!(text.contains(&b'\x1b'), expected, "{command} {flag:?} {no_color}");
        }
    }
}

#[test]
fn reports_in_files_have_no_color() {
    let at = directory(&[("policy.yaml", POLICY)]);
    palisade(at.path()).args(["lint", "--color", "always", "-o", "human=report", "policy.yaml"]).output().unwrap();
    let report = fs::read_to_string(at.path().join("report")).unwrap();
    assert!(report.contains("api-server-rejects") && !report.contains('\x1b'), "{report}");
}
