//! `AdmissionReview` in, `AdmissionReview` out. Pure: the caller decides the defaults.
//!
//! Version `admission.k8s.io/v1` only (KEP-2872). For any bytes, the result is a review, or an error that describes the
//! invalid part; this module never panics.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use palisade_kube_json::text::truncated;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, value::RawValue};

/// The largest review that is read, in bytes. The API server accepts requests of up to 3 MiB, and a review of an
/// update has the object twice. The same as that of controller-runtime (`pkg/webhook/admission/http.go`).
pub const MAX_BYTES: usize = 7 * 1024 * 1024;

/// The most of an `apiVersion` or `kind` in an error, in characters.
const MAX_NAME: usize = 64;
/// The most of a resource in an error, in characters.
const MAX_RESOURCE: usize = 200;

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Why a review gets no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It is not JSON, or not of a review's shape.
    #[error("the body is not an AdmissionReview: {0}")]
    NotAReview(String),
    /// Another kind, or a version that is not served.
    #[error("the body is a {kind:?} of {api_version:?}; only an AdmissionReview of {API_VERSION} is supported")]
    Version {
        /// `apiVersion` of the body.
        api_version: String,
        /// `kind` of the body.
        kind: String,
    },
    /// `request` is missing: this is an answer, or nothing at all.
    #[error("the AdmissionReview has no request")]
    NoRequest,
    /// The object is not a pod.
    #[error(
        "the request is for {resource}, but this webhook supports only pods: its rules in the \
         MutatingWebhookConfiguration are wrong"
    )]
    NotAPod {
        /// Resource and subresource.
        resource: String,
    },
    /// The pod is missing or is not an object.
    #[error("the request has no valid object: {0}")]
    NoPod(String),
}

/// The content of a review.
#[derive(Clone, Debug)]
pub struct Call {
    /// The pod's namespace.
    pub namespace: String,
    /// `CREATE` or `UPDATE`.
    pub operation: String,
    /// `ephemeralcontainers`, or empty.
    pub subresource: String,
    /// The pod.
    pub pod: Json,
    /// The pod before an update, or null.
    pub old_pod: Json,
    /// Who sends the request, because some users are exempt.
    pub user: User,
}

/// The user of a request.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct User {
    /// The name.
    #[serde(default)]
    pub username: String,
    /// The groups.
    #[serde(default)]
    pub groups: Vec<String>,
}

/// The reply to a review. Requests are always allowed: denying is left to validation.
#[derive(Debug, Default, PartialEq)]
pub struct Reply {
    /// A JSON patch (RFC 6902), if the pod needs a change.
    pub patch: Option<Vec<u8>>,
    /// A warning to the client, on one line.
    pub warning: Option<String>,
}

#[derive(Deserialize)]
struct Review<'a> {
    #[serde(borrow, rename = "apiVersion", default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    request: Option<AdmissionRequest<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionRequest<'a> {
    uid: String,
    #[serde(borrow, default)]
    resource: GroupVersionResource<'a>,
    #[serde(default)]
    sub_resource: String,
    #[serde(default)]
    namespace: String,
    operation: String,
    #[serde(default)]
    user_info: User,
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    old_object: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct GroupVersionResource<'a> {
    #[serde(borrow, default)]
    group: Cow<'a, str>,
    #[serde(borrow, default)]
    version: Cow<'a, str>,
    #[serde(borrow, default, rename = "resource")]
    plural: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<[String; 1]>,
}

/// Answers a review; `reply` decides the defaults.
///
/// # Errors
///
/// The error in the body.
pub fn answer(body: &[u8], reply: impl FnOnce(&Call) -> Reply) -> Result<Vec<u8>, Malformed> {
    let review: Review<'_> = serde_json::from_slice(body).map_err(|error| Malformed::NotAReview(error.to_string()))?;
    if review.api_version != API_VERSION || review.kind != KIND {
        let [api_version, kind] = [review.api_version, review.kind].map(|text| truncated(&text, MAX_NAME).to_owned());
        return Err(Malformed::Version { api_version, kind });
    }
    let request = review.request.ok_or(Malformed::NoRequest)?;
    let GroupVersionResource { group, version, plural } = &request.resource;
    let of_pods = group.is_empty() && version == "v1" && plural == "pods";
    if !of_pods || !matches!(request.sub_resource.as_str(), "" | "ephemeralcontainers") {
        let resource = format!("{group}/{version}/{plural}/{}", request.sub_resource);
        return Err(Malformed::NotAPod { resource: truncated(&resource, MAX_RESOURCE).to_owned() });
    }
    let pod = object(request.object)?.ok_or_else(|| Malformed::NoPod("it is missing".to_owned()))?;
    let call = Call {
        namespace: request.namespace,
        operation: request.operation,
        subresource: request.sub_resource,
        pod,
        old_pod: object(request.old_object)?.unwrap_or_default(),
        user: request.user_info,
    };
    let Reply { patch, warning } = reply(&call);
    let answer = Answer {
        api_version: API_VERSION,
        kind: KIND,
        response: Response {
            uid: &request.uid,
            allowed: true,
            patch_type: patch.as_ref().map(|_| "JSONPatch"),
            patch: patch.map(|patch| STANDARD.encode(patch)),
            warnings: warning.map(|warning| [warning]),
        },
    };
    serde_json::to_vec(&answer).map_err(|error| Malformed::NotAReview(error.to_string()))
}

fn object(raw: Option<&RawValue>) -> Result<Option<Json>, Malformed> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok(None) };
    let value: Json = serde_json::from_str(raw.get()).map_err(|error| Malformed::NoPod(error.to_string()))?;
    if value.is_object() { Ok(Some(value)) } else { Err(Malformed::NoPod("it is not an object".to_owned())) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn review(request: &Json) -> Json {
        json!({"apiVersion": API_VERSION, "kind": KIND, "request": request})
    }

    fn of_pod() -> Json {
        json!({
            "uid": "a", "operation": "CREATE", "namespace": "n",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "object": {"spec": {}}, "oldObject": null, "userInfo": {"username": "u"},
        })
    }

    fn said(body: &Json, reply: Reply) -> Result<Json, Malformed> {
        answer(body.to_string().as_bytes(), |_| reply).map(|bytes| serde_json::from_slice(&bytes).unwrap())
    }

    #[test]
    fn review_response_has_the_uid_and_the_patch() {
        let reply = Reply { patch: Some(b"[]".to_vec()), warning: Some("what".into()) };
        let expected = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": "a", "allowed": true, "patchType": "JSONPatch", "patch": "W10=",
                         "warnings": ["what"]},
        });
        assert_eq!(said(&review(&of_pod()), reply), Ok(expected));
        let nothing = said(&review(&of_pod()), Reply::default()).unwrap();
        assert_eq!(nothing["response"], json!({"uid": "a", "allowed": true}));
    }

    #[test]
    fn invalid_review_is_rejected_with_a_reason() {
        let says = |body: &Json| said(body, Reply::default()).unwrap_err().to_string();
        let mut beta = review(&of_pod());
        beta["apiVersion"] = "admission.k8s.io/v1beta1".into();
        assert!(says(&beta).contains("only an AdmissionReview of admission.k8s.io/v1"), "{}", says(&beta));
        assert_eq!(says(&review(&json!(null))), "the AdmissionReview has no request");
        assert!(says(&json!("x")).starts_with("the body is not an AdmissionReview: "));
        for (field, value, expected) in [
            ("resource", json!({"group": "apps", "version": "v1", "resource": "deployments"}), "apps/v1/deployments/"),
            ("subResource", json!("status"), "/v1/pods/status"),
            ("object", json!(null), "it is missing"),
            ("object", json!("pod"), "it is not an object"),
            ("uid", json!(null), "not an AdmissionReview"),
        ] {
            let mut request = of_pod();
            request[field] = value;
            let text = says(&review(&request));
            assert!(text.contains(expected), "{field}: {text}");
        }
    }

    #[test]
    fn deeply_nested_review_is_rejected() {
        let mut body = review(&of_pod()).to_string();
        body = body.replace(r#"{"spec":{}}"#, &format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
        assert!(answer(body.as_bytes(), |_| Reply::default()).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..512)) {
            let _ = answer(&body, |_| Reply::default());
        }

        #[test]
        fn corrupted_review_never_panics(at in 0_usize..400, byte in any::<u8>(), cut in 0_usize..400) {
            let mut body = review(&of_pod()).to_string().into_bytes();
            let length = body.len();
            body[at % length] = byte;
            let _ = answer(&body, |_| Reply::default());
            body.truncate(cut % length);
            let _ = answer(&body, |_| Reply::default());
        }
    }
}
