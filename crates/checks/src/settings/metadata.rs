//! `spec.metadata`.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{Kind::Other, ObjectKind, Setting, at, setting};
use crate::Text;

/// Requirements for labels and annotations of objects. They are evaluated at the stage in enforcement.objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// Rules for kinds of objects. An object must comply with all rules for its kind. If unset or empty: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub rules: Option<Vec<MetadataRule>>,
}

/// The settings of this group, in the order in which messages name them.
pub(super) static SETTINGS: &[Setting] = &[setting("metadata.rules", Other(&at!(metadata.rules)))];

/// Labels and annotations that objects of some kinds must and may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MetadataRule {
    /// Kinds of objects to evaluate. Pods are not allowed.
    #[schemars(length(min = 1, max = 16))]
    pub kinds: Vec<ObjectKind>,
    /// Labels with a meaning. At most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"]))]
    pub labels: Vec<MetadataKey>,
    /// Keys of other labels that the objects may have: a key, where * at the end matches any suffix; * for all, or $name. An
    /// empty list allows no others. If unset: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 317)))]
    #[x_kube(validation = ("self.all(x, x.matches('^[^*]*[*]?$'))", "must have * only at the end"))]
    pub allowed_labels: Option<Vec<Text>>,
    /// Annotations with a meaning. At most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"]))]
    pub annotations: Vec<MetadataKey>,
    /// Keys of other annotations that the objects may have, in the same notation as allowedLabels. The annotation
    /// kubectl.kubernetes.io/last-applied-configuration is always allowed. An empty list allows no others. If unset: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 317)))]
    #[x_kube(validation = ("self.all(x, x.matches('^[^*]*[*]?$'))", "must have * only at the end"))]
    pub allowed_annotations: Option<Vec<Text>>,
}

/// A label or an annotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MetadataKey {
    /// The key.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// Whether objects must have it. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// Values that it may have: strings, * for all, or $name. If unset: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(length(max = 256)))]
    pub values: Option<Vec<Text>>,
}
