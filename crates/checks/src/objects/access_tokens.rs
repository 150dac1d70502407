//! # accessTokens
//!
//! With permission to create `serviceaccounts/token`, a user gets a token of a service account, and with it all
//! permissions of the account. The token can be for another system that trusts the cluster, such as a vault or a cloud, and
//! can be valid for years. With permission to create Secrets, a user gets the same: the control plane writes a token into
//! each Secret of the type `kubernetes.io/service-account-token`. Such a token has no audience and does not expire.
//!
//! The API server replaces an empty list of audiences with its own (`--api-audiences`, by default the issuer) before
//! policies run. List that audience to allow tokens for the API server.
//!
//! The check does not evaluate requests of the control plane: service accounts in `kube-system`, and
//! `system:kube-controller-manager`. It also does not evaluate requests of nodes for tokens that are bound to a pod: the
//! kubelet requests the tokens in volumes of pods. A request is of a node if the user is in the group `system:nodes` and
//! has a name of a node. Only the authentication of the cluster sets groups, and impersonating a group requires permission
//! for the whole cluster, which no Role in a namespace can give. Restrict the tokens of pods by the checks
//! `serviceAccounts`, `serviceAccountTokens` and `automountServiceAccountToken`. List controllers that request tokens for
//! tenants in `exemptions.users`.
//!
//! ## If your object was denied
//!
//! Request a token of a service account that the message lists, with audiences that it lists and a shorter
//! `expirationSeconds`. Replace a Secret by a request for a token.

use super::kinds::{SECRET, TOKEN_REQUEST};
use crate::{Meaning, ObjectCheck, ObjectResource, ObjectRule, cel, settings::any, texts::Wildcard};

const REQUESTS: &[ObjectResource] = &[TOKEN_REQUEST];
const SECRETS: &[ObjectResource] = &[SECRET];
const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT: &str = "variables.object.metadata.?annotations[?'kubernetes.io/service-account.name']";
/// The most audiences that are evaluated.
const MOST: usize = 64;

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "accessTokens",
    title: "Tokens of service accounts",
    settings: &[
        "access.allowedTokenServiceAccounts",
        "access.allowedTokenAudiences",
        "access.maxTokenExpirationSeconds",
    ],
    kinds: &[TOKEN_REQUEST, SECRET],
    fields: &[
        "metadata.name",
        "spec.audiences",
        "spec.expirationSeconds",
        "type",
        "metadata.annotations['kubernetes.io/service-account.name']",
    ],
    exempt: Some(concat!(
        super::by_control_plane!(),
        " || (request.userInfo.username.startsWith('system:node:') \
         && 'system:nodes' in request.userInfo.?groups.orValue([]) && request.resource.resource == 'serviceaccounts' \
         && [variables.object.?spec.?boundObjectRef.orValue(null)].exists(b, b != null && b.?kind.orValue('') == 'Pod'))"
    )),
    fixtures: include_str!("access_tokens.yaml"),
    compile: |settings, cx| {
        let access = &settings.access;
        let mut rule = ObjectRule::default();
        let is_token = format!("string(variables.object.?type.orValue('')) == {}", cel::quote(TYPE));
        let accounts = access.allowed_token_service_accounts.as_ref().filter(|names| !any(names));
        if let Some(names) = accounts {
            let path = "spec.access.allowedTokenServiceAccounts";
            let allowed = cx.patterns(path, names, Meaning::Pattern, Wildcard::End);
            let forbidden = |name: &str, condition: &str| {
                format!("[string({name})].filter(s, {condition}!({}))", allowed.matches("s"))
            };
            let bad = forbidden("request.?name.orValue('')", "");
            rule.forbid(REQUESTS, ("metadata.name", "service accounts"), &bad, &allowed.says());
            let bad = forbidden(&format!("{ACCOUNT}.orValue('')"), &format!("{is_token} && "));
            let at = "metadata.annotations['kubernetes.io/service-account.name']";
            rule.forbid(SECRETS, (at, "service accounts"), &bad, &allowed.says());
        }
        let mut reasons = Vec::new();
        if let Some(audiences) = access.allowed_token_audiences.as_ref().filter(|audiences| !any(audiences)) {
            let allowed = cx.texts("spec.access.allowedTokenAudiences", audiences, Meaning::Word);
            let found = "variables.object.?spec.?audiences.orValue([])";
            rule.limit(REQUESTS, "spec.audiences", found, MOST);
            let bad = format!("{found}.map(a, string(a)).filter(a, !(a in {}))", allowed.cel());
            rule.finding(REQUESTS, format!("{found}.size() == 0"), "'spec.audiences is unset'");
            rule.forbid(REQUESTS, ("spec.audiences", "audiences"), &bad, &allowed.says());
            reasons.push("has no audience");
        }
        if let Some(most) = &access.max_token_expiration_seconds {
            let most = cx.integer("spec.access.maxTokenExpirationSeconds", most);
            let found = "variables.object.?spec.?expirationSeconds.orValue(3600)";
            rule.finding(
                REQUESTS,
                format!("{found} > {most}"),
                format!("'spec.expirationSeconds is ' + string({found}) + ', must be at most ' + string({most})"),
            );
            reasons.push("does not expire");
        }
        if !reasons.is_empty() {
            let says = format!("type is {TYPE}: the token {}", reasons.join(" and "));
            rule.finding(SECRETS, is_token, cel::quote(&says));
        }
        rule.unless_empty()
    },
};
