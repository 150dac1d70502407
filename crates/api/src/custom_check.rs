//! `spec.customChecks`: the checks that an administrator writes, and the objects that they evaluate.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// A custom check. Its expressions can use object, oldObject, request, params and namespaceObject, as in a
/// ValidatingAdmissionPolicy. Unless the target is Object, they can also use variables.spec (the spec of the pod, or of
/// the pod template of a workload), variables.podSecurityContext, variables.containers (of all kinds),
/// variables.volumes and variables.annotations. Custom checks are not evaluated in palisade-probe, the namespace in
/// which the controller probes the profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("has(self.message) != has(self.messageExpression)",
    "exactly one of message and messageExpression must be set"))]
#[x_kube(validation = ("!has(self.default) || !(self.target in ['Volumes', 'Object'])", "default is not allowed with target Volumes or Object"))]
#[x_kube(validation = ("(self.target == 'Object') == has(self.kinds)", "kinds is required with target Object, and not allowed with other targets"))]
pub struct CustomCheck {
    /// Id of the check in messages and exceptions. It must differ from the ids of built-in checks.
    #[schemars(length(max = 63), regex(pattern = r"^[a-z][A-Za-z0-9]*$"))]
    pub id: String,
    /// Objects to which the expression applies. Pod: evaluated once for the pod. Containers: evaluated for each
    /// container, available as container. Volumes: evaluated for each volume, available as volume. Object: evaluated
    /// once for each object of the kinds in `kinds`. Default: Pod.
    #[serde(default)]
    pub target: CustomTarget,
    /// Kinds of objects that a check with target Object evaluates; required with this target. At most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 16))]
    pub kinds: Vec<ObjectKind>,
    /// CEL expression of type bool that is true if the object complies.
    #[schemars(length(min = 1, max = 8192))]
    pub expression: String,
    /// Message for a violation. Exactly one of message and messageExpression is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub message: Option<String>,
    /// CEL expression for the message, of type string. It has access to the same variables as expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub message_expression: Option<String>,
    /// Default value that makes a new pod comply if it leaves the field unset; not allowed for volumes and objects. It is set
    /// independently of mutation.defaults, unless mutation.engine is Off or an exception names this check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<CustomDefault>,
}

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
    /// API versions in which expressions read the object, for example [v1]. Requests in other versions are converted to
    /// one of them. At most 8.
    #[schemars(
        length(min = 1, max = 8),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub versions: Vec<String>,
    /// Plural name of the kind, for example ingresses. Pods are not allowed: use target Pod.
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

/// A field and the value that it gets if it is unset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CustomDefault {
    /// Path of the field, separated by dots: relative to the pod's spec for target Pod, and to each container for
    /// target Containers, for example securityContext.procMount. A list or a map is one value.
    #[schemars(length(max = 256), regex(pattern = r"^[a-z][A-Za-z0-9]*(\.[a-z][A-Za-z0-9]*)*$"))]
    pub path: String,
    /// Value, of the type of the field. At most 4 KiB as JSON.
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub value: Json,
}

/// The objects to which a custom check applies.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum CustomTarget {
    /// The pod as a whole.
    #[default]
    Pod,
    /// Each container, init container and ephemeral container.
    Containers,
    /// Each volume.
    Volumes,
    /// An object of another kind.
    Object,
}

impl CustomTarget {
    /// The name of the evaluated part of a pod in expressions; `None` for a whole object.
    pub fn item(self) -> Option<&'static str> {
        match self {
            Self::Pod | Self::Object => None,
            Self::Containers => Some("container"),
            Self::Volumes => Some("volume"),
        }
    }
}
