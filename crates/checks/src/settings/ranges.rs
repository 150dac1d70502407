//! Ranges of numbers: ids and ports.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::Integer;

/// A range of whole numbers, both ends included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("type(self.min) == string || type(self.max) == string || self.min <= self.max",
    "min must not be greater than max"))]
#[x_kube(validation = ("(type(self.min) == string || self.min >= 0) && (type(self.max) == string || self.max >= 0)",
    "must not be negative"))]
pub struct Range {
    /// The lowest allowed number, or $name.
    pub min: Integer,
    /// The highest allowed number, or $name.
    pub max: Integer,
}
