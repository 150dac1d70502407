//! The mutation of pods by a webhook, as an entry of its configuration: the API server calls the webhook for the
//! requests that the policy would match.

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{MutatingWebhook, RuleWithOperations, ServiceReference, WebhookClientConfig},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use palisade_api::{Published, names};

use crate::{Mutation, match_conditions};

impl Mutation {
    /// The entry for a webhook that published this, with each default of the API server written out.
    pub fn webhook(&self, published: &Published) -> MutatingWebhook {
        let failure_policy: &str = self.failure_policy.into();
        MutatingWebhook {
            admission_review_versions: vec!["v1".to_owned()],
            client_config: client(published, &self.profile),
            failure_policy: Some(failure_policy.to_owned()),
            match_conditions: Some(match_conditions(self)),
            match_policy: Some("Equivalent".to_owned()),
            name: names::webhook_entry(&self.profile),
            namespace_selector: Some(self.namespaces.clone()),
            object_selector: Some(LabelSelector::default()),
            reinvocation_policy: Some("IfNeeded".to_owned()),
            rules: Some(vec![rule("CREATE", "pods"), rule("UPDATE", "pods/ephemeralcontainers")]),
            side_effects: "None".to_owned(),
            timeout_seconds: Some(i32::from(published.timeout_seconds)),
        }
    }
}

fn client(published: &Published, profile: &str) -> WebhookClientConfig {
    let path = names::webhook_path(profile);
    WebhookClientConfig {
        ca_bundle: published.authorities.as_ref().map(|pem| ByteString(pem.as_bytes().to_vec())),
        service: published.url.is_none().then(|| ServiceReference {
            name: names::WEBHOOK.to_owned(),
            namespace: names::OPERATOR_NAMESPACE.to_owned(),
            path: Some(path.clone()),
            port: Some(443),
        }),
        url: published.url.as_ref().map(|url| format!("{}{path}", url.trim_end_matches('/'))),
    }
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
