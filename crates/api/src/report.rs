//! `ToolSecurityReport`: the violations of a profile in one namespace, as found by the background scan.
#![allow(clippy::duplicated_attributes, reason = "each printed column has a type and a path")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Stage;

/// Violations of a profile by existing objects in this namespace, independent of the stage: the objects are older than
/// the profile, or the namespace is not in the stage Deny. The background scan writes the report, and deletes it when
/// there are no violations. It is for users and their tools: no component of Palisade reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "toolsecurity.dev",
    version = "v1alpha1",
    kind = "ToolSecurityReport",
    doc = "Violations of the profile of the same name in this namespace. Written by Palisade's background scan.",
    plural = "toolsecurityreports",
    shortname = "tsreport",
    category = "palisade",
    namespaced,
    derive = "PartialEq",
    printcolumn(
        name = "Stage",
        type_ = "string",
        json_path = ".spec.stage",
        description = "Stage of pods in this namespace: Deny, Warn or Audit."
    ),
    printcolumn(
        name = "Workloads",
        type_ = "integer",
        json_path = ".spec.workloads",
        description = "Workloads and single pods that violate the profile."
    ),
    printcolumn(name = "Since", type_ = "date", json_path = ".spec.observedTime"),
    printcolumn(name = "First", type_ = "string", priority = 1, json_path = ".spec.violations[0].message")
)]
#[serde(rename_all = "camelCase")]
// One writer owns all of it: see ToolSecurityParams.
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ToolSecurityReportSpec {
    /// Stage of pods in this namespace.
    pub stage: Stage,
    /// Time of the first scan that found the reported violations. A later scan updates the report only if its result
    /// differs.
    pub observed_time: Time,
    /// Number of workloads that violate the profile. A workload and all its pods count as one; a pod without a workload
    /// counts as one.
    #[schemars(range(min = 0))]
    pub workloads: i64,
    /// Violating workloads by check id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub checks: BTreeMap<String, i64>,
    /// First violations, ordered by workload name. Unset if all reports together would be too large.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_VIOLATIONS))]
    pub violations: Vec<ReportedViolation>,
    /// Number of workloads that could not be evaluated.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub not_judged: i64,
    /// First workloads that could not be evaluated, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_NOT_JUDGED))]
    pub first_not_judged: Vec<NotJudged>,
}

/// Maximum number of violations in a report.
pub const MAX_VIOLATIONS: usize = 20;
/// Maximum number of workloads in a report that were not evaluated.
pub const MAX_NOT_JUDGED: usize = 5;

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// A violation of one check by one workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedViolation {
    /// Kind and name, for example Deployment/encoder.
    #[schemars(length(max = 400))]
    pub workload: String,
    /// Id of the check.
    #[schemars(length(max = 256))]
    pub check: String,
    /// Path of the field, the value found and the allowed values.
    #[schemars(length(max = 1024))]
    pub message: String,
    /// Number of violating objects of the workload: the workload itself and its pods.
    #[schemars(range(min = 1))]
    pub objects: i64,
    /// Stage of the check, if spec.enforcement.checks of the profile sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Stage")]
    pub stage: Option<Stage>,
}

/// A workload that could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotJudged {
    /// Kind and name.
    #[schemars(length(max = 400))]
    pub workload: String,
    /// Reason.
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// Results of the background scan in all namespaces of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScanStatus {
    /// Number of workloads that violate the profile. A workload and all its pods count as one; a pod without a workload
    /// counts as one.
    pub workloads: i64,
    /// Number of namespaces with violations. Each has a ToolSecurityReport with the name of the profile: kubectl get
    /// tsreport -A.
    pub namespaces: i64,
    /// Violating workloads by check id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub checks: BTreeMap<String, i64>,
    /// Number of workloads that could not be evaluated. Their namespaces also have a report.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_judged: i64,
    /// Error of the last scan, or the part of the results that is not reported. If the scan failed, the counts are
    /// those of the previous scan.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
}
