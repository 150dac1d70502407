//! What the tests share: policies from snippets, and verdicts from the offline check.

use palisade_compiler::Compiled;
use palisade_gate::{Decision, ValidationRequest, Validator};
use palisade_kube_json::pod::merge;
use palisade_migrate::{Migrated, Options, psp::PodSecurityPolicy, rbac::Rbac};
use palisade_mutation::{MutationRequest, Plan};
use serde_json::{Value as Json, json};

pub const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/allowedProfileNames";
pub const SECCOMP_DEFAULT: &str = "seccomp.security.alpha.kubernetes.io/defaultProfileName";
pub const APP_ARMOR: &str = "apparmor.security.beta.kubernetes.io/allowedProfileNames";
pub const APP_ARMOR_DEFAULT: &str = "apparmor.security.beta.kubernetes.io/defaultProfileName";

/// A policy that allows all that one can allow, changed by a JSON merge patch of `spec` in YAML.
pub fn policy(annotations: &Json, patch: &str) -> Json {
    let mut policy = json!({
        "apiVersion": "policy/v1beta1",
        "kind": "PodSecurityPolicy",
        "metadata": {"name": "policy", "annotations": {SECCOMP: "*"}},
        "spec": {
            "privileged": true,
            "allowedCapabilities": ["*"],
            "volumes": ["*"],
            "hostNetwork": true, "hostPID": true, "hostIPC": true,
            "hostPorts": [{"min": 0, "max": 65535}],
            "seLinux": {"rule": "RunAsAny"},
            "runAsUser": {"rule": "RunAsAny"},
            "supplementalGroups": {"rule": "RunAsAny"},
            "fsGroup": {"rule": "RunAsAny"},
            "allowedUnsafeSysctls": ["*"],
            "allowedProcMountTypes": ["Default", "Unmasked"],
        },
    });
    merge(&mut policy["metadata"]["annotations"], annotations);
    let patch: Json = if patch.is_empty() { json!({}) } else { yaml(patch) };
    merge(&mut policy["spec"], &patch);
    policy
}

pub fn yaml(text: &str) -> Json {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub fn migrate(policy: &Json) -> Migrated {
    let typed: PodSecurityPolicy =
        serde_json::from_value(policy.clone()).unwrap_or_else(|error| panic!("{error}\n{policy:#}"));
    let migrated = palisade_migrate::migrate(&[typed], &Rbac::default(), &Options::default());
    migrated.unwrap_or_else(|mistakes| panic!("{mistakes:?}\n{policy:#}")).remove(0)
}

/// The profile, compiled and checked as the controller does it.
pub fn judge(migrated: &Migrated) -> Validator {
    let compiled = palisade_compiler::compile(&migrated.profile)
        .unwrap_or_else(|mistakes| panic!("{mistakes:?}\n{:#?}", migrated.profile.spec));
    let checked = palisade_gate::check(compiled).unwrap_or_else(|rejected| panic!("{rejected}"));
    // What is written down is the same profile.
    let concise = palisade_migrate::concise(&migrated.profile).unwrap();
    let again: palisade_api::ToolSecurityProfile = serde_json::from_value(concise).unwrap();
    assert_eq!(again, migrated.profile);
    Validator::new(&checked.bundle.pods.policy).unwrap()
}

/// Why a pod is denied, if it is.
pub fn denial(policy: &Validator, pod: &Json) -> Option<String> {
    match policy.evaluate(&ValidationRequest::create("Pod", pod)).unwrap_or_else(|error| panic!("{error}")) {
        Decision::Admit => None,
        Decision::Deny { message, .. } => Some(message),
    }
}

/// A pod with one container, changed by a JSON merge patch of all of it in YAML. `c:` stands for the container.
pub fn pod(patch: &str) -> Json {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod"},
        "spec": {"containers": [{"name": "main", "image": "registry.example.org/main:1"}]},
    });
    let mut patch: Json = if patch.is_empty() { json!({}) } else { yaml(patch) };
    if let Some(container) = patch.as_object_mut().and_then(|fields| fields.remove("c")) {
        merge(&mut pod["spec"]["containers"][0], &container);
    }
    merge(&mut pod["spec"], &patch);
    pod
}

/// The pod after what the profile sets defaults.
pub fn defaulted(migrated: &Migrated, pod: &Json) -> Json {
    defaulted_by(&palisade_compiler::compile(&migrated.profile).unwrap(), pod)
}

/// The pod after what the compiled profile sets defaults.
pub fn defaulted_by(compiled: &Compiled, pod: &Json) -> Json {
    let plan = Plan::new(compiled.mutation.as_ref().map(|mutation| (mutation, None)));
    let mut mutated = pod.clone();
    plan.patch(&MutationRequest::create("tenant", pod)).apply(&mut mutated).unwrap();
    mutated
}
