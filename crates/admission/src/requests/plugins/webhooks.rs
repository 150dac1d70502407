//! `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`: the answers of a webhook are unknown here, so there is
//! no verdict on a request for which the API server calls one of the files' webhooks
//! (`k8s.io/apiserver/pkg/admission/plugin/webhook`).
//!
//! Match conditions are assumed to hold. Webhooks that a caller registers with their answers are not among these
//! ([`Cluster::register`](crate::requests::Cluster::register)).

use k8s_openapi::{
    api::admissionregistration::v1::{MatchResources, NamedRuleWithOperations, RuleWithOperations},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use serde::Deserialize;
use serde_json::Value as Json;

use super::{Attributes, PluginRemarks, items};
use crate::{
    objects::Refused,
    requests::{Request, matching, refusal::MatchError},
};

/// The fields of webhooks of both kinds that select requests.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Webhook {
    name: String,
    rules: Option<Vec<RuleWithOperations>>,
    namespace_selector: Option<LabelSelector>,
    object_selector: Option<LabelSelector>,
    match_policy: Option<String>,
}

impl Webhook {
    fn constraints(&self) -> MatchResources {
        let named = |rule: &RuleWithOperations| NamedRuleWithOperations {
            api_groups: rule.api_groups.clone(),
            api_versions: rule.api_versions.clone(),
            operations: rule.operations.clone(),
            resources: rule.resources.clone(),
            scope: rule.scope.clone(),
            resource_names: None,
        };
        MatchResources {
            resource_rules: Some(self.rules.iter().flatten().map(named).collect()),
            namespace_selector: self.namespace_selector.clone(),
            object_selector: self.object_selector.clone(),
            match_policy: self.match_policy.clone(),
            exclude_resource_rules: None,
        }
    }
}

pub(super) fn mutate(attributes: &Attributes<'_>, object: &mut Json) -> Result<(), Refused> {
    asked(
        attributes,
        Some(&*object).filter(|object| !object.is_null()),
        "MutatingAdmissionWebhook",
        "MutatingWebhookConfiguration",
    )
}

pub(super) fn validate(
    attributes: &Attributes<'_>,
    object: Option<&Json>,
    _: &mut PluginRemarks,
) -> Result<(), Refused> {
    asked(attributes, object, "ValidatingAdmissionWebhook", "ValidatingWebhookConfiguration")
}

fn asked(attributes: &Attributes<'_>, object: Option<&Json>, plugin: &str, kind: &str) -> Result<(), Refused> {
    // No webhook is asked about what decides who is asked.
    if attributes.request.resource.group == "admissionregistration.k8s.io" {
        return Ok(());
    }
    let request = Request {
        object: object.cloned(),
        old_object: attributes.old.cloned().or_else(|| attributes.request.old_object.clone()),
        ..attributes.request.clone()
    };
    for configuration in attributes.all("admissionregistration.k8s.io", kind, "") {
        let of = configuration["metadata"]["name"].as_str().unwrap_or_default();
        for webhook in items(&configuration["webhooks"]) {
            let no_verdict = |why: String| Err(Refused::NoVerdict(format!("admission plugin {plugin}: {why}")));
            let webhook: Webhook = match serde_json::from_value(webhook.clone()) {
                Ok(webhook) => webhook,
                Err(error) => return no_verdict(format!("{kind} {of:?}: {error}")),
            };
            let constraints = webhook.constraints();
            if constraints.resource_rules.as_ref().is_none_or(Vec::is_empty) {
                continue;
            }
            let name = &webhook.name;
            match matching::matches(Some(&constraints), &request, attributes.cluster) {
                Ok(None) => {}
                Ok(Some(_)) => {
                    return no_verdict(format!(
                        "webhook {name:?} of {of:?} is asked, and what it answers is not known"
                    ));
                }
                Err(MatchError::NoVerdict(why) | MatchError::Configuration(why)) => {
                    return no_verdict(format!("webhook {name:?} of {of:?}: {why}"));
                }
            }
        }
    }
    Ok(())
}
