//! `ToolSecurityParams`: the values of one profile's parameters in one namespace.

use std::collections::BTreeMap;

use kube::CustomResource;
use palisade_checks::{Resolved, Values};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameter values of one profile in this namespace. Palisade writes and repairs these objects. The API server reads
/// them when it evaluates a pod. All fields except the last three are always set, because an unset one would be an
/// error in the expressions of the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "toolsecurity.dev",
    version = "v1alpha1",
    kind = "ToolSecurityParams",
    doc = "Parameter values of one profile in this namespace. Written and repaired by Palisade, read by the API server.",
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
        description = "Error that makes every pod in the namespace violate the profile."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
// One writer owns all of it, so that applying it removes what others have added; and the API server keeps no
// record of who owns which value, which in thousands of objects adds up.
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ToolSecurityParamsSpec {
    /// Error that makes every pod in this namespace violate the profile: a parameter is missing or malformed. Empty
    /// without an error.
    #[schemars(length(max = 1024))]
    pub problem: String,
    /// Values of parameters of type Integer, by name.
    #[schemars(extend("maxProperties" = 64))]
    pub integers: BTreeMap<String, i64>,
    /// Values of parameters of type String, by name.
    #[schemars(extend("maxProperties" = 64))]
    pub strings: BTreeMap<String, String>,
    /// Values of parameters of type Boolean, by name.
    #[schemars(extend("maxProperties" = 64))]
    pub booleans: BTreeMap<String, bool>,
    /// Values of parameters of type StringList, by name.
    #[schemars(extend("maxProperties" = 64))]
    pub string_lists: BTreeMap<String, Vec<String>>,
    /// Checks that are skipped in this namespace, by id, with the end of each exception (RFC 3339). The API server
    /// evaluates the check again for objects created from then on. Unset if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 128))]
    pub exceptions: BTreeMap<String, String>,
    /// Checks that are skipped for individual workloads and pods, by kind and name, for example Deployment/encoder, and for
    /// other objects, by resource and name, for example services/web. The pods of a workload are included. Unset if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = MAX_WORKLOADS))]
    pub workload_exceptions: BTreeMap<String, BTreeMap<String, String>>,
    /// Checks that are skipped for individual containers. Unset if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub container_exceptions: Vec<ContainerException>,
}

/// A check that is skipped for some containers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerException {
    /// Id of the check.
    pub check: String,
    /// Kind and name of the workload or pod. Empty for all in the namespace.
    pub workload: String,
    /// Name of the container. Empty for all containers.
    pub container: String,
    /// Prefix of its image. Empty for all images.
    pub image_prefix: String,
    /// End of the exception (RFC 3339).
    pub expires: String,
}

/// Maximum number of workloads of a namespace that have exceptions.
pub const MAX_WORKLOADS: usize = 128;
/// Maximum number of exceptions for containers in a namespace, each for one check.
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

/// A namespace whose parameters are invalid or could not be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedNamespace {
    /// Name of the namespace.
    pub name: String,
    /// Error.
    pub message: String,
}
