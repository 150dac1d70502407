//! `spec.identity`: service accounts and tokens of pods.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{
    Kind::{Allowance, Other, Texts},
    Setting, at, setting,
};
use crate::{Flag, Integer, Text};

/// Service account and token restrictions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Identity {
    /// Names of service accounts that pods may run as, * for all, or $name. A pod without a name runs as default. If
    /// unset: all accounts in its namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub service_accounts: Option<Vec<Text>>,
    /// Whether the API server may mount a token of the service account into a pod. If false, each pod must set
    /// automountServiceAccountToken: false. For tokens in projected volumes, see serviceAccountTokens. true, false or
    /// $name. If unset: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automount_service_account_token: Option<Flag>,
    /// Tokens of the service account that pods may request in projected volumes. The token that the API server mounts
    /// automatically does not count. If unset: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_tokens: Option<TokenRules>,
}

/// The settings of this group, in the order in which messages name them.
pub(super) static SETTINGS: &[Setting] = &[
    setting("identity.serviceAccounts", Texts(at!(identity.service_accounts))),
    setting("identity.automountServiceAccountToken", Allowance(at!(identity.automount_service_account_token))),
    setting("identity.serviceAccountTokens", Other(&at!(identity.service_account_tokens))),
];

/// Tokens that pods may request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenRules {
    /// Allowed audiences of a token; '' for a token without an audience, which is for the API server, * for all, or
    /// $name. An empty list allows no token.
    #[schemars(length(max = 64), inner(length(min = 0, max = 256)))]
    pub audiences: Vec<Text>,
    /// The longest lifetime of a token in seconds. The default of a pod is 3600. If unset: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("type(self) == string || self >= 600",
        "must be at least 600 seconds, the minimum of the API server"))]
    pub max_expiration_seconds: Option<Integer>,
}
