//! The registration: which pods the API server asks this webhook about.
//!
//! There is one `MutatingWebhookConfiguration` with one entry for a profile, so that the API server itself knows, by
//! the profile's own selector, whom to ask about; this process need not know any namespace. The manifests make the
//! object; replicas fill it in, each time with the version that they have read.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference, WebhookClientConfig,
    },
};
use palisade_api::{EngineInForce, ToolSecurityProfile, catalogue::mutation::Engine, names};

use crate::{options::Options, world::Profile};

/// The name of the object and of the Service.
pub const NAME: &str = "palisade-webhook";

/// Whether the API server is to ask about the pods of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// No.
    No,
    /// Yes.
    Yes,
    /// As long as it does: a policy takes over, and is not yet in force.
    Still,
}

impl Wanted {
    /// What the profile wants.
    pub fn of(profile: &ToolSecurityProfile) -> Self {
        let status = profile.status.as_ref().and_then(|status| status.mutation.as_ref());
        let by_policy = status.is_some_and(|status| status.engine == EngineInForce::Native);
        match profile.spec.mutation.engine {
            Engine::Webhook => Self::Yes,
            // Until the controller has seen that the API server does it by itself.
            Engine::Auto if !by_policy => Self::Yes,
            Engine::Native if !by_policy => Self::Still,
            Engine::Auto | Engine::Native | Engine::Off => Self::No,
        }
    }
}

/// How the API server is to ask.
#[derive(Clone, Debug)]
pub struct Terms {
    timeout_seconds: i32,
    url: Option<String>,
}

impl Terms {
    /// As the options say.
    pub fn of(options: &Options) -> Self {
        Self {
            timeout_seconds: i32::from(options.timeout_seconds),
            url: options.url.as_ref().map(|url| url.trim_end_matches('/').to_owned()),
        }
    }

    /// The names by which the API server knows this webhook, for its certificate.
    pub fn server_names(&self) -> Vec<String> {
        match &self.url {
            None => {
                ["svc", "svc.cluster.local"].map(|end| format!("{NAME}.{}.{end}", names::OPERATOR_NAMESPACE)).into()
            }
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

    fn client(&self, profile: &str, authorities: Option<&ByteString>) -> WebhookClientConfig {
        let path = format!("/mutate/{profile}");
        WebhookClientConfig {
            ca_bundle: authorities.cloned(),
            service: self.url.is_none().then(|| ServiceReference {
                name: NAME.to_owned(),
                namespace: names::OPERATOR_NAMESPACE.to_owned(),
                path: Some(path.clone()),
                port: Some(443),
            }),
            url: self.url.as_ref().map(|url| format!("{url}{path}")),
        }
    }
}

/// The entries of the registration.
///
/// `authorities` are those that the API server is to believe, in PEM; without any, those stay that something else has
/// written (the injector of cert-manager).
pub fn entries(
    profiles: &BTreeMap<String, std::sync::Arc<Profile>>,
    terms: &Terms,
    authorities: Option<&str>,
    found: &[MutatingWebhook],
) -> Vec<MutatingWebhook> {
    let written = authorities.map(|pem| ByteString(pem.as_bytes().to_vec()));
    let entry = |(profile, of): (&String, &std::sync::Arc<Profile>)| {
        let name = format!("{profile}.mutate.toolsecurity.dev");
        let known = found.iter().find(|found| found.name == name);
        let wanted = match of.wanted {
            Wanted::Yes => true,
            Wanted::Still => known.is_some(),
            Wanted::No => false,
        };
        let bundle = written.as_ref().or_else(|| known.and_then(|known| known.client_config.ca_bundle.as_ref()));
        let filler = of.filler.as_ref().filter(|_| wanted)?;
        Some(MutatingWebhook {
            admission_review_versions: vec!["v1".to_owned()],
            client_config: terms.client(profile, bundle),
            failure_policy: Some(filler.failure_policy().to_owned()),
            match_conditions: Some(filler.match_conditions()),
            match_policy: Some("Equivalent".to_owned()),
            name,
            namespace_selector: Some(of.selector.clone()),
            object_selector: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector::default()),
            reinvocation_policy: Some("IfNeeded".to_owned()),
            rules: Some(vec![rule("CREATE", "pods"), rule("UPDATE", "pods/ephemeralcontainers")]),
            side_effects: "None".to_owned(),
            timeout_seconds: Some(terms.timeout_seconds),
        })
    };
    profiles.iter().filter_map(entry).collect()
}

fn rule(operation: &str, resource: &str) -> RuleWithOperations {
    let one = |text: &str| Some(vec![text.to_owned()]);
    RuleWithOperations {
        api_groups: one(""),
        api_versions: one("v1"),
        operations: one(operation),
        resources: one(resource),
        scope: Some("Namespaced".to_owned()),
    }
}

/// Whether the API server believes this authority about every entry.
pub fn believes(found: &MutatingWebhookConfiguration, authority: &str) -> bool {
    found.webhooks.iter().flatten().all(|entry| {
        let bundle = entry.client_config.ca_bundle.as_ref().map(|bundle| bundle.0.as_slice()).unwrap_or_default();
        String::from_utf8_lossy(bundle).contains(authority.trim())
    })
}
