//! `ToolSecurityReport`: what in one namespace violates a profile, as the background scan found it.
#![allow(clippy::duplicated_attributes, reason = "each printed column has a type and a path")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Stage;

/// What in this namespace violates a profile, whatever the stage: it runs, or is stored, because it was there before or
/// because the namespace is not in Deny. The background scan writes it, and removes it when nothing violates the
/// profile any more. Nothing reads it but people and their tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "toolsecurity.dev",
    version = "v1alpha1",
    kind = "ToolSecurityReport",
    doc = "What in this namespace violates the profile of the same name. Made by Palisade's background scan.",
    plural = "toolsecurityreports",
    shortname = "tsreport",
    category = "palisade",
    namespaced,
    derive = "PartialEq",
    printcolumn(
        name = "Stage",
        type_ = "string",
        json_path = ".spec.stage",
        description = "What becomes of pods that violate the profile here: Deny, Warn or Audit."
    ),
    printcolumn(
        name = "Workloads",
        type_ = "integer",
        json_path = ".spec.workloads",
        description = "How many workloads and single pods violate the profile."
    ),
    printcolumn(name = "Since", type_ = "date", json_path = ".spec.observedTime"),
    printcolumn(name = "First", type_ = "string", priority = 1, json_path = ".spec.violations[0].message")
)]
#[serde(rename_all = "camelCase")]
// One writer owns all of it: see ToolSecurityParams.
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ToolSecurityReportSpec {
    /// What becomes of pods that violate the profile in this namespace.
    pub stage: Stage,
    /// Since when the scan has found what is reported here. It looks again each time, and writes only what differs.
    pub observed_time: Time,
    /// How many workloads violate the profile. A workload counts once with all its pods; a pod without a workload counts
    /// as one.
    #[schemars(range(min = 0))]
    pub workloads: i64,
    /// How many of them violate each check, by its id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub checks: BTreeMap<String, i64>,
    /// The first violations, in the order of the workloads' names. Absent if all reports together would be too large.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_VIOLATIONS))]
    pub violations: Vec<ReportedViolation>,
    /// How many workloads could not be judged.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub not_judged: i64,
    /// The first of them, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_NOT_JUDGED))]
    pub first_not_judged: Vec<NotJudged>,
}

/// The most violations in a report.
pub const MAX_VIOLATIONS: usize = 20;
/// The most workloads in a report that were not judged.
pub const MAX_NOT_JUDGED: usize = 5;

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// How one workload violates one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedViolation {
    /// Kind and name: Deployment/encoder.
    #[schemars(length(max = 400))]
    pub workload: String,
    /// The id of the check.
    #[schemars(length(max = 256))]
    pub check: String,
    /// The place, the value found and the allowed values.
    #[schemars(length(max = 1024))]
    pub message: String,
    /// How many objects of the workload violate the check: itself and its pods.
    #[schemars(range(min = 1))]
    pub objects: i64,
}

/// A workload that could not be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotJudged {
    /// Kind and name.
    #[schemars(length(max = 400))]
    pub workload: String,
    /// Why.
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// What the background scan found in all namespaces of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScanStatus {
    /// How many workloads violate the profile. A workload counts once with all its pods; a pod without a workload counts
    /// as one.
    pub workloads: i64,
    /// In how many namespaces. Each has a ToolSecurityReport of the profile's name: kubectl get tsreport -A.
    pub namespaces: i64,
    /// How many workloads violate each check, by its id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub checks: BTreeMap<String, i64>,
    /// How many workloads could not be judged. Their namespaces have a report, too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_judged: i64,
    /// Why the last scan failed, or what is not reported. The counts are then of the one before.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
}
