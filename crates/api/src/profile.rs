//! `ToolSecurityProfile`: what an admin writes.
#![allow(clippy::struct_field_names, reason = "names of fields are those of the API")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::{CustomResource, KubeSchema};
use palisade_checks::{
    Level, ParameterType, Settings,
    settings::{Host, Identity, Images, Privileges, Scheduling, Users, Volumes, mutation::Mutation, standard::Version},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{
    enforcement::{Enforcement, Stage},
    report::ScanStatus,
    rollout::{Rollout, RolloutStatus},
};

/// What the pods of the selected namespaces may do. Palisade compiles a profile into one
/// ValidatingAdmissionPolicy for pods and one for pod templates, their bindings, and one ToolSecurityParams in each selected namespace; the API
/// server enforces them itself. Several profiles on one namespace all apply. A setting that is absent is as
/// strict as the level of the Pod Security Standards that `baseline` names, Restricted unless it says otherwise;
/// what that standard does not know is then not restricted. An empty list allows nothing, and * in a list allows anything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "toolsecurity.dev",
    version = "v1alpha1",
    kind = "ToolSecurityProfile",
    doc = "What the pods of the selected namespaces may do, enforced by the API server itself.",
    plural = "toolsecurityprofiles",
    shortname = "tsp",
    category = "palisade",
    status = "ToolSecurityProfileStatus",
    derive = "PartialEq",
    validation = ("self.metadata.name.size() <= 50", "a profile's name has at most 50 characters, because it is part of the names of what is generated"),
    printcolumn(name = "Stage", type_ = "string", json_path = ".spec.enforcement.pods"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status", description = "Whether the profile does what it asks for."),
    printcolumn(name = "Accepted", type_ = "string", json_path = ".status.conditions[?(@.type==\"Accepted\")].status"),
    printcolumn(name = "Programmed", type_ = "string", json_path = ".status.conditions[?(@.type==\"Programmed\")].status"),
    printcolumn(name = "Enforced", type_ = "string", json_path = ".status.conditions[?(@.type==\"Enforced\")].status"),
    printcolumn(name = "Selected", type_ = "integer", json_path = ".status.namespaces.selected", description = "Namespaces that the profile selects."),
    printcolumn(name = "Judged", type_ = "integer", json_path = ".status.namespaces.ready", description = "Selected namespaces in which pods are judged by the profile."),
    printcolumn(name = "Failed", type_ = "integer", json_path = ".status.namespaces.failed", description = "Selected namespaces whose parameters are wrong, so that every pod there violates the profile, or could not be written."),
    printcolumn(name = "Deny", type_ = "integer", json_path = ".status.namespaces.byStage.deny", description = "Selected namespaces in stage Deny."),
    printcolumn(name = "Warn", type_ = "integer", json_path = ".status.namespaces.byStage.warn", description = "Selected namespaces in stage Warn."),
    printcolumn(name = "Audit", type_ = "integer", json_path = ".status.namespaces.byStage.audit", description = "Selected namespaces in stage Audit."),
    printcolumn(name = "Rollout", type_ = "string", priority = 1, json_path = ".status.rollout.phase", description = "How far the rollout is."),
    printcolumn(name = "Violating", type_ = "integer", priority = 1, json_path = ".status.scan.workloads", description = "How many workloads violate the profile, if the background scan is on."),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Workloads", type_ = "string", priority = 1, json_path = ".spec.enforcement.workloads", description = "The stage of pod templates."),
    printcolumn(name = "PSS", type_ = "string", priority = 1, json_path = ".status.pssEquivalent.level", description = "The level of the Pod Security Standards that the profile implies."),
    printcolumn(name = "Message", type_ = "string", priority = 1, json_path = ".status.conditions[?(@.type==\"Ready\")].message")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("!has(self.rollout) || (has(self.enforcement) && has(self.enforcement.namespaceStages) && self.enforcement.namespaceStages == 'ByLabel')",
    "rollout needs enforcement.namespaceStages: ByLabel"))]
pub struct ToolSecurityProfileSpec {
    /// The namespaces whose pods are judged. kube-system, kube-public, kube-node-lease and the operator's own
    /// namespace are never selected.
    #[x_kube(validation = ("(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",
        "must name at least one label; to select every namespace, write matchExpressions: [{key: kubernetes.io/metadata.name, operator: Exists}]"))]
    pub namespace_selector: LabelSelector,
    /// Whether a policy of its own guards what the profile reads from namespaces: the labels and annotations that are sources
    /// of parameters, and the labels by which namespaceSelector selects. Then only who has the verb assign on this
    /// profile may set, change or remove them. It denies whatever the stage of the profile is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guard_sources: bool,
    /// Names of namespaces that are not selected, whatever their labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 128),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub exclude_namespaces: Vec<String>,
    /// What happens to a pod that violates the profile.
    #[serde(default)]
    pub enforcement: Enforcement,
    /// How the controller takes namespaces to stricter stages, wave by wave. It needs enforcement.namespaceStages: `ByLabel`,
    /// and the permissions of manifests/rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// Values that differ by namespace. Settings refer to them as $name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub parameters: Vec<Parameter>,
    /// Values of parameters in named namespaces. They win over the parameters' sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub overrides: Vec<Override>,
    /// Who and what is not judged. Only admins can grant it: nothing that a tenant may set is enough, except a
    /// runtime class that is listed.
    #[serde(default)]
    pub exemptions: Exemptions,
    /// Checks that are not made in named namespaces until a date.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub exceptions: Vec<Exception>,
    /// Checks that tenants can ask to be lifted, each by a ToolSecurityException in its namespace that somebody
    /// approves. If absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exception_requests: Option<ExceptionRequests>,
    /// The level of the Pod Security Standards that says what a setting means that is absent: Privileged,
    /// Baseline or Restricted. A setting that is written wins over it.
    #[serde(default)]
    pub baseline: Level,
    /// The version of that level: latest, or v1.0 to v1.37. With latest, a new version of Palisade may bring a
    /// new version of the standards.
    #[serde(default)]
    pub baseline_version: Version,
    /// The users and groups that processes may run as.
    #[serde(default)]
    pub users: Users,
    /// Privileges that containers may have.
    #[serde(default)]
    pub privileges: Privileges,
    /// Use of the node's namespaces and ports.
    #[serde(default)]
    pub host: Host,
    /// Volumes that pods may use.
    #[serde(default)]
    pub volumes: Volumes,
    /// As whom pods may speak to the API server and to others.
    #[serde(default)]
    pub identity: Identity,
    /// What pods may say of where and how they are run.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// Images that pods may run.
    #[serde(default)]
    pub images: Images,
    /// Checks of your own, in CEL. They are made with the others, and their violations stand in the same message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub custom_checks: Vec<CustomCheck>,
    /// What is defaulted in new pods where they say nothing, and by whom. If absent: nothing, besides what
    /// images.redirect and privileges.capabilities.defaultAdd say.
    #[serde(default)]
    pub mutation: Mutation,
}

impl ToolSecurityProfileSpec {
    /// The settings of the checks, with what absent ones mean.
    pub fn effective_settings(&self) -> Settings {
        self.settings().or(Settings::seed(self.baseline, self.baseline_version))
    }

    /// The settings of the checks, as written.
    pub fn settings(&self) -> Settings {
        Settings {
            users: self.users.clone(),
            privileges: self.privileges.clone(),
            host: self.host.clone(),
            volumes: self.volumes.clone(),
            identity: self.identity.clone(),
            scheduling: self.scheduling.clone(),
            images: self.images.clone(),
            mutation: self.mutation.clone(),
        }
    }
}

/// Who and what is not judged. Mirror pods, by which a node shows its static pods, are never judged: those with the
/// annotation kubernetes.io/config.mirror that a node has made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exemptions {
    /// Names of users whose requests are not judged, as the API server knows them:
    /// system:serviceaccount:NAMESPACE:NAME for a service account. Do not name a controller of kube-system: it creates
    /// the pods of every DaemonSet, Job or Deployment, so that each tenant who may create one is exempt. For the same
    /// reason an exempt user's own Deployment does not help: its pods are created by a controller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    pub users: Vec<String>,
    /// Groups whose members' requests are not judged. Do not name a group that has tenants or controllers of kube-system
    /// as members: system:authenticated, system:serviceaccounts, system:serviceaccounts:kube-system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    pub groups: Vec<String>,
    /// Names of runtime classes whose pods are not judged. Whoever may create pods can choose one of these: list
    /// only classes whose runtime confines pods by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub runtime_classes: Vec<String>,
}

/// Checks that are not made in named namespaces until a date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exception {
    /// Names of namespaces.
    #[schemars(
        length(min = 1, max = 256),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub namespaces: Vec<String>,
    /// Ids of checks, as they stand in brackets in messages: hostPathVolumes.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 63)))]
    pub checks: Vec<String>,
    /// Why, for whoever reads the profile.
    #[schemars(length(min = 1, max = 256))]
    pub reason: String,
    /// When it ends, for example 2027-01-31T00:00:00Z: what is created from then on is judged, by the API server's
    /// clock. What was created before and is changed then is judged once the controller has seen the time pass.
    #[schemars(schema_with = "crate::time::written")]
    pub expires: Time,
}

/// What tenants can ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExceptionRequests {
    /// Ids of checks, as they stand in brackets in messages: hostPathVolumes. No approval lifts any other check.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 63)))]
    pub checks: Vec<String>,
    /// How to ask, in one sentence. It ends each denial because of one of these checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^[^\r\n]*$"))]
    pub message: Option<String>,
}

/// A check of an admin's own. It can use what a ValidatingAdmissionPolicy can, and variables.spec (the spec of the pod,
/// or of the pod template in a workload), variables.podSecurityContext, variables.containers (of all kinds),
/// variables.volumes and variables.annotations. In palisade-probe, where the controller asks whether the profile is
/// in force, custom checks are not made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("has(self.message) != has(self.messageExpression)",
    "exactly one of message and messageExpression must be set"))]
#[x_kube(validation = ("!has(self.default) || self.target != 'Volumes'", "a check of volumes has no default"))]
pub struct CustomCheck {
    /// By what it is known in messages and exceptions. It must not be the id of a check of Palisade's.
    #[schemars(length(max = 63), regex(pattern = r"^[a-z][A-Za-z0-9]*$"))]
    pub id: String,
    /// Pod: the expression is evaluated once. Containers: for each container, which it knows as container. Volumes: for
    /// each volume, which it knows as volume.
    #[serde(default)]
    pub target: CustomTarget,
    /// CEL that is true for what complies.
    #[schemars(length(min = 1, max = 8192))]
    pub expression: String,
    /// The message of a violation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub message: Option<String>,
    /// CEL for the message, a string. It can use what the expression can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub message_expression: Option<String>,
    /// A default with which a new pod that leaves the field unset complies; not for volumes. It is set whatever
    /// mutation.defaults says, unless mutation.engine is Off or an exception names this check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<CustomDefault>,
}

/// A field and its value where it is unset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CustomDefault {
    /// The field, with dots: below the pod's spec for target Pod, below each container for target Containers, as in
    /// securityContext.procMount. A list or a map is one value.
    #[schemars(length(max = 256), regex(pattern = r"^[a-z][A-Za-z0-9]*(\.[a-z][A-Za-z0-9]*)*$"))]
    pub path: String,
    /// The value, of the type that the field has; at most 4 KiB as JSON.
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub value: Json,
}

/// What a custom check looks at.
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
}

impl CustomTarget {
    /// The name by which an expression knows what it looks at; `None` for the pod as a whole.
    pub fn item(self) -> Option<&'static str> {
        match self {
            Self::Pod => None,
            Self::Containers => Some("container"),
            Self::Volumes => Some("volume"),
        }
    }
}

/// A value that differs by namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("self.type == 'Integer' || (!has(self.minimum) && !has(self.maximum))",
    "minimum and maximum are for parameters of type Integer"))]
#[x_kube(validation = ("self.type in ['String', 'StringList'] || !has(self.pattern)",
    "pattern is for parameters of type String and StringList"))]
#[x_kube(validation = ("!has(self.minimum) || !has(self.maximum) || self.minimum <= self.maximum",
    "minimum must not be greater than maximum"))]
#[x_kube(validation = ("self.type != 'Integer' || !has(self.default) || type(self.default) == int",
    "the default of a parameter of type Integer is a number"))]
#[x_kube(validation = ("self.type != 'Boolean' || !has(self.default) || self.default == 'true' || self.default == 'false'",
    "the default of a parameter of type Boolean is \"true\" or \"false\", in quotes"))]
#[x_kube(validation = ("self.type != 'Integer' || !has(self.default) || type(self.default) != int || ((!has(self.minimum) || self.default >= self.minimum) && (!has(self.maximum) || self.default <= self.maximum))",
    "the default must lie between minimum and maximum"))]
pub struct Parameter {
    /// The name by which settings refer to it: $name.
    #[schemars(length(max = 63), regex(pattern = r"^[a-z][A-Za-z0-9]*$"))]
    pub name: String,
    /// Integer, String, Boolean or StringList.
    #[serde(rename = "type")]
    pub type_: ParameterType,
    /// Where the value comes from: the first source that has one. Text from a source is trimmed; a list is
    /// separated by commas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub sources: Vec<Source>,
    /// The value where no source has one, in the form it would have in an annotation. If absent, every pod
    /// of a namespace without a value violates the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<IntOrText>,
    /// The lowest allowed number. Every pod of a namespace with a lower one violates the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<i64>,
    /// The highest allowed number. Every pod of a namespace with a higher one violates the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<i64>,
    /// A regular expression that the whole text, or each text of a list, must match. Where it
    /// does not, every pod of the namespace violates the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub pattern: Option<String>,
}

/// Where the value of a parameter comes from. Exactly one field is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("[has(self.namespaceAnnotation), has(self.namespaceLabel), has(self.namespaceNameTrimPrefix)].filter(x, x).size() == 1",
    "exactly one of namespaceAnnotation, namespaceLabel and namespaceNameTrimPrefix must be set"))]
pub struct Source {
    /// The annotation of the namespace with this key. Who may edit namespaces can choose the value, unless guardSources
    /// is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub namespace_annotation: Option<String>,
    /// The label of the namespace with this key. Who may edit namespaces can choose the value, unless guardSources is
    /// true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub namespace_label: Option<String>,
    /// The name of the namespace without this prefix, if it has it and more: tool- makes abc of tool-abc.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 62))]
    pub namespace_name_trim_prefix: Option<String>,
}

/// Values of parameters in named namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Override {
    /// Names of namespaces.
    #[schemars(
        length(min = 1, max = 256),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub namespaces: Vec<String>,
    /// Values by the names of parameters, in the form they would have in an annotation.
    #[schemars(extend("maxProperties" = 32))]
    pub parameters: BTreeMap<String, IntOrText>,
}

/// A number, or text as it would stand in an annotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrText {
    /// A number.
    Int(i64),
    /// Text.
    Text(String),
}

impl std::fmt::Display for IntOrText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(value) => value.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl JsonSchema for IntOrText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IntOrText".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "maxLength": 4096,
        })
    }
}

/// What was observed of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolSecurityProfileStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Accepted: the profile is understood. Programmed: what it compiles to is in the API server. Enforced: each
    /// API server denied a pod that violates it and admitted one that complies. Ready: the profile does what it asks for,
    /// also in the stages Audit and Warn. Reconciling: the controller is at work. Stalled: somebody must act, and Ready
    /// says why. `RolledOut`: all waves of spec.rollout are over, and no namespace is held.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// How many namespaces the profile selects, and in how many of them its parameters are right.
    #[serde(default)]
    pub namespaces: NamespaceCounts,
    /// The first ten of the failed namespaces by name, with what is wrong. Each namespace's own
    /// ToolSecurityParams says it too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub failed_namespaces: Vec<FailedNamespace>,
    /// The level of the Pod Security Standards that the accepted profile implies where it is enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pss_equivalent: Option<PssEquivalent>,
    /// How many exceptions the profile has, and how many tenants have asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceptions: Option<ExceptionCounts>,
    /// Who changes pods, if the profile says what is to be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutation: Option<MutationStatus>,
    /// How far spec.rollout is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutStatus>,
    /// What the background scan found, if it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<ScanStatus>,
    /// Names of the policies and bindings made for the profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub generated_policies: Vec<String>,
}

/// Who mutates pods, as observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MutationStatus {
    /// Native: the API server does. Webhook: Palisade's webhook does. None: nobody.
    pub engine: EngineInForce,
    /// Why it is so, or what is under way.
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// Who changes pods.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum EngineInForce {
    /// Nobody.
    #[default]
    None,
    /// The API server.
    Native,
    /// The webhook.
    Webhook,
}

/// The strictest level of the Pod Security Standards that a profile is as strict as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PssEquivalent {
    /// Privileged, Baseline or Restricted. A level that each single setting satisfies, in every namespace;
    /// Privileged means that the profile promises none.
    pub level: Level,
    /// The version of the standards.
    #[schemars(length(max = 16))]
    pub version: String,
    /// Which settings keep the profile from the next stricter level.
    #[schemars(length(max = 1024))]
    pub reason: String,
}

/// Counts of namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceCounts {
    /// Namespaces that the profile selects.
    pub selected: i64,
    /// Those whose parameters are complete and written.
    pub ready: i64,
    /// Those in which every pod violates the profile, because a parameter is missing or malformed, and those
    /// whose parameters could not be written.
    pub failed: i64,
    /// The selected namespaces by the stage that holds for pods in them.
    #[serde(default)]
    pub by_stage: StageCounts,
}

/// Namespaces by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageCounts {
    /// Those in which violations are refused.
    pub deny: i64,
    /// Those in which violations are admitted with a warning.
    pub warn: i64,
    /// Those in which violations are admitted and noted in the audit log.
    pub audit: i64,
}

impl StageCounts {
    /// In the order of [`Stage::ALL`].
    pub fn counts(self) -> [i64; Stage::ALL.len()] {
        [self.deny, self.warn, self.audit]
    }
}

/// Counts of exceptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExceptionCounts {
    /// Those that hold.
    pub active: i64,
    /// Those whose time is over. They have no effect and can be removed from the profile.
    pub expired: i64,
    /// The ToolSecurityExceptions of tenants for this profile, if it can be asked for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<RequestCounts>,
}

/// Counts of ToolSecurityExceptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestCounts {
    /// Those that wait for an approval, or for the controller.
    pub pending: i64,
    /// Those that are approved and in force.
    pub approved: i64,
    /// Those whose time is over.
    pub expired: i64,
    /// Those that can have no effect.
    pub invalid: i64,
    /// Those in force that nothing that exists needs, if the background scan is on.
    #[serde(default)]
    pub unused: i64,
}

/// A namespace whose parameters are wrong or could not be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedNamespace {
    /// Its name.
    pub name: String,
    /// What is wrong.
    pub message: String,
}
