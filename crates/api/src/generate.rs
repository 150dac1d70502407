//! `spec.generate` and `status.generated`: objects that the controller creates in each selected namespace.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::params::FailedNamespace;

/// An object that the controller creates in each selected namespace, such as a quota or a network policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectTemplate {
    /// Name of the template. It is the value of the label toolsecurity.dev/template on the objects.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Selector of the namespaces that get the object, among those that the profile selects. Default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// The object, with apiVersion, kind and metadata.name. Its kind must be namespaced, and listed in generate.kinds of
    /// the chart's values. Strings may contain parameters: $name. Outside of metadata, a string that is exactly $name
    /// becomes a value of the parameter's type. Fields that are not set belong to other writers.
    #[schemars(schema_with = "any_object")]
    pub template: Map<String, Json>,
    /// Treatment of the object if the template or the profile is deleted, or a namespace is no longer selected.
    /// Delete: it is deleted. Orphan: it remains, without the labels of the controller. Default: Delete.
    #[serde(default, skip_serializing_if = "DeletionPolicy::is_delete")]
    pub deletion_policy: DeletionPolicy,
    /// Takes over an existing object of the same name, and fields that another field manager has applied. If false,
    /// both are reported as conflicts and remain unchanged. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopt: bool,
}

/// Treatment of an object that its profile no longer generates.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
)]
pub enum DeletionPolicy {
    /// It is deleted.
    #[default]
    Delete,
    /// It remains, without the labels of the controller.
    Orphan,
}

impl DeletionPolicy {
    /// True if the object is deleted.
    pub fn is_delete(&self) -> bool {
        *self == Self::Delete
    }
}

fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// The objects of spec.generate in all selected namespaces, as observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GeneratedStatus {
    /// Objects that the templates give.
    pub desired: i64,
    /// Objects that exist as their templates require.
    pub ready: i64,
    /// Namespaces with objects that could not be computed, written or deleted.
    pub failed_namespaces: i64,
    /// First ten of these namespaces by name, with the error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub failures: Vec<FailedNamespace>,
}
