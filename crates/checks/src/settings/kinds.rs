//! Kinds of objects that custom checks and `spec.metadata` name.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests for objects of one kind. The kind must be namespaced. A kind that the cluster does not have is ignored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectKind {
    /// API group, for example networking.k8s.io. Default: the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(
        length(max = 253),
        regex(pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$")
    )]
    pub group: String,
    /// API versions in which checks read the object, for example [v1]. Requests in other versions are converted to one of
    /// them. All checks of a kind must list the same versions. At most 8.
    #[schemars(
        length(min = 1, max = 8),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub versions: Vec<String>,
    /// Plural name of the kind, for example ingresses. Pods are not allowed: write a custom check with target Pod.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub resource: String,
    /// Subresources to evaluate instead of the object itself, for example [status]. To evaluate the object as well, list
    /// the kind twice. Default: only the object itself. At most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(min = 1, max = 63), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$")))]
    pub subresources: Vec<String>,
    /// Operations to evaluate: CREATE and UPDATE. Deletion is never evaluated. Default: both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub operations: Vec<ObjectOperation>,
}

impl ObjectKind {
    /// The operations that it matches, in order.
    pub fn operations(&self) -> impl Iterator<Item = ObjectOperation> {
        let is_matched = |one: &ObjectOperation| self.operations.is_empty() || self.operations.contains(one);
        ObjectOperation::ALL.into_iter().filter(is_matched)
    }

    /// The resources that it matches, as in rules of policies: `deployments`, or `deployments/scale`.
    pub fn resources(&self) -> Vec<String> {
        if self.subresources.is_empty() {
            return vec![self.resource.clone()];
        }
        self.subresources.iter().map(|subresource| format!("{}/{subresource}", self.resource)).collect()
    }
}

/// An operation on an object.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
pub enum ObjectOperation {
    /// Creation.
    Create,
    /// Update, also of a subresource.
    Update,
}

impl ObjectOperation {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Create, Self::Update];
}
