//! The registration, as this process knows it: for which pods the API server calls it.
//!
//! There is one `MutatingWebhookConfiguration` with one entry for a profile, so that the API server itself knows, by
//! the profile's own selector, for which pods to call it; this process need not know any namespace. The controller writes
//! it, from the profiles and from what this process publishes here.

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
    /// From the options.
    pub fn of(options: &Options) -> Self {
        Self {
            timeout_seconds: options.timeout_seconds,
            url: options.url.as_ref().map(|url| url.trim_end_matches('/').to_owned()),
        }
    }

    /// The names by which the API server knows this webhook, for its certificate.
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

    /// What the webhook publishes for the controller. `authorities` are those that API servers shall trust, in PEM.
    /// Without any, a CA bundle that something else wrote stays.
    pub fn published(&self, authorities: Option<String>) -> Published {
        Published { authorities, url: self.url.clone(), timeout_seconds: self.timeout_seconds }
    }
}

/// Whether the API server trusts this authority in every entry.
pub fn trusts(found: &MutatingWebhookConfiguration, authority: &str) -> bool {
    found.webhooks.iter().flatten().all(|entry| {
        let bundle = entry.client_config.ca_bundle.as_ref().map(|bundle| bundle.0.as_slice()).unwrap_or_default();
        String::from_utf8_lossy(bundle).contains(authority.trim())
    })
}
