//! `spec.identity`: as whom a pod speaks to the API server and to others.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{
    Kind::{Allowance, Other, Texts},
    Setting, at, setting,
};
use crate::{Flag, Integer, Text};

/// As whom a pod speaks to the API server and to others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Identity {
    /// Names of service accounts that pods may run as, * for all, or $name. A pod that names none runs as default. If
    /// absent: all of its namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub service_accounts: Option<Vec<Text>>,
    /// Whether the API server may mount a token of its service account into a pod. If false, each pod must say
    /// automountServiceAccountToken: false. What else a pod can say to get a token is for serviceAccountTokens. true,
    /// false or $name. If absent: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automount_service_account_token: Option<Flag>,
    /// Tokens of its service account that a pod asks for in projected volumes. The one that the API server mounts by
    /// itself is not meant. If absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_tokens: Option<TokenRules>,
}

/// The settings of this group, in the order in which messages name them.
pub(super) static SETTINGS: &[Setting] = &[
    setting("identity.serviceAccounts", Texts(at!(identity.service_accounts))),
    setting("identity.automountServiceAccountToken", Allowance(at!(identity.automount_service_account_token))),
    setting("identity.serviceAccountTokens", Other(&at!(identity.service_account_tokens))),
];

/// Tokens that pods may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenRules {
    /// Audiences that a token may be for; '' for a token that names none, which is for the API server, * for all, or
    /// $name. An empty list allows no token.
    #[schemars(length(max = 64), inner(length(min = 0, max = 256)))]
    pub audiences: Vec<Text>,
    /// The longest time that a token may be valid for; a pod that says none asks for 3600. If absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("type(self) == string || self >= 600",
        "the API server gives no token for less than 600 seconds"))]
    pub max_expiration_seconds: Option<Integer>,
}
