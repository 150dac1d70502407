//! `ToolSecurityParams`: the values of one profile's parameters in one namespace.

use std::collections::BTreeMap;

use kube::CustomResource;
use palisade_checks::{Resolved, Values};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The values of one profile's parameters in this namespace. Palisade writes and repairs these; the API server
/// reads them when it judges a pod. Every field but the last three is always present, because an absent one would be an
/// error in the policy's expressions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "toolsecurity.dev",
    version = "v1alpha1",
    kind = "ToolSecurityParams",
    doc = "The values of one profile's parameters in this namespace. Made and repaired by Palisade, read by the API server.",
    plural = "toolsecurityparams",
    singular = "toolsecurityparams",
    shortname = "tsparams",
    category = "palisade",
    namespaced,
    derive = "PartialEq",
    printcolumn(
        name = "Problem",
        type_ = "string",
        json_path = ".spec.problem",
        description = "Why every pod in the namespace violates the profile, if so."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
// One writer owns all of it, so that applying it removes what others have added; and the API server keeps no
// record of who owns which value, which in thousands of objects adds up.
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ToolSecurityParamsSpec {
    /// Why every pod in this namespace violates the profile: a parameter is missing or malformed. Empty if
    /// there is nothing wrong.
    #[schemars(length(max = 1024))]
    pub problem: String,
    /// The values of parameters of type Integer, by name.
    #[schemars(extend("maxProperties" = 64))]
    pub integers: BTreeMap<String, i64>,
    /// The values of parameters of type String, by name.
    #[schemars(extend("maxProperties" = 64))]
    pub strings: BTreeMap<String, String>,
    /// The values of parameters of type Boolean, by name.
    #[schemars(extend("maxProperties" = 64))]
    pub booleans: BTreeMap<String, bool>,
    /// The values of parameters of type StringList, by name.
    #[schemars(extend("maxProperties" = 64))]
    pub string_lists: BTreeMap<String, Vec<String>>,
    /// The checks that are not made here, by id, each with the time (RFC 3339) at which that ends: the API server
    /// makes the check again for what is created from then on. Absent without any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 128))]
    pub exceptions: BTreeMap<String, String>,
    /// The same for single workloads and pods, by kind and name: Deployment/encoder. A workload counts with its pods.
    /// Absent without any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = MAX_WORKLOADS))]
    pub workload_exceptions: BTreeMap<String, BTreeMap<String, String>>,
    /// The same for single containers. Absent without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub container_exceptions: Vec<ContainerException>,
}

/// A check that is not made of some containers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerException {
    /// The id of the check.
    pub check: String,
    /// Kind and name of the workload or pod; empty for all in the namespace.
    pub workload: String,
    /// The name of the container; empty for each.
    pub container: String,
    /// What its image begins with; empty for each.
    pub image_prefix: String,
    /// When it ends (RFC 3339).
    pub expires: String,
}

/// The most workloads of a namespace that may have exceptions.
pub const MAX_WORKLOADS: usize = 128;
/// The most exceptions for containers that a namespace may have, each of one check.
pub const MAX_CONTAINERS: usize = 32;

impl ToolSecurityParamsSpec {
    /// The parameters of a namespace in which every parameter has a value.
    pub fn of(values: &Values) -> Self {
        let mut spec = Self::default();
        for (name, value) in values {
            let name = name.clone();
            match value {
                Resolved::Integer(value) => drop(spec.integers.insert(name, *value)),
                Resolved::String(value) => drop(spec.strings.insert(name, value.clone())),
                Resolved::Boolean(value) => drop(spec.booleans.insert(name, *value)),
                Resolved::StringList(value) => drop(spec.string_lists.insert(name, value.clone())),
            }
        }
        spec
    }

    /// The values that [`Self::of`] got.
    pub fn values(&self) -> Values {
        let Self {
            problem: _,
            integers,
            strings,
            booleans,
            string_lists,
            exceptions: _,
            workload_exceptions: _,
            container_exceptions: _,
        } = self;
        let mut values = Values::new();
        values.extend(integers.iter().map(|(name, value)| (name.clone(), Resolved::Integer(*value))));
        values.extend(strings.iter().map(|(name, value)| (name.clone(), Resolved::String(value.clone()))));
        values.extend(booleans.iter().map(|(name, value)| (name.clone(), Resolved::Boolean(*value))));
        values.extend(string_lists.iter().map(|(name, value)| (name.clone(), Resolved::StringList(value.clone()))));
        values
    }

    /// The parameters of a namespace in which every pod violates the profile, because of `problem`.
    pub fn denying(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), ..Self::default() }
    }
}
