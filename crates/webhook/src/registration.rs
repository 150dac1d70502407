//! The registration: the pods for which the API server calls this process.
//!
//! There is one `MutatingWebhookConfiguration` with one entry for each profile, so that the API server selects the pods
//! by the selector of the profile; this process does not need to know namespaces. The controller writes it, from the
//! profiles and from the data that this process publishes here.

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use palisade_api::{Published, names};

use crate::options::Options;

/// How the API server reaches this webhook.
#[derive(Clone, Debug)]
pub struct Endpoint {
    timeout_seconds: u8,
    url: Option<String>,
}

impl Endpoint {
    pub fn of(options: &Options) -> Self {
        Self {
            timeout_seconds: options.timeout_seconds,
            url: options.url.as_ref().map(|url| url.trim_end_matches('/').to_owned()),
        }
    }

    /// The server names of this webhook, for its certificate.
    pub fn server_names(&self) -> Vec<String> {
        match &self.url {
            None => ["svc", "svc.cluster.local"]
                .map(|end| format!("{}.{}.{end}", names::WEBHOOK, names::OPERATOR_NAMESPACE))
                .into(),
            Some(url) => {
                let authority = url.split("://").nth(1).unwrap_or(url).split('/').next().unwrap_or_default();
                let host = match authority.strip_prefix('[') {
                    Some(ipv6) => ipv6.split(']').next().unwrap_or_default(),
                    None => authority.split(':').next().unwrap_or_default(),
                };
                vec![host.to_owned()]
            }
        }
    }

    /// The data that the webhook publishes for the controller. `authorities` are those that API servers must trust, in
    /// PEM. Without any, a CA bundle that another component wrote is kept.
    pub fn published(&self, authorities: Option<String>) -> Published {
        Published { authorities, url: self.url.clone(), timeout_seconds: self.timeout_seconds }
    }
}

/// True if the API server trusts this authority in every entry.
pub fn trusts(found: &MutatingWebhookConfiguration, authority: &str) -> bool {
    found.webhooks.iter().flatten().all(|entry| {
        let bundle = entry.client_config.ca_bundle.as_ref().map(|bundle| bundle.0.as_slice()).unwrap_or_default();
        String::from_utf8_lossy(bundle).contains(authority.trim())
    })
}
