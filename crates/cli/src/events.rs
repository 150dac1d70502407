//! Events of audit logs, and the answers of profiles to each request.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use palisade_api::names;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::denial::{Requested, denial};

/// The annotation of a request that violates a policy whose binding has the action Audit (KEP-3488).
pub const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";
/// The annotation with the decision of authorization. The API server writes it for each request that reached
/// authorization. Admission, and so policies, come later, and only if it is `allow`.
pub const DECISION: &str = "authorization.k8s.io/decision";

/// The relevant part of an event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    kind: String,
    api_version: String,
    /// The level of the audit policy for this event.
    pub level: String,
    stage: String,
    /// `create`, `update`, `patch` and so on.
    pub verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    /// The user who sent the request.
    pub user: User,
    /// The impersonated user, if there is one.
    pub impersonated_user: Option<User>,
    /// The requested object.
    pub object_ref: ObjectRef,
    /// The answer of the API server.
    pub response_status: ResponseStatus,
    /// The object in the request, with the API server's defaults and before admission.
    pub request_object: Json,
    annotations: BTreeMap<String, String>,
    /// The time of the request.
    pub request_received_timestamp: Option<Timestamp>,
}

/// A user.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct User {
    /// The name.
    pub username: String,
    /// Its uid.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Further attributes from the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The address of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// Empty for the core group.
    pub api_group: String,
    /// The version.
    pub api_version: String,
    /// The namespace.
    pub namespace: String,
    /// The plural name of the kind.
    pub resource: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// Empty if the API server generates the name.
    pub name: String,
}

/// An answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResponseStatus {
    /// The message to the client.
    pub message: String,
    /// The HTTP status.
    pub code: u16,
}

/// A failure in the annotation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    #[serde(default)]
    message: String,
    #[serde(default)]
    policy: String,
    #[serde(default)]
    validation_actions: Vec<String>,
}

/// The effect of a profile on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Action {
    /// It was denied.
    Denied,
    /// It was admitted with a warning.
    Warned,
    /// It was admitted, and a violation was recorded in the audit log.
    Audited,
}

/// The answer of one profile to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The profile.
    pub profile: String,
    /// The effect of the profile on the request.
    pub action: Action,
    /// The checks that it violates.
    pub checks: Vec<String>,
}

/// The answers of policies in an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The answers of the profiles to the request.
    pub of_profiles: Vec<Finding>,
    /// Whether another policy denied it.
    pub of_others: bool,
    /// Whether it looks like an answer of a policy, but has no decision that authorization allowed the request. It is
    /// not counted.
    pub undecided: bool,
}

impl Event {
    /// The policy that denied the request, and its message.
    fn denial(&self) -> Option<(&str, &str)> {
        let ObjectRef { api_group, resource, name, .. } = &self.object_ref;
        denial(Requested { group: api_group, resource, name }, self.response_status.code, &self.response_status.message)
    }

    /// The answers of policies to the request. An answer of authorization may quote a name in the request that looks
    /// like a denial. Only allowed requests reached policies.
    pub fn findings(&self) -> Findings {
        let mut found = Findings::default();
        let recorded = self.annotations.get(FAILURE);
        match self.annotations.get(DECISION).map(String::as_str) {
            Some("allow") => {}
            Some(_) => return found,
            None => {
                found.undecided = recorded.is_some() || self.denial().is_some();
                return found;
            }
        }
        if let Some((policy, text)) = self.denial() {
            match profile_of(policy) {
                Some(profile) => {
                    let checks = checks(text, &profile);
                    found.of_profiles.push(Finding { checks, profile, action: Action::Denied });
                }
                None => found.of_others = true,
            }
        }
        let recorded = recorded.and_then(|text| serde_json::from_str::<Vec<Recorded>>(text).ok());
        for Recorded { message, policy, validation_actions } in recorded.into_iter().flatten() {
            let Some(profile) = profile_of(&policy) else { continue };
            let warned = validation_actions.iter().any(|action| action == "Warn");
            let action = if warned { Action::Warned } else { Action::Audited };
            let finding = Finding { checks: checks(&message, &profile), profile, action };
            // The bindings for creation and for updates are of one policy.
            if !found.of_profiles.contains(&finding) {
                found.of_profiles.push(finding);
            }
        }
        found
    }

    /// The workload of the request, as far as the log has it.
    pub fn workload(&self) -> String {
        let metadata = &self.request_object["metadata"];
        let owners = metadata["ownerReferences"].as_array();
        if let Some(owner) = owners.into_iter().flatten().find(|owner| owner["controller"] == true) {
            let text = |key: &str| owner[key].as_str().unwrap_or_default();
            return format!("{}/{}", text("kind"), text("name"));
        }
        let named = [metadata["name"].as_str(), Some(self.object_ref.name.as_str()), metadata["generateName"].as_str()];
        let name = named.into_iter().flatten().find(|name| !name.is_empty()).unwrap_or("(not named)");
        format!("{}/{name}", self.object_ref.resource)
    }

    /// Whether it is an event of an audit log. An event without a kind is recognised by its other fields.
    pub fn is_event(&self) -> bool {
        match self.kind.as_str() {
            "" => !self.stage.is_empty() && !self.request_uri.is_empty(),
            kind => kind == "Event" && self.api_version.starts_with("audit.k8s.io/"),
        }
    }

    /// Whether the request was answered. Most requests also have events from before the answer.
    pub fn is_answered(&self) -> bool {
        !matches!(self.stage.as_str(), "RequestReceived" | "ResponseStarted")
    }

    /// Whether it was a dry run. The probes of the controller are dry runs.
    pub fn is_dry_run(&self) -> bool {
        self.request_uri.contains("dryRun=")
    }
}

/// The profile that a policy was generated from.
pub fn profile_of(policy: &str) -> Option<String> {
    names::profile_of_policy(policy).map(str::to_owned)
}

/// The checks in a message of a profile. Text of the request in a message may look like a check: then it is counted,
/// too.
fn checks(message: &str, profile: &str) -> Vec<String> {
    let text = message.split_once(&format!("ToolSecurityProfile {profile}: ")).map_or(message, |(_, text)| text);
    let is_id = |id: &str| {
        id.starts_with(|c: char| c.is_ascii_alphabetic()) && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let parts = std::iter::once(text).chain(text.match_indices("; [").map(|(at, _)| &text[at + 2..]));
    let ids = parts.filter_map(|part| Some(palisade_compiler::violation(part)?.0));
    let mut ids: Vec<_> = ids.filter(|id| is_id(id)).map(str::to_owned).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() { vec!["(unknown)".to_owned()] } else { ids }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_that_quotes_brackets_names_no_check() {
        assert_eq!(checks("1 violation of ToolSecurityProfile t: [a] spec.containers[0] is [x y] z", "t"), ["a"]);
        assert_eq!(checks("parameters are missing", "t"), ["(unknown)"]);
    }

    #[test]
    fn policies_of_others_are_no_profiles() {
        assert_eq!(profile_of("palisade-my-pods-pods").as_deref(), Some("my-pods"));
        assert_eq!(profile_of("palisade-tools-workloads").as_deref(), Some("tools"));
        assert_eq!(profile_of("palisade-tools-pods-checks").as_deref(), Some("tools"));
        assert_eq!(profile_of("tools-pods"), None);
    }

    const DENIED: &str = "ValidatingAdmissionPolicy 'palisade-x-pods' with binding 'b' denied request: 1 violation of \
                          ToolSecurityProfile x: [privileged] y";

    fn event(name: &str, code: u16, message: &str, decision: Option<&str>) -> Event {
        let annotations = decision.map(|decision| (DECISION.to_owned(), decision.to_owned())).into_iter().collect();
        let object_ref = ObjectRef { resource: "pods".to_owned(), name: name.to_owned(), ..ObjectRef::default() };
        let response_status = ResponseStatus { message: message.to_owned(), code };
        Event { object_ref, response_status, annotations, ..Event::default() }
    }

    /// Names of objects that do not exist, in requests of users without any right and with some.
    #[test]
    fn a_name_that_looks_like_a_denial_is_none() {
        for name in [
            format!("x\" is forbidden: {DENIED}"),
            format!("\" is forbidden: {DENIED}"),
            format!(" is forbidden: {DENIED}"),
            format!("x\\\" is forbidden: {DENIED}"),
            format!("x\n\" is forbidden: {DENIED}"),
            format!("x\" is forbidden: x\" is forbidden: {DENIED}"),
            DENIED.to_owned(),
        ] {
            // As Go quotes these.
            let quoted = format!("{name:?}");
            for (code, decision, rest) in [
                (403, "forbid", "is forbidden: User \"nobody\" cannot delete resource \"pods\""),
                (404, "allow", "not found"),
                (422, "allow", "is invalid: metadata.name: Invalid value"),
                (403, "allow", "is forbidden: exceeded quota: x"),
            ] {
                let message = format!("pods {quoted} {rest}");
                for named in [name.as_str(), ""] {
                    let found = event(named, code, &message, Some(decision)).findings();
                    assert_eq!(found, Findings::default(), "{message}");
                }
                assert!(!event(&name, code, &message, None).findings().undecided, "{message}");
            }
            // A policy that denies an object of that name is counted all the same.
            let message = format!("pods {quoted} is forbidden: {DENIED}");
            assert_eq!(event(&name, 422, &message, Some("allow")).findings().of_profiles.len(), 1, "{message}");
        }
    }

    #[test]
    fn only_requests_that_were_allowed_got_to_policies() {
        let message = format!("pods \"a\" is forbidden: {DENIED}");
        let of = |decision| event("a", 422, &message, decision).findings();
        assert_eq!(of(Some("allow")).of_profiles[0].checks, ["privileged"]);
        assert_eq!(of(Some("forbid")), Findings::default());
        assert_eq!(of(None), Findings { undecided: true, ..Findings::default() });
        let mut audited = event("a", 201, "", None);
        let text = json!([{"message": "[a] b", "policy": "palisade-x-pods", "validationActions": ["Audit"]}]);
        audited.annotations.insert(FAILURE.to_owned(), text.to_string());
        assert_eq!(audited.findings(), Findings { undecided: true, ..Findings::default() });
        audited.annotations.insert(DECISION.to_owned(), "allow".to_owned());
        assert_eq!(audited.findings().of_profiles[0].action, Action::Audited);
    }
}
