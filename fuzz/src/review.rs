//! What holds for every answer of the webhook.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use palisade_api::{ToolSecurityParamsSpec, ToolSecurityProfile};
use palisade_compiler::{Mutation, compile};
use palisade_mutation::{
    mutate::mutate,
    review::{Call, Reply, answer},
};
use serde::Deserialize;
use serde_json::{Value as Json, json};

/// What a profile has the webhook say in a namespace.
pub struct Webhook {
    mutation: Mutation,
    params: ToolSecurityParamsSpec,
}

/// Profiles that together use each default and each form of redirection.
const PROFILES: [&str; 3] = [
    r#"{
        "parameters": [{"name": "uid", "type": "Integer", "default": 50001}],
        "users": {
            "runAsUser": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]},
            "runAsGroup": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]},
            "fsGroup": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]},
            "supplementalGroups": {"rule": "MustRunAs", "ranges": [{"min": 1, "max": 65535}]}
        },
        "privileges": {
            "readOnlyRootFilesystem": true,
            "seLinux": {"types": ["container_t"], "levels": ["s0:c1,c2"], "required": true}
        },
        "exemptions": {"users": ["admin"], "runtimeClasses": ["a"]},
        "mutation": {"defaults": "Secure"}
    }"#,
    r#"{
        "baseline": "Privileged",
        "privileges": {"capabilities": {"allowedAdd": [], "requiredDrop": [], "defaultAdd": ["CHOWN", "KILL"]}},
        "images": {"redirect": {"target": "mirror.example/proxy", "pathStyle": "KeepHost"}},
        "mutation": {"additionalDefaults": [
            "AllowPrivilegeEscalation", "HostUsers", "ReadOnlyRootFilesystem", "RunAsNonRoot", "SeccompProfile",
            "SupplementalGroupsPolicy"
        ]}
    }"#,
    r#"{
        "images": {"redirect": {
            "target": "sea.hub:5000", "pathStyle": "StripHost",
            "hosts": [{"host": "ghcr.io", "target": "mirror.example/ghcr"}], "skip": ["quay.io/kept"]
        }},
        "mutation": {"defaults": "Secure"}
    }"#,
];

/// Fields of a pod that may be added, and those of a container besides; each may bring what it is in.
const OF_POD: [&[&str]; 9] = [
    &["hostUsers"],
    &["securityContext", "runAsNonRoot"],
    &["securityContext", "runAsUser"],
    &["securityContext", "runAsGroup"],
    &["securityContext", "fsGroup"],
    &["securityContext", "supplementalGroups"],
    &["securityContext", "supplementalGroupsPolicy"],
    &["securityContext", "seccompProfile"],
    &["securityContext", "seLinuxOptions"],
];
const OF_CONTAINER: [&[&str]; 4] = [
    &["securityContext", "allowPrivilegeEscalation"],
    &["securityContext", "readOnlyRootFilesystem"],
    &["securityContext", "capabilities", "add"],
    &["securityContext", "capabilities", "drop"],
];
/// Those of an ephemeral container besides, which no pod brings any more.
const OF_EPHEMERAL: [&[&str]; 5] = [
    &["securityContext", "runAsNonRoot"],
    &["securityContext", "runAsUser"],
    &["securityContext", "runAsGroup"],
    &["securityContext", "seccompProfile"],
    &["securityContext", "seLinuxOptions"],
];

impl Webhook {
    /// One for each profile.
    pub fn all() -> Vec<Self> {
        let new = |(index, spec): (usize, &&str)| {
            let mut spec: Json = serde_json::from_str(spec).expect("it is JSON");
            spec["namespaceSelector"] = json!({"matchLabels": {"a": "b"}});
            let profile: ToolSecurityProfile = serde_json::from_value(json!({
                "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile",
                "metadata": {"name": format!("profile-{index}")}, "spec": spec,
            }))
            .expect("it is a profile");
            let compiled = compile(&profile).expect("it has no mistakes");
            let mutation = compiled.mutation.expect("it changes something");
            let mut params = ToolSecurityParamsSpec::default();
            params.integers.insert("uid".to_owned(), 50001);
            Self { mutation, params }
        };
        PROFILES.iter().enumerate().map(new).collect()
    }

    /// Asks with any body, and again about the pod that comes of it.
    ///
    /// # Panics
    /// Something does not hold.
    pub fn ask(&self, body: &[u8]) {
        let Some((mut call, patch)) = self.answer(body) else { return };
        if patch.is_empty() {
            return;
        }
        for operation in &patch {
            apply(&mut call.pod, operation);
        }
        let body = review(&call).to_string();
        let (_, left) = self.answer(body.as_bytes()).expect("what was defaulted can be asked about");
        assert!(left.is_empty(), "defaulted twice: {body} {left:?}");
    }

    /// What a body asks about, and the operations that are the answer. None if it is not a review of a pod.
    fn answer(&self, body: &[u8]) -> Option<(Call, Vec<Json>)> {
        let mut asked = None;
        let answered = answer(body, |call| {
            asked = Some(call.clone());
            Reply::from(mutate(&self.mutation, call, Some(&self.params)))
        });
        let answered = match answered {
            Ok(answered) => answered,
            Err(malformed) => {
                assert!(asked.is_none() && !malformed.to_string().is_empty());
                return None;
            }
        };
        let Asked { request: Uid { uid } } = serde_json::from_slice(body).expect("it is a review");
        let Answered { api_version, kind, response } = serde_json::from_slice(&answered).expect("it is an answer");
        assert_eq!((api_version.as_str(), kind.as_str()), ("admission.k8s.io/v1", "AdmissionReview"));
        assert_eq!((response.uid, response.allowed), (uid, true));
        assert_eq!(response.patch_type.as_deref(), response.patch.as_ref().map(|_| "JSONPatch"));
        for warning in &response.warnings {
            assert!(warning.chars().count() < 1100 && !warning.contains(char::is_control), "{warning:?}");
        }
        let patch = response.patch.map(|patch| STANDARD.decode(patch).expect("it is base64"));
        let patch = patch.map(|patch| serde_json::from_slice(&patch).expect("it is a list of operations"));
        Some((asked.expect("it was asked"), patch.unwrap_or_default()))
    }
}

#[derive(Deserialize)]
struct Asked {
    request: Uid,
}

#[derive(Deserialize)]
struct Uid {
    uid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Answered {
    api_version: String,
    kind: String,
    response: Response,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Response {
    uid: String,
    allowed: bool,
    patch_type: Option<String>,
    patch: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

/// A review of a call.
pub fn review(call: &Call) -> Json {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "operation": call.operation,
            "subResource": call.subresource, "namespace": call.namespace,
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "userInfo": {"username": call.user.username, "groups": call.user.groups},
            "object": call.pod, "oldObject": call.old_pod,
        },
    })
}

/// Applies an operation, which adds what is unset or replaces an image.
fn apply(pod: &mut Json, operation: &Json) {
    let text = |field: &str| operation[field].as_str().unwrap_or_else(|| panic!("no {field}: {operation}"));
    let (path, value) = (text("path"), &operation["value"]);
    let before = pod.pointer(path).unwrap_or(&Json::Null);
    let place: Vec<_> = path.split('/').skip(1).collect();
    match text("op") {
        "add" => {
            let unset = match before {
                Json::Null => true,
                Json::Object(fields) => fields.is_empty(),
                Json::Array(items) => items.is_empty(),
                _ => false,
            };
            assert!(unset, "{operation} changes {before}");
            let field = field(&place).unwrap_or_else(|| panic!("{operation} is of no field that may be defaulted"));
            assert!(field || *value == json!({}), "{operation} brings more than what the field is in");
        }
        "replace" => {
            let image = matches!(
                place[..],
                ["spec", "containers" | "initContainers" | "ephemeralContainers", _, "image"]
                    | ["spec", "volumes", _, "image", "reference"]
            );
            assert!(image && before.is_string() && value.is_string(), "{operation} replaces {before}");
        }
        other => panic!("{other}: {operation}"),
    }
    let patch: json_patch::Patch = serde_json::from_value(json!([operation])).expect("it is a patch");
    json_patch::patch(pod, &patch).unwrap_or_else(|error| panic!("{operation}: {error}"));
}

/// Whether a place is that of a field that may be added, or only of something that one is in. None if it is neither.
fn field(place: &[&str]) -> Option<bool> {
    let (fields, rest): (Vec<&[&str]>, _) = match place {
        ["spec", "containers" | "initContainers", _, rest @ ..] => (OF_CONTAINER.to_vec(), rest),
        ["spec", "ephemeralContainers", _, rest @ ..] => ([&OF_CONTAINER[..], &OF_EPHEMERAL].concat(), rest),
        ["spec", rest @ ..] => (OF_POD.to_vec(), rest),
        _ => return None,
    };
    let found = fields.into_iter().find(|field| !rest.is_empty() && field.starts_with(rest))?;
    Some(found.len() == rest.len())
}
