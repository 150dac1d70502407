//! `spec.customChecks`: the checks that an administrator writes, and the objects that they evaluate.

use kube::KubeSchema;
use palisade_checks::settings::ObjectKind;
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
