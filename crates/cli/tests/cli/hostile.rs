//! A thousand inputs that nobody would write by mistake: `palisade lint` says what is wrong or skips them. It never
//! panics, and takes no more than 1 GiB of memory, and 5 s of a processor for each file of a run.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value as Json;

const POLICY: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: a, labels: {a: b}}
spec:
  failurePolicy: Fail
  paramKind: {apiVersion: example.org/v1, kind: Limit}
  matchConstraints:
    namespaceSelector: {matchLabels: {tenancy: tool}}
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  matchConditions:
  - {name: c, expression: request.operation != 'CONNECT'}
  variables:
  - name: x
    expression: |
      object.spec.template.spec.containers
        .map(c, c.name)
  validations:
  - {expression: 'size(variables.x) <= 5', message: too many, reason: Invalid}
  auditAnnotations:
  - {key: k, valueExpression: string(size(variables.x))}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: a}
spec:
  policyName: a
  paramRef: {name: x, parameterNotFoundAction: Deny}
  validationActions: [Deny]
---
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools}
spec:
  namespaceSelector: {matchLabels: {tenancy: tool}}
  baseline: Privileged
  privileges: {privileged: false}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: limits.example.org}
spec:
  group: example.org
  names: {kind: Limit, plural: limits}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, x-kubernetes-validations: [{rule: self.a > 0}], properties: {a: {type: integer}}}}
";

/// What is put in place of a value, or anywhere.
const PIECES: [&str; 28] = [
    "[]",
    "{}",
    "null",
    "~",
    "1e999",
    "-9223372036854775809",
    "'",
    "\"",
    "|",
    ">-",
    "&a [*a]",
    "*a",
    "<<: *a",
    "!!binary x",
    "!!set {a, b}",
    "? a",
    ": b",
    "- - - -",
    "{{ .Values.x }}",
    "\t",
    "\r",
    "\u{0}",
    "\u{feff}",
    "%YAML 9.9",
    "...",
    "---",
    "[[[[[[[[[[[[[[[[",
    "\"\\ud800\"",
];

/// A generator of numbers, the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }
}

/// The policy with some damage.
fn damaged(random: &mut Random) -> Vec<u8> {
    let mut bytes = POLICY.as_bytes().to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..(at + random.below(200)).min(bytes.len()))),
            2 => {
                let piece = PIECES[random.below(PIECES.len())].bytes();
                drop(bytes.splice(at..at, piece));
            }
            3 => {
                // In place of a value.
                let value = bytes[at..].iter().position(|byte| *byte == b':').map_or(at, |found| at + found + 1);
                let end = bytes[value..].iter().position(|b| b",}\n".contains(b)).map_or(bytes.len(), |to| value + to);
                let piece = format!(" {}", PIECES[random.below(PIECES.len())]);
                drop(bytes.splice(value..end, piece.bytes()));
            }
            4 => {
                let copy: Vec<_> = bytes[at..(at + random.below(400)).min(bytes.len())].to_vec();
                drop(bytes.splice(at..at, copy));
            }
            _ => {
                for _ in 0..random.below(20) {
                    let at = random.below(bytes.len());
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = u8::try_from(random.below(256)).unwrap();
                    }
                }
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

/// Many lines.
fn lines(count: usize, line: impl Fn(usize) -> String) -> Vec<u8> {
    (0..count).flat_map(|n| (line(n) + "\n").into_bytes()).collect()
}

/// Inputs that are large or deep, each with a name.
fn large() -> Vec<(&'static str, Vec<u8>)> {
    let in_policy = |value: &str| POLICY.replacen("'size(variables.x) <= 5'", value, 1).into_bytes();
    let validations = |value: &str| {
        let (before, rest) = POLICY.split_once("  validations:\n").unwrap();
        let after = rest.split_once("  auditAnnotations:").unwrap().1;
        format!("{before}  validations: {value}\n  auditAnnotations:{after}").into_bytes()
    };
    let many = |count: usize| format!("[{}]", "1,".repeat(count));
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (one, next) in ('a'..='y').zip('b'..='z') {
        let _ = writeln!(bomb, "{next}: &{next} [{}]", format!("*{one},").repeat(10));
    }
    let list = |items: &str, count: usize| format!("apiVersion: v1\nkind: List\nitems:\n{}", items.repeat(count));
    vec![
        ("bomb", bomb.clone().into_bytes()),
        ("bomb in a policy", format!("{}{}", POLICY.split("spec:").next().unwrap(), bomb).into_bytes()),
        (
            "cyclic",
            b"kind: ValidatingAdmissionPolicy\napiVersion: admissionregistration.k8s.io/v1\nspec: &a {a: *a}\n"
                .to_vec(),
        ),
        ("list of a million", many(1_000_000).into_bytes()),
        ("validations of a million", validations(&many(1_000_000))),
        ("three million", many(3_000_000).into_bytes()),
        ("deep flow", "[".repeat(1_000_000).into_bytes()),
        ("deep block", "- ".repeat(1_000_000).into_bytes()),
        ("deep in a policy", validations(&format!("{}{}", "[".repeat(5000), "]".repeat(5000)))),
        ("deep json", "{\"a\":".repeat(1_000_000).into_bytes()),
        ("deep expression", in_policy(&format!("'{}1{}'", "(".repeat(50_000), ")".repeat(50_000)))),
        ("chain", in_policy(&format!("'{}'", "a.".repeat(40_000)))),
        ("sum", in_policy(&format!("'{}1'", "1+".repeat(40_000)))),
        ("negation", in_policy(&format!("'{}true'", "!".repeat(90_000)))),
        ("long expression", in_policy(&format!("'\"{}\"'", "x".repeat(2_000_000)))),
        ("regular expression", in_policy("\"'a'.matches('((a{1000}){1000}){1000}')\"")),
        ("many validations", validations(&format!("[{}]", "{expression: 'wrong.x'},".repeat(3_000)))),
        ("one line of 15 MiB", format!("a: {}", "x".repeat(15 << 20)).into_bytes()),
        ("more than 16 MiB", vec![b'a'; (16 << 20) + 1]),
        ("binary", (0..4_000_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect()),
        ("zeros", vec![0; 8 << 20]),
        ("many documents", "---\nkind: A\n".repeat(200_000).into_bytes()),
        ("many of a list", list("- {kind: Pod, apiVersion: v1}\n", 200_000).into_bytes()),
        ("many keys", lines(400_000, |n| format!("k{n}: 1"))),
        ("many anchors", lines(200_000, |n| format!("- &a{n} x"))),
        ("long key", format!("{}: 1\n", "k".repeat(4 << 20)).into_bytes()),
        ("comments", "# comment\n".repeat(1_000_000).into_bytes()),
        ("lines", "\n".repeat(8_000_000).into_bytes()),
    ]
}

/// Lints files, within the limits of each; what it found.
fn lint(files: &[PathBuf], what: &str) -> Json {
    let seconds = 5 * files.len();
    let limited = format!(
        "ulimit -v 1048576 && ulimit -t {seconds} && exec \"$0\" lint -o json --fail-on never --allow-unevaluated \"$@\""
    );
    let output =
        Command::new("sh").args(["-c", &limited]).arg(env!("CARGO_BIN_EXE_palisade")).args(files).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("panicked"), "{what}: {}: {said}", output.status);
    let mut report: Json = serde_json::from_slice(&output.stdout).unwrap();
    report["said"] = said.into();
    report
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// Everything that was found has a place in a file that there is.
fn check(report: &Json, what: &str) {
    for finding in report["findings"].as_array().unwrap() {
        let placed = finding["line"].as_u64() >= Some(1) && finding["column"].as_u64() >= Some(1);
        assert!(placed && finding["message"] != "", "{what}: {finding}");
    }
}

#[test]
fn lint_neither_panics_nor_exhausts_memory_on_hostile_files() {
    const COUNT: usize = 972;
    const AT_ONCE: usize = 9;
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random(7);
    let mut found = 0;
    for batch in 0..COUNT / AT_ONCE {
        let files: Vec<_> = (0..AT_ONCE)
            .map(|one| write(directory.path(), &format!("{batch}-{one}.yaml"), &damaged(&mut random)))
            .collect();
        let report = lint(&files, &format!("batch {batch}"));
        check(&report, &format!("batch {batch}"));
        found += report["findings"].as_array().unwrap().len();
    }
    assert!(found > COUNT, "{found} findings: the damage is too small to test anything");
    let large = large();
    assert_eq!(COUNT + large.len(), 1000, "the number is promised");
    for (name, bytes) in large {
        let path = write(directory.path(), "large.yaml", &bytes);
        let report = lint(&[path], name);
        check(&report, name);
        let skipped = report["skipped"].as_object().unwrap().len();
        let empty = matches!(name, "comments" | "lines");
        let named = report["said"].as_str().unwrap().contains("note: not evaluated: ");
        assert!(empty || named || skipped + report["findings"].as_array().unwrap().len() > 0, "{name}: {report}");
    }
}
