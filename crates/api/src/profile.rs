//! `ToolSecurityProfile`: the rules that an administrator writes.
#![allow(clippy::struct_field_names, reason = "names of fields are those of the API")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::{CustomResource, KubeSchema};
use palisade_checks::{
    Level, ParameterType, Settings,
    settings::{
        Access, Host, Identity, Images, Metadata, Network, Privileges, Scheduling, Storage, Users, Volumes,
        mutation::Mutation, standard::Version,
    },
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    custom_check::CustomCheck,
    enforcement::{Enforcement, Stage},
    generate::{GeneratedStatus, ObjectTemplate},
    params::FailedNamespace,
    report::ScanStatus,
    rollout::{Rollout, RolloutStatus},
};

/// Security requirements for the pods of selected namespaces. Palisade compiles a profile into
/// ValidatingAdmissionPolicies for pods and pod templates, their bindings, and one ToolSecurityParams in each selected
/// namespace. The API server enforces them natively. If several profiles select a namespace, all of them apply.
/// Settings that you omit default to the level of the Pod Security Standards in `baseline` (by default Restricted).
/// Settings outside that standard are enforced only if you set them. An empty list allows no value, and * in a list
/// allows any value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "toolsecurity.dev",
    version = "v1alpha1",
    kind = "ToolSecurityProfile",
    doc = "Security requirements for the pods of selected namespaces, enforced natively by the API server.",
    plural = "toolsecurityprofiles",
    shortname = "tsp",
    category = "palisade",
    status = "ToolSecurityProfileStatus",
    derive = "PartialEq",
    validation = ("self.metadata.name.size() <= 50", "metadata.name must be at most 50 characters, because it is part of the names of generated objects"),
    printcolumn(name = "Stage", type_ = "string", json_path = ".spec.enforcement.pods", description = "Stage of pods in the profile."),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status", description = "True if the profile is in effect."),
    printcolumn(name = "Namespaces", type_ = "string", json_path = ".status.namespaces.summary", description = "Selected namespaces that have their parameters, and all selected namespaces."),
    printcolumn(name = "Failed", type_ = "integer", json_path = ".status.namespaces.failed", description = "Selected namespaces with invalid, missing or unwritten parameters."),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Accepted", type_ = "string", priority = 1, json_path = ".status.conditions[?(@.type==\"Accepted\")].status"),
    printcolumn(name = "Programmed", type_ = "string", priority = 1, json_path = ".status.conditions[?(@.type==\"Programmed\")].status"),
    printcolumn(name = "Enforced", type_ = "string", priority = 1, json_path = ".status.conditions[?(@.type==\"Enforced\")].status"),
    printcolumn(name = "Deny", type_ = "integer", priority = 1, json_path = ".status.namespaces.byStage.deny", description = "Selected namespaces in stage Deny."),
    printcolumn(name = "Warn", type_ = "integer", priority = 1, json_path = ".status.namespaces.byStage.warn", description = "Selected namespaces in stage Warn."),
    printcolumn(name = "Audit", type_ = "integer", priority = 1, json_path = ".status.namespaces.byStage.audit", description = "Selected namespaces in stage Audit."),
    printcolumn(name = "Rollout", type_ = "string", priority = 1, json_path = ".status.rollout.phase", description = "Phase of the rollout."),
    printcolumn(name = "Generated", type_ = "string", priority = 1, json_path = ".status.conditions[?(@.type==\"Generated\")].status", description = "True if all objects of spec.generate exist as specified."),
    printcolumn(name = "Violating", type_ = "integer", priority = 1, json_path = ".status.scan.workloads", description = "Workloads that violate the profile, if the background scan is enabled."),
    printcolumn(name = "Workloads", type_ = "string", priority = 1, json_path = ".spec.enforcement.workloads", description = "Stage of pod templates."),
    printcolumn(name = "Objects", type_ = "string", priority = 1, json_path = ".spec.enforcement.objects", description = "Stage of other objects; empty: the stage of pods."),
    printcolumn(name = "PSS", type_ = "string", priority = 1, json_path = ".status.pssEquivalent.level", description = "Pod Security Standards level that the profile implies."),
    printcolumn(name = "Message", type_ = "string", priority = 1, json_path = ".status.conditions[?(@.type==\"Ready\")].message")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("!has(self.rollout) || (has(self.enforcement) && has(self.enforcement.namespaceStages) && self.enforcement.namespaceStages == 'ByLabel')",
    "rollout needs enforcement.namespaceStages: ByLabel"))]
pub struct ToolSecurityProfileSpec {
    /// Selector of the namespaces whose pods are evaluated. kube-system, kube-public, kube-node-lease and
    /// palisade-system are never selected.
    #[x_kube(validation = ("(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",
        "must contain at least one label; to select every namespace, use matchExpressions: [{key: kubernetes.io/metadata.name, operator: Exists}]"))]
    pub namespace_selector: LabelSelector,
    /// Protection of the namespace labels and annotations that this profile reads: the sources of its parameters and
    /// the labels in namespaceSelector. If true, a separate policy allows only users with the verb assign on this
    /// profile to set, change or remove them. The policy denies other requests at every stage. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guard_sources: bool,
    /// Names of namespaces to exclude, regardless of their labels. At most 128.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 128),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub exclude_namespaces: Vec<String>,
    /// Action on violations, for pods, workloads and other objects.
    #[serde(default)]
    pub enforcement: Enforcement,
    /// Automatic promotion of namespaces to stricter stages, in waves. Requires enforcement.namespaceStages: `ByLabel`,
    /// and the permissions in manifests/rollout. Default: no automatic promotion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// Values that differ by namespace. Settings refer to them as $name. At most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub parameters: Vec<Parameter>,
    /// Parameter values for specific namespaces. They take precedence over the sources of the parameter. At most 256.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub overrides: Vec<Override>,
    /// Users, groups and runtime classes whose pods are not evaluated. Tenants cannot grant an exemption to themselves,
    /// except by choosing a listed runtime class.
    #[serde(default)]
    pub exemptions: Exemptions,
    /// Checks to skip in specific namespaces until a date.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub exceptions: Vec<Exception>,
    /// Checks that tenants can request to waive. A request is a ToolSecurityException in the namespace, and has no
    /// effect until it is approved. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exception_requests: Option<ExceptionRequests>,
    /// Pod Security Standards level that supplies defaults for unset fields: Privileged, Baseline or Restricted. A
    /// field that is set takes precedence. Default: Restricted.
    #[serde(default)]
    pub baseline: Level,
    /// Version of the Pod Security Standards: latest, or v1.0 to v1.37. With latest, a new version of Palisade may
    /// select a new version of the standards. Default: latest.
    #[serde(default)]
    pub baseline_version: Version,
    /// Oldest version of Kubernetes that this profile is for, for example 1.35. Custom checks may use everything that
    /// this version accepts. On an older cluster the profile is rejected. Default: custom checks must compile on 1.33,
    /// and on the version of the cluster if it is older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8), regex(pattern = r"^1\.[1-9][0-9]$"))]
    pub minimum_kube_version: Option<String>,
    /// Users and groups that processes may run as.
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
    /// Service account and token restrictions.
    #[serde(default)]
    pub identity: Identity,
    /// Restrictions on scheduling and resources.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// Images that pods may run.
    #[serde(default)]
    pub images: Images,
    /// Restrictions on objects that publish services, and on NetworkPolicies.
    #[serde(default)]
    pub network: Network,
    /// Restrictions on PersistentVolumeClaims and VolumeSnapshots.
    #[serde(default)]
    pub storage: Storage,
    /// Restrictions on RoleBindings.
    #[serde(default)]
    pub access: Access,
    /// Requirements for labels and annotations of objects other than pods.
    #[serde(default)]
    pub metadata: Metadata,
    /// Custom checks, written in CEL. They are evaluated with the other checks, and their violations are part of the
    /// same message. At most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub custom_checks: Vec<CustomCheck>,
    /// Defaults for fields that new pods leave unset, and the component that sets them. If omitted, only
    /// images.redirect and privileges.capabilities.defaultAdd change pods.
    #[serde(default)]
    pub mutation: Mutation,
    /// Objects that the controller creates in each selected namespace, repairs, and deletes with the profile. At most
    /// 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub generate: Vec<ObjectTemplate>,
}

impl ToolSecurityProfileSpec {
    /// The settings of the checks, with defaults for unset ones.
    pub fn effective_settings(&self) -> Settings {
        self.settings().or(Settings::seed(self.baseline, self.baseline_version))
    }

    /// The settings of the checks, as specified.
    pub fn settings(&self) -> Settings {
        Settings {
            users: self.users.clone(),
            privileges: self.privileges.clone(),
            host: self.host.clone(),
            volumes: self.volumes.clone(),
            identity: self.identity.clone(),
            scheduling: self.scheduling.clone(),
            images: self.images.clone(),
            network: self.network.clone(),
            storage: self.storage.clone(),
            access: self.access.clone(),
            metadata: self.metadata.clone(),
            mutation: self.mutation.clone(),
        }
    }
}

/// Users, groups and runtime classes whose pods are not evaluated. Mirror pods of static pods are never evaluated: pods
/// with the annotation kubernetes.io/config.mirror that were created by a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exemptions {
    /// Users whose requests are not evaluated, by the name in the API server; for a service account
    /// system:serviceaccount:NAMESPACE:NAME. Do not list a controller of kube-system: it creates the pods of every
    /// DaemonSet, Job or Deployment, so that every tenant with permission to create one would be exempt. For the same
    /// reason, an exemption does not apply to the pods of a Deployment that an exempt user creates: a controller
    /// creates its pods. At most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    pub users: Vec<String>,
    /// Groups whose requests are not evaluated. Do not list a group that contains tenants or controllers of
    /// kube-system: system:authenticated, system:serviceaccounts, system:serviceaccounts:kube-system. At most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    pub groups: Vec<String>,
    /// Runtime classes whose pods are not evaluated. All users with permission to create pods can choose a listed
    /// class: list only classes whose runtime isolates pods. At most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub runtime_classes: Vec<String>,
}

/// Checks to skip in specific namespaces until a date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exception {
    /// Names of namespaces.
    #[schemars(
        length(min = 1, max = 256),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub namespaces: Vec<String>,
    /// Ids of checks, as printed in brackets in messages, for example hostPathVolumes. At most 64.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 63)))]
    pub checks: Vec<String>,
    /// Reason for the exception, for readers of the profile.
    #[schemars(length(min = 1, max = 256))]
    pub reason: String,
    /// End of the exception, for example 2027-01-31T00:00:00Z. Objects created from then on are evaluated, by the clock
    /// of the API server. Updates of older objects are evaluated after the controller has observed the end.
    #[schemars(schema_with = "crate::time::written")]
    pub expires: Time,
}

/// Checks that tenants can request to waive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExceptionRequests {
    /// Ids of checks, as printed in brackets in messages, for example hostPathVolumes. Other checks cannot be waived by
    /// an approval. At most 64.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 63)))]
    pub checks: Vec<String>,
    /// Instructions for requesting an exception, in one sentence. They are appended to every denial by one of these
    /// checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^[^\r\n]*$"))]
    pub message: Option<String>,
}

/// A value that differs by namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("self.type == 'Integer' || (!has(self.minimum) && !has(self.maximum))",
    "minimum and maximum are only allowed for parameters of type Integer"))]
#[x_kube(validation = ("self.type in ['String', 'StringList'] || !has(self.pattern)",
    "pattern is only allowed for parameters of type String and StringList"))]
#[x_kube(validation = ("!has(self.minimum) || !has(self.maximum) || self.minimum <= self.maximum",
    "minimum must not be greater than maximum"))]
#[x_kube(validation = ("self.type != 'Integer' || !has(self.default) || type(self.default) == int",
    "default must be an integer for parameters of type Integer"))]
#[x_kube(validation = ("self.type != 'Boolean' || !has(self.default) || self.default == 'true' || self.default == 'false'",
    "default must be \"true\" or \"false\", in quotes, for parameters of type Boolean"))]
#[x_kube(validation = ("self.type != 'Integer' || !has(self.default) || type(self.default) != int || ((!has(self.minimum) || self.default >= self.minimum) && (!has(self.maximum) || self.default <= self.maximum))",
    "default must be between minimum and maximum"))]
pub struct Parameter {
    /// Name of the parameter. Settings refer to it as $name.
    #[schemars(length(max = 63), regex(pattern = r"^[a-z][A-Za-z0-9]*$"))]
    pub name: String,
    /// Type of the value: Integer, String, Boolean or StringList.
    #[serde(rename = "type")]
    pub type_: ParameterType,
    /// Sources of the value, in order: the first source that has a value is used. White space around values is removed.
    /// The elements of a list are separated by commas. At most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub sources: Vec<Source>,
    /// Value if no source has one, in the same form as in an annotation. If omitted, every pod in a namespace without a
    /// value violates the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<IntOrText>,
    /// Lowest allowed integer. In a namespace with a lower value, every pod violates the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<i64>,
    /// Highest allowed integer. In a namespace with a higher value, every pod violates the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<i64>,
    /// Regular expression that must match the whole string, or each element of a list. In a namespace with another
    /// value, every pod violates the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub pattern: Option<String>,
}

/// Source of a parameter's value. Exactly one field must be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("[has(self.namespaceAnnotation), has(self.namespaceLabel), has(self.namespaceNameTrimPrefix)].filter(x, x).size() == 1",
    "exactly one of namespaceAnnotation, namespaceLabel and namespaceNameTrimPrefix must be set"))]
pub struct Source {
    /// Key of a namespace annotation. Users with permission to edit namespaces can choose the value, unless
    /// guardSources is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub namespace_annotation: Option<String>,
    /// Key of a namespace label. Users with permission to edit namespaces can choose the value, unless guardSources is
    /// true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub namespace_label: Option<String>,
    /// Prefix to remove from the name of the namespace. For example, tool- turns tool-abc into abc. The source has no
    /// value if the name does not begin with the prefix or equals it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 62))]
    pub namespace_name_trim_prefix: Option<String>,
}

/// Parameter values for specific namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Override {
    /// Names of namespaces.
    #[schemars(
        length(min = 1, max = 256),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub namespaces: Vec<String>,
    /// Values by parameter name, in the same form as in an annotation. At most 32.
    #[schemars(extend("maxProperties" = 32))]
    pub parameters: BTreeMap<String, IntOrText>,
}

/// An integer, or a string in the same form as in an annotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrText {
    /// An integer.
    Int(i64),
    /// A string.
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

/// Observed state of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolSecurityProfileStatus {
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the profile. Accepted: the profile is valid. Programmed: the generated objects are in the API
    /// server. Enforced: probes have confirmed that every API server denies a violating pod and admits a compliant one.
    /// Ready: the profile is in effect, also in the stages Audit and Warn. Reconciling: the controller is working or
    /// will retry. Stalled: a manual fix is required; Ready has the reason. `RolledOut`: all waves of spec.rollout are
    /// complete, and no namespace is held. Generated: all objects of spec.generate exist as specified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Counts of the selected namespaces, by state and by stage.
    #[serde(default)]
    pub namespaces: NamespaceCounts,
    /// First ten failed namespaces by name, with the error. The ToolSecurityParams in each namespace has the same
    /// message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub failed_namespaces: Vec<FailedNamespace>,
    /// Pod Security Standards level that the accepted profile implies where it is enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pss_equivalent: Option<PssEquivalent>,
    /// Counts of the exceptions in the profile and of exception requests by tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceptions: Option<ExceptionCounts>,
    /// Active mutation engine, if the profile mutates pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutation: Option<MutationStatus>,
    /// Progress of spec.rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutStatus>,
    /// Results of the background scan, if it is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<ScanStatus>,
    /// Objects of spec.generate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<GeneratedStatus>,
    /// Names of the policies generated for the profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub generated_policies: Vec<String>,
}

/// Active mutation engine, as observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MutationStatus {
    /// Native: MutatingAdmissionPolicy. Webhook: palisade-webhook. None: mutation is not active.
    pub engine: EngineInForce,
    /// Reason for the engine, or progress of a change.
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// Component that mutates pods.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum EngineInForce {
    /// Mutation is not active.
    #[default]
    None,
    /// MutatingAdmissionPolicy.
    Native,
    /// palisade-webhook.
    Webhook,
}

/// Strictest level of the Pod Security Standards that the profile implies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PssEquivalent {
    /// Privileged, Baseline or Restricted. The settings satisfy all requirements of the level, in every namespace.
    /// Privileged: the profile guarantees no level.
    pub level: Level,
    /// Version of the Pod Security Standards.
    #[schemars(length(max = 16))]
    pub version: String,
    /// Settings that prevent the next stricter level.
    #[schemars(length(max = 1024))]
    pub reason: String,
}

/// Counts of namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceCounts {
    /// Ready and selected namespaces for printing, for example 3499/3500.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub summary: String,
    /// Namespaces that the profile selects.
    pub selected: i64,
    /// Selected namespaces whose parameters are complete and written.
    pub ready: i64,
    /// Selected namespaces with invalid, missing or unwritten parameters. If a parameter is invalid or missing, every
    /// pod in the namespace violates the profile.
    pub failed: i64,
    /// Selected namespaces by the stage for pods.
    #[serde(default)]
    pub by_stage: StageCounts,
}

/// Selected namespaces by the stage for pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageCounts {
    /// Namespaces in which violations are denied.
    pub deny: i64,
    /// Namespaces in which violations are admitted with a warning.
    pub warn: i64,
    /// Namespaces in which violations are admitted and audited.
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
    /// Exceptions in effect.
    pub active: i64,
    /// Expired exceptions. They have no effect and can be removed from the profile.
    pub expired: i64,
    /// ToolSecurityExceptions of tenants for this profile, if it allows exception requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<RequestCounts>,
}

/// Counts of ToolSecurityExceptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestCounts {
    /// Requests that wait for an approval or for the controller.
    pub pending: i64,
    /// Requests that are approved and in effect.
    pub approved: i64,
    /// Expired requests.
    pub expired: i64,
    /// Requests that cannot take effect.
    pub invalid: i64,
    /// Requests in effect that no existing object needs, if the background scan is enabled.
    #[serde(default)]
    pub unused: i64,
}
