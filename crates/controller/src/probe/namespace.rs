//! One dry run in the probe namespace, and the answer of an API server.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
    client::Body,
    core::{PartialObjectMeta, Request},
};
use palisade_api::names;
use palisade_kube_json::selector::Labels;
use serde_json::{Value as Json, json};
use tokio::time::timeout;

use super::{
    labels::Relabelling,
    servers::{Server, Servers},
    wait::{ANSWER_TIMEOUT, no_answer},
};
use crate::{api_request::ApiError, watch::store::Store};

/// The pause between two attempts in one turn, and how far it grows.
pub const ATTEMPT_BACKOFF: (Duration, Duration) = (Duration::from_millis(15), Duration::from_millis(120));

/// The probe namespace and the API servers.
pub struct ProbeNamespace {
    /// A client of the configured address.
    pub client: Client,
    /// The state of the cluster.
    pub store: Arc<Store>,
    /// The API servers that are asked.
    pub servers: Arc<Servers>,
}

/// Answer of an API server.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub warnings: Vec<String>,
    pub body: Vec<u8>,
}

/// The verdict of one policy on an object, at one API server.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyAnswer {
    Admitted {
        /// True if the policy warns.
        warned: bool,
    },
    /// The policy denies it, with this message.
    Denied(String),
    /// The policy denies everything, because its parameters or their kind are missing.
    Broken(String),
    /// Another component answered.
    Other(String),
}

impl ProbeNamespace {
    /// Sets these labels on the namespace, and removes those that were set before, except for those of the
    /// installation.
    ///
    /// # Errors
    ///
    /// If the labels could not be set.
    pub async fn label(&self, labels: &Labels) -> Result<(), String> {
        let namespace = names::PROBE_NAMESPACE;
        if !self.store.has_namespace(namespace) {
            return Err(format!("namespace {namespace} does not exist"));
        }
        let api: Api<PartialObjectMeta<Namespace>> = Api::all(self.client.clone());
        let labelled = relabel(&api, labels).await;
        labelled.map_err(|why| format!("namespace {namespace} could not be labelled: {why}"))
    }

    /// Sends a server a dry run of the creation of an object at a path.
    ///
    /// # Errors
    ///
    /// The reason why there is no answer.
    pub async fn ask(&self, server: &Server, path: &str, object: &Json) -> Result<Reply, String> {
        if let Some(why) = server.silent() {
            return Err(why);
        }
        let dry_run = PostParams { dry_run: true, field_manager: Some(names::field_manager::PROBE.to_owned()) };
        let request = Request::new(path)
            .create(&dry_run, object.to_string().into_bytes())
            .map_err(|error| error.to_string())?
            .map(Body::from);
        let exchange = async {
            let answer = server.client.send(request).await?;
            let status = answer.status();
            let warnings = answer.headers().get_all("warning").iter();
            let warnings = warnings.filter_map(|text| text.to_str().ok().map(str::to_owned)).collect();
            let body = answer.into_body().collect_bytes().await?.to_vec();
            Ok::<_, kube::Error>(Reply { status, warnings, body })
        };
        let why = match timeout(ANSWER_TIMEOUT, exchange).await {
            Ok(Ok(reply)) => return Ok(reply),
            Ok(Err(error)) => ApiError::from(error).to_string(),
            Err(_) => no_answer(),
        };
        self.servers.missed_an_answer();
        Err(why)
    }
}

/// Sets the labels. Each answer may take its time: a slow API server is asked, too.
async fn relabel(api: &Api<PartialObjectMeta<Namespace>>, labels: &Labels) -> Result<(), String> {
    let namespace = names::PROBE_NAMESPACE;
    // The controller may list namespaces, and get none.
    let named = ListParams::default().fields(&format!("metadata.name={namespace}"));
    let found = in_time(api.list_metadata(&named)).await?.items.pop().map(|found| found.metadata).unwrap_or_default();
    let Relabelling { restored, applied } = Relabelling::new(&found, labels);
    if !restored.is_empty() {
        let manager = names::field_manager::INSTALLED.to_owned();
        let manager = PatchParams { field_manager: Some(manager), ..PatchParams::default() };
        let restored = Patch::Merge(json!({"metadata": {"labels": restored}}));
        in_time(api.patch_metadata(namespace, &manager, &restored)).await?;
    }
    let patch = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": applied}});
    let apply = PatchParams::apply(names::field_manager::PROBE).force();
    in_time(api.patch(namespace, &apply, &Patch::Apply(&patch))).await.map(drop)
}

/// The answer to a request, or why there is none.
async fn in_time<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    match timeout(ANSWER_TIMEOUT, request).await {
        Ok(answer) => answer.map_err(|error| ApiError::from(error).to_string()),
        Err(_) => Err(no_answer()),
    }
}

impl Reply {
    /// Its body as text, not all of a long one.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).chars().take(10_000).collect()
    }

    /// The verdict that it shows for a policy.
    pub fn of_policy(&self, policy: &str) -> PolicyAnswer {
        let of_policy = format!("ValidatingAdmissionPolicy '{policy}'");
        if self.status.is_success() {
            return PolicyAnswer::Admitted { warned: self.warnings.iter().any(|text| text.contains(&of_policy)) };
        }
        let status: Option<Json> = serde_json::from_slice(&self.body).ok();
        let message = status.as_ref().and_then(|status| status["message"].as_str());
        let message = format!("{} (HTTP {})", message.map_or_else(|| self.text(), str::to_owned), self.status.as_u16());
        match message.contains(&of_policy) {
            // It finds neither parameters nor their kind yet.
            true if message.contains("no params found") || message.contains("failed to configure") => {
                PolicyAnswer::Broken(message)
            }
            true => PolicyAnswer::Denied(message),
            false => PolicyAnswer::Other(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(code: u16, message: &str, warnings: &[&str]) -> Reply {
        Reply {
            status: StatusCode::from_u16(code).unwrap(),
            warnings: warnings.iter().map(|&text| text.to_owned()).collect(),
            body: json!({"kind": "Status", "message": message}).to_string().into_bytes(),
        }
    }

    #[test]
    fn only_a_violation_of_the_probed_policy_counts_as_denied() {
        let denied = "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'palisade-a-pods' with binding \
                      'palisade-a-pods' denied request: 1 violation";
        let broken = "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'palisade-a-pods' with binding \
                      'palisade-a-pods' denied request: failed to configure binding: no params found for policy \
                      binding with `Deny` parameterNotFoundAction";
        assert!(matches!(reply(422, denied, &[]).of_policy("palisade-a-pods"), PolicyAnswer::Denied(_)));
        assert!(matches!(reply(422, denied, &[]).of_policy("palisade-a"), PolicyAnswer::Other(_)));
        assert!(matches!(reply(422, denied, &[]).of_policy("palisade-b-pods"), PolicyAnswer::Other(_)));
        assert!(matches!(reply(403, broken, &[]).of_policy("palisade-a-pods"), PolicyAnswer::Broken(_)));
        assert!(matches!(reply(403, "exceeded quota", &[]).of_policy("palisade-a-pods"), PolicyAnswer::Other(_)));
        assert_eq!(reply(201, "", &[]).of_policy("palisade-a-pods"), PolicyAnswer::Admitted { warned: false });
        let warning = "299 - \"Validation failed for ValidatingAdmissionPolicy 'palisade-a-pods' with binding \
                       'palisade-a-pods': 1 violation\"";
        assert_eq!(reply(201, "", &[warning]).of_policy("palisade-a-pods"), PolicyAnswer::Admitted { warned: true });
        assert_eq!(reply(201, "", &[warning]).of_policy("palisade-a"), PolicyAnswer::Admitted { warned: false });
    }
}
