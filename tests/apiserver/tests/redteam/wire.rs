//! Requests as an attacker writes them: any method, path, type of content and bytes.

use http::{Response, header};
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use palisade_kube_json::text::truncated;
use palisade_tests::Cluster;
use serde_json::{Value as Json, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// The most of an answer in a report, in characters.
const MAX_MESSAGE: usize = 300;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) content: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &'static str, path: impl Into<String>, content: &'static str, body: &Json) -> Self {
        Self::raw(method, path, content, body.to_string().into_bytes())
    }

    pub(crate) fn raw(method: &'static str, path: impl Into<String>, content: &'static str, body: Vec<u8>) -> Self {
        Self { method, path: path.into(), content, accept: JSON, body }
    }

    /// A dry run of the creation of an object.
    pub(crate) fn dry_run(path: &str, object: &Json) -> Self {
        Self::new("POST", format!("{path}?dryRun=All"), JSON, object)
    }

    /// A dry run of the creation of a pod.
    pub(crate) fn pod(namespace: &str, pod: &Json) -> Self {
        Self::dry_run(&pods(namespace), pod)
    }

    /// The creation of an object.
    pub(crate) fn create(path: &str, object: &Json) -> Self {
        Self::new("POST", path, JSON, object)
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::raw("GET", path, JSON, vec![])
    }

    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::raw("DELETE", path, JSON, vec![])
    }
}

/// The path of the pods of a namespace.
pub(crate) fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

/// An answer. Without one, the status is 0.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Json,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    pub(crate) fn is_admitted(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The text with which a generated policy denied it.
    pub(crate) fn denial(&self) -> Option<&str> {
        let text = self.message();
        (!self.is_admitted() && text.contains("ValidatingAdmissionPolicy 'palisade-")).then_some(text)
    }

    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    /// For people.
    pub(crate) fn short(&self) -> String {
        let text = if self.is_admitted() { "admitted" } else { self.message() };
        format!("{} {}", self.status, truncated(text, MAX_MESSAGE))
    }
}

/// Sends a request, whatever comes of it.
pub(crate) async fn send(client: &Client, request: &Request) -> Answer {
    match attempt(client, request).await {
        Ok(answer) => answer,
        Err(error) => Answer { status: 0, body: json!({"message": error.to_string()}), bytes: vec![] },
    }
}

async fn attempt(client: &Client, request: &Request) -> Result<Answer> {
    let built = http::Request::builder()
        .method(request.method)
        .uri(&request.path)
        .header(header::CONTENT_TYPE, request.content)
        .header(header::ACCEPT, request.accept)
        .body(Body::from(request.body.clone()))?;
    let response: Response<Body> = client.send(built).await?;
    let status = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await?.to_vec();
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| json!({"message": String::from_utf8_lossy(&bytes[..bytes.len().min(300)])}));
    Ok(Answer { status, body, bytes })
}

/// A client that the API server takes for a user, with the rights that RBAC gives that user and no others.
pub(crate) async fn client_of(cluster: &Cluster, user: &str, groups: &[&str]) -> Result<Client> {
    let kubeconfig = Kubeconfig::from_yaml(cluster.control_plane.kubeconfig())?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.auth_info.impersonate = Some(user.to_owned());
    config.auth_info.impersonate_groups = Some(groups.iter().map(|&group| group.to_owned()).collect());
    Ok(Client::try_from(config)?)
}
