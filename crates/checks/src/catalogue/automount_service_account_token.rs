//! # automountServiceAccountToken
//!
//! By default, the API server mounts a token of the pod's service account into each pod. Most programs never call the
//! API server, and an attacker who compromises one of them finds the token.
//!
//! The pod itself must set the field: a policy cannot see `automountServiceAccountToken: false` of the service account,
//! and a pod can override it. A pod can still request a token in a projected volume: the check `serviceAccountTokens`
//! restricts those. A Secret of type `kubernetes.io/service-account-token` also holds a token, and no field of a pod
//! shows this. The check `accessTokens` restricts the creation of such Secrets.
//!
//! Palisade does not default this field: the API server adds the token before a pod can be mutated.
//!
//! ## If your pod was denied
//!
//! Set `automountServiceAccountToken: false` in the pod's `spec`, next to `containers`.

use serde_json::json;

use crate::{Check, Field, FindingScope, Resolve, Rule, pod};

const FIELD: &str = "variables.spec.?automountServiceAccountToken";

/// The check.
pub static CHECK: Check = Check {
    id: "automountServiceAccountToken",
    title: "Automatically mounted service account tokens",
    settings: &["identity.automountServiceAccountToken"],
    psp: None,
    pss: &[],
    fields: &[Field::Pod("automountServiceAccountToken")],
    fixtures: include_str!("automount_service_account_token.yaml"),
    compile: |settings, cx| {
        let violated = cx.unless(
            "spec.identity.automountServiceAccountToken",
            settings.identity.automount_service_account_token.as_ref()?,
            &format!("{FIELD}.orValue(true)"),
        )?;
        let says =
            format!("'spec.automountServiceAccountToken is ' + string({FIELD}.orValue('unset')) + ', must be false'");
        Some(Rule::one(FindingScope::Pod, violated, says))
    },
    defaults: |_, _| vec![],
    comply: |settings, values, pod| {
        let allowed = settings.identity.automount_service_account_token.as_ref();
        if allowed.is_some_and(|allowed| !allowed.resolve(values)) {
            pod::set(pod, &["automountServiceAccountToken"], json!(false));
        }
    },
    violate: |settings, values, pod| {
        let allowed = settings.identity.automount_service_account_token.as_ref();
        let forbidden = allowed.is_some_and(|allowed| !allowed.resolve(values));
        if forbidden {
            pod::set(pod, &["automountServiceAccountToken"], json!(true));
        }
        forbidden
    },
};
