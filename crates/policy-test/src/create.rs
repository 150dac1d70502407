//! New policies, each with its suite, to begin with.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use palisade_admission::objects::{Kinds, Resource};
use palisade_kube_json::json::Change as _;
use palisade_manifest::Source;

use crate::{Files, Server, Status, init::objects::minimal, load, run};

/// A file: its name, and its text.
pub type File = (&'static str, String);

/// The name of the file with the suite.
const SUITE: &str = "palisade-test.yaml";
/// The label that the policy demands.
const LABEL: &str = "app.kubernetes.io/name";
/// The message of the policy if the label is missing.
const MESSAGE: &str = "the label app.kubernetes.io/name is missing; set it in metadata.labels";

/// The files of a new policy for a kind, or its plural: the policy, a binding, an object that complies, one that does
/// not, and a suite, which passes.
///
/// # Errors
/// The name or the kind does not do.
pub fn policy(name: &str, kind: &str, server: &Server) -> Result<Vec<File>, String> {
    if !is_name(name) {
        return Err(format!("{name:?} is not a valid policy name: use lower-case letters, digits and dashes"));
    }
    let kinds = Kinds::builtin(server.minor);
    let is_meant = |one: &&Resource| {
        one.by_default && (one.kind.eq_ignore_ascii_case(kind) || one.plural.eq_ignore_ascii_case(kind))
    };
    let resource = kinds.resources().iter().find(is_meant);
    let resource = resource.ok_or_else(|| format!("Kubernetes {} has no kind {kind}", server.minor))?;
    let files = written(name, resource)?;
    match failed(&files, server) {
        Some(why) => Err(format!("cannot create a policy for {}: {why}", resource.kind)),
        None => Ok(files),
    }
}

/// Also the name of a directory.
fn is_name(text: &str) -> bool {
    let is_letter = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit();
    text.chars().all(|one| is_letter(one) || one == '-')
        && text.starts_with(is_letter)
        && text.ends_with(is_letter)
        && text.len() <= 63
}

fn written(name: &str, resource: &Resource) -> Result<Vec<File>, String> {
    let Resource { group, version, plural, kind, namespaced, .. } = resource;
    let bad = minimal(&resource.api_version(), kind);
    let mut good = bad.clone();
    *good.at_mut(&["metadata", "labels", LABEL]) = "example".into();
    let yaml = |object| serde_saphyr::to_string(object).map_err(|error| error.to_string());
    let group = if group.is_empty() { "\"\"" } else { group };
    let selector = if *namespaced {
        "\x20   namespaceSelector:
      matchExpressions:
      - {key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-node-lease, kube-public, kube-system]}\n"
    } else {
        ""
    };
    let policy = format!(
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {name}
spec:
  # Denies what an expression fails for. Each field that may be missing is asked for first.
  failurePolicy: Fail
  matchConstraints:
{selector}    resourceRules:
    - {{apiGroups: [{group}], apiVersions: [{version}], operations: [CREATE, UPDATE], resources: [{plural}]}}
  matchConditions:
  # What was there before the policy can still be changed elsewhere, and lose its finalizers.
  - name: changed
    expression: request.operation == 'CREATE' || object.metadata.?labels != oldObject.metadata.?labels
  validations:
  - expression: object.metadata.?labels[?'{LABEL}'].hasValue()
    message: {MESSAGE}
"
    );
    let binding = format!(
        "# Warn and Audit deny nothing. When nobody is warned any more: validationActions: [Deny].
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {name}
spec:
  policyName: {name}
  validationActions: [Warn, Audit]
"
    );
    let in_system = if *namespaced {
        "  variants:\n  - {name: in kube-system, namespace: kube-system, expect: allow}\n"
    } else {
        ""
    };
    let suite = format!(
        "# palisade test --coverage --mutate
apiVersion: test.toolsecurity.dev/v1alpha1
kind: PolicyTest
metadata: {{name: {name}}}
policies: [policy.yaml]
# With a binding that denies.
generateBindings: true
cases:
- name: one that complies
  object: good.yaml
  expect: allow
- name: one that does not
  object: bad.yaml
  expect: {{verdict: deny, message: {MESSAGE}}}
{in_system}- name: one from before the policy
  object: bad.yaml
  old: bad.yaml
  variants:
  - {{name: is annotated, set: {{metadata.annotations: {{note: x}}}}, expect: allow}}
- name: one that loses the label
  object: bad.yaml
  old: good.yaml
  expect: {{verdict: deny, message: {MESSAGE}}}
"
    );
    Ok(vec![
        ("policy.yaml", policy),
        ("binding.yaml", binding),
        ("good.yaml", yaml(&good)?),
        ("bad.yaml", yaml(&bad)?),
        (SUITE, suite),
    ])
}

/// Why the suite does not pass, if it does not: the smallest object of a kind that is known may be none that the API
/// server accepts.
fn failed(files: &[File], server: &Server) -> Option<String> {
    let source = |name: &str| {
        let (name, text) = files.iter().find(|(one, _)| *one == name)?;
        Some(Arc::new(Source::new(name, text.clone())))
    };
    let suites = match load(&source(SUITE)?, &Memory(&source), server) {
        Ok(suites) => suites,
        Err(problems) => return problems.first().map(ToString::to_string),
    };
    let results = suites.iter().flat_map(|suite| suite.cases.iter().map(move |case| run(suite, case)));
    results.into_iter().find_map(|result| match result.status {
        Status::Passed => None,
        Status::Failed(_) => Some(format!("{}: {}", result.name, result.answer)),
        Status::NoVerdict(why) => Some(format!("{}: {why}", result.name)),
    })
}

/// Files that are not written yet.
struct Memory<'a>(&'a dyn Fn(&str) -> Option<Arc<Source>>);

impl Files for Memory<'_> {
    fn read(&self, _: &str, path: &str) -> Result<Arc<Source>, String> {
        self.0(path).ok_or_else(|| "file not found".to_owned())
    }

    fn now(&self) -> Timestamp {
        // Only exceptions of profiles end.
        Timestamp::UNIX_EPOCH
    }
}
