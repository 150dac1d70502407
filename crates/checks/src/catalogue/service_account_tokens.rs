//! # serviceAccountTokens
//!
//! A projected volume can hold a token of the pod's service account for any audience, such as a vault or a cloud that
//! trusts the cluster, and with any lifetime. Until it expires, anyone with the token can act as that service account
//! there. The audience `''` means a token without an audience, which is for the API server.
//!
//! The check does not cover the token that the API server mounts automatically: see the check
//! `automountServiceAccountToken`. That token is recognized by its volume (`kube-api-access-*`), which has no audience
//! and at most 3607 seconds, in a pod that does not set `automountServiceAccountToken: false`. A pod that copies this
//! volume gains nothing else.
//!
//! The check `accessTokens` restricts tokens that users request without a pod (`serviceaccounts/token`).
//!
//! ## If your pod was denied
//!
//! Set `audience` to a value that the message lists, and `expirationSeconds` to at most the value in the message. The
//! kubelet renews the token before it expires. A pod that needs a token for the API server can use
//! `automountServiceAccountToken: true` instead.

use serde_json::json;

use crate::settings::{any, kind_allowed, kind_refused};
use crate::{Check, Field, Finding, FindingScope, Meaning, Resolve, Rule, pod};

/// The one that the API server mounts (`TokenVolumeSource` in the admission plugin ServiceAccount).
const MOUNTED: &str = "variables.spec.?automountServiceAccountToken.orValue(true) \
                       && v.name.startsWith('kube-api-access-') \
                       && s.serviceAccountToken.?audience.orValue('') == '' \
                       && s.serviceAccountToken.?expirationSeconds.orValue(3600) <= 3607";

/// The check.
pub static CHECK: Check = Check {
    id: "serviceAccountTokens",
    title: "Projected service account tokens",
    settings: &["identity.serviceAccountTokens", "volumes.allowed"],
    psp: None,
    pss: &[],
    fields: &[
        Field::Volume("projected.sources[*].serviceAccountToken.audience"),
        Field::Volume("projected.sources[*].serviceAccountToken.expirationSeconds"),
    ],
    fixtures: include_str!("service_account_tokens.yaml"),
    compile: |settings, cx| {
        let rules = settings.identity.service_account_tokens.as_ref()?;
        if kind_refused(settings, "projected") {
            return None;
        }
        let mut findings = Vec::new();
        let mut finding = |bad: &str, field: &str, found: &str, allowed: &str| {
            let tokens = "v.?projected.?sources.orValue([])";
            let bad = format!("has(s.serviceAccountToken) && !({MOUNTED}) && {bad}");
            findings.push(Finding::new(
                FindingScope::Volumes,
                format!("{tokens}.exists(s, {bad})"),
                format!("'serviceAccountToken.{field} is ' + {tokens}.filter(s, {bad}).map(s, {found}).join(', ') + {allowed}"),
            ));
        };
        if !any(&rules.audiences) {
            let allowed = cx.texts("spec.identity.serviceAccountTokens.audiences", &rules.audiences, Meaning::Word);
            let audience = "s.serviceAccountToken.?audience.orValue('')";
            let bad = format!("!({audience} in {})", allowed.cel());
            finding(
                &bad,
                "audience",
                &format!("{audience} == '' ? '(unset)' : {audience}"),
                &format!("', allowed: ' + {}", allowed.says_unset()),
            );
        }
        if let Some(most) = &rules.max_expiration_seconds {
            let most = cx.integer("spec.identity.serviceAccountTokens.maxExpirationSeconds", most);
            let seconds = "s.serviceAccountToken.?expirationSeconds.orValue(3600)";
            finding(
                &format!("{seconds} > {most}"),
                "expirationSeconds",
                &format!("string({seconds})"),
                &format!("', must be at most ' + string({most})"),
            );
        }
        (!findings.is_empty()).then_some(Rule { findings, ..Rule::default() })
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let rules = settings.identity.service_account_tokens.as_ref();
        let Some(rules) = rules.filter(|_| kind_allowed(settings, values, "projected")) else { return false };
        let allowed = rules.audiences.resolve(values);
        let token = match ["violation.palisade.invalid", "violation2.palisade.invalid"]
            .into_iter()
            .find(|bad| !allowed.iter().any(|one| one == bad || one == "*"))
        {
            Some(bad) => json!({"path": "token", "audience": bad, "expirationSeconds": 600}),
            None => return false,
        };
        let projected = json!({"sources": [{"serviceAccountToken": token}]});
        pod::set(pod, &["volumes"], json!([{"name": "violation", "projected": projected}]));
        true
    },
};
