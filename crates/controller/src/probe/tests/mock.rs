//! An API server in memory that has a probe namespace.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Method, Response};
use kube::{Client, client::Body};
use palisade_api::names;
use serde_json::{Value as Json, json};
use tokio::time::sleep;
use tower::{BoxError, service_fn};

/// An API server that has a probe namespace.
#[derive(Default)]
pub struct Mock(Mutex<State>);

#[derive(Default)]
pub struct State {
    /// The latest labels of the namespace.
    pub labels: BTreeMap<String, String>,
    /// The subjects and resources that this server enforces.
    pub in_force: BTreeSet<(String, &'static str)>,
    /// Whether it denies compliant objects, too.
    pub confused: bool,
    /// How long each answer takes; `None`: for ever.
    pub latency: Option<Duration>,
    /// The status codes of the answers to the next writes of labels.
    pub refusals: VecDeque<u16>,
    /// The status code of the answer to each write of labels.
    pub refuses: Option<u16>,
    /// A warning of the webhook on each pod.
    pub warning: Option<String>,
    /// How many dry runs it was sent.
    pub requests: usize,
}

/// How long an answer takes.
pub const LATENCY: Duration = Duration::from_millis(5);

impl Mock {
    pub fn new() -> Arc<Self> {
        let mock = Self::default();
        mock.set(|state| state.latency = Some(LATENCY));
        Arc::new(mock)
    }

    pub fn set<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    /// From now on, the server enforces a policy for these resources.
    pub fn enforce(&self, subject: &str, shapes: &[&'static str]) {
        self.set(|state| state.in_force.extend(shapes.iter().map(|&shape| (subject.to_owned(), shape))));
    }

    /// The client of a server that shares the namespace of `namespace`.
    pub fn client(self: &Arc<Self>, namespace: &Arc<Self>) -> Client {
        let (mock, namespace) = (Arc::clone(self), Arc::clone(namespace));
        let service = service_fn(move |request: http::Request<Body>| {
            let (mock, namespace) = (Arc::clone(&mock), Arc::clone(&namespace));
            async move {
                let (head, body) = request.into_parts();
                let body: Json = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
                mock.set(|state| state.requests += usize::from(head.method == Method::POST));
                match mock.set(|state| state.latency) {
                    Some(latency) => sleep(latency).await,
                    None => std::future::pending().await,
                }
                let (code, warning, body) = mock.answer(&namespace, &head.method, head.uri.path(), body);
                let mut response = Response::builder().status(code);
                if let Some(warning) = warning {
                    response = response.header("warning", warning);
                }
                Ok::<_, BoxError>(response.body(Body::from(body.to_string().into_bytes()))?)
            }
        });
        Client::new(service, "default")
    }

    fn answer(&self, namespace: &Self, method: &Method, path: &str, body: Json) -> (u16, Option<String>, Json) {
        let status = |code: u16, message: String| {
            let reason = if code == 404 { "NotFound" } else { "Forbidden" };
            (
                code,
                None,
                json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}),
            )
        };
        if method == Method::GET {
            return match path {
                "/version" => (200, None, json!({})),
                "/api/v1/namespaces" => {
                    let labels = namespace.set(|state| state.labels.clone());
                    (200, None, json!({"metadata": {}, "items": [{"metadata": probed(&labels)}]}))
                }
                _ => status(404, "no".to_owned()),
            };
        }
        if method == Method::PATCH {
            let refusal = self.set(|state| state.refusals.pop_front().or(state.refuses));
            if let Some(code) = refusal {
                return status(code, format!("refused with {code}"));
            }
            let labels = serde_json::from_value(body["metadata"]["labels"].clone()).unwrap_or_default();
            namespace.set(|state| state.labels = labels);
            return (200, None, body);
        }
        let (resource, shape) =
            if path.ends_with("/podtemplates") { ("podtemplates", "workloads") } else { ("pods", "pods") };
        assert!(path.starts_with("/api/v1/namespaces/palisade-probe/"), "{path}");
        let text = |at: &str| body.pointer(at).and_then(Json::as_str).unwrap_or_default().to_owned();
        let subject = text("/metadata/labels/toolsecurity.dev~1profile");
        let shape = if subject.rsplit('.').next() == Some("o") { "objects" } else { shape };
        let profile = subject.split('.').next().unwrap_or_default().to_owned();
        let selected = namespace.set(|state| state.labels.get("tenancy") == Some(&profile));
        let (enforces, confused) =
            self.set(|state| (state.in_force.contains(&(subject.clone(), resource)), state.confused));
        if selected && enforces && (confused || text("/metadata/name").ends_with("violating")) {
            let policy = format!("palisade-{profile}-{shape}");
            return status(
                422,
                format!("ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: 1 violation"),
            );
        }
        (201, self.set(|state| state.warning.clone()), body)
    }
}

/// The metadata of the probe namespace, all of whose labels are of probes.
fn probed(labels: &BTreeMap<String, String>) -> Json {
    let fields: BTreeMap<_, _> = labels.keys().map(|key| (format!("f:{key}"), json!({}))).collect();
    let entry = json!({"manager": names::field_manager::PROBE, "fieldsV1": {"f:metadata": {"f:labels": fields}}});
    json!({"name": names::PROBE_NAMESPACE, "labels": labels, "managedFields": [entry]})
}
