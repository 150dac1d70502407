//! Any bytes as an AdmissionReview, and any JSON as the pod of one: each answer is a review, its patch applies, changes
//! nothing but what it may, and leaves nothing to change.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use palisade_fuzz::{
    json,
    review::{Webhook, review},
};
use palisade_mutation::review::{Call, User};
use serde_json::{Value as Json, json};

static WEBHOOKS: LazyLock<Vec<Webhook>> = LazyLock::new(Webhook::all);

const WORDS: &[&str] = &[
    "metadata",
    "annotations",
    "labels",
    "kubernetes.io/config.mirror",
    "toolsecurity.dev/probe-mutation",
    "seccomp.security.alpha.kubernetes.io/pod",
    "spec",
    "os",
    "name",
    "windows",
    "linux",
    "hostUsers",
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "runtimeClassName",
    "containers",
    "initContainers",
    "ephemeralContainers",
    "restartPolicy",
    "securityContext",
    "runAsUser",
    "runAsGroup",
    "runAsNonRoot",
    "fsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seccompProfile",
    "seLinuxOptions",
    "type",
    "level",
    "RuntimeDefault",
    "Unconfined",
    "allowPrivilegeEscalation",
    "readOnlyRootFilesystem",
    "privileged",
    "procMount",
    "capabilities",
    "add",
    "drop",
    "ALL",
    "NET_RAW",
    "SYS_ADMIN",
    "CAP_SYS_ADMIN",
    "volumes",
    "volumeDevices",
    "image",
    "reference",
    "nginx",
    "docker.io/library/nginx:1.25",
    "quay.io/a/b@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "sea.hub:5000/library/nginx",
    "[2001:db8::1]:5000/x",
    "localhost/x",
    "a",
    "",
    "x/y~z",
];

fuzz_target!(|input: &[u8]| {
    for webhook in WEBHOOKS.iter() {
        webhook.ask(input);
    }
    let [shape, rest @ ..] = input else { return };
    let (pod, old_pod) = match json(rest, WORDS) {
        Json::Array(mut pods) if pods.len() > 1 => (pods.swap_remove(0), pods.swap_remove(0)),
        spec => (json!({"metadata": {"name": "a"}, "spec": spec}), Json::Null),
    };
    let (operation, subresource) =
        [("CREATE", ""), ("UPDATE", "ephemeralcontainers"), ("UPDATE", ""), ("CREATE", "ephemeralcontainers")]
            [usize::from(shape & 3)];
    let pick = |bit: u8, choices: [&str; 2]| choices[usize::from(shape >> bit & 1)].to_owned();
    let call = Call {
        operation: operation.to_owned(),
        subresource: subresource.to_owned(),
        namespace: pick(3, ["tool-a", "palisade-probe"]),
        user: User { username: pick(4, ["system:node:x", "somebody"]), groups: vec![pick(5, ["system:nodes", "a"])] },
        pod,
        old_pod,
    };
    let body = review(&call).to_string();
    for webhook in WEBHOOKS.iter() {
        webhook.ask(body.as_bytes());
    }
});
