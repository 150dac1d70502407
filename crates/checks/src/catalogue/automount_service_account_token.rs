//! # automountServiceAccountToken
//!
//! Unless told not to, the API server mounts a token of its service account into each pod. Most programs never ask the
//! API server for anything, and whoever breaks into one finds the token.
//!
//! The pod itself must say so: a service account that says `automountServiceAccountToken: false` is not seen from a pod,
//! and a pod may overrule it. A pod can still describe a token in a projected volume; what it may ask for there is
//! for the check `serviceAccountTokens`. A Secret of the type `kubernetes.io/service-account-token` holds a token too,
//! which no pod shows: who may make such Secrets is for RBAC.
//!
//! Palisade does not default this field: the API server has added the token before anything can be changed.
//!
//! ## If your pod was denied
//!
//! Set `automountServiceAccountToken: false` in the pod's `spec`, beside `containers`.

use serde_json::json;

use crate::{Check, Field, Over, Resolve, Rule, pod};

const FIELD: &str = "variables.spec.?automountServiceAccountToken";

/// The check.
pub static CHECK: Check = Check {
    id: "automountServiceAccountToken",
    title: "Tokens that are mounted by default",
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
        Some(Rule::one(Over::Pod, violated, says))
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
