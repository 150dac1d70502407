//! The answer from the parameters and reports of a namespace, for users without permission to read profiles.

use std::collections::{BTreeMap, BTreeSet};

use palisade_api::{ToolSecurityParamsSpec, ToolSecurityReportSpec, names};
use serde_json::Value as Json;

use super::{ActiveParameter, ActiveProfile, ActiveStage, Live, Why, in_force, values};
use crate::{cluster::could_not_run, report::Failure};

/// The condition Ready of a profile that could not be read.
pub(super) const UNKNOWN: &str = "Unknown";

/// Answers from the parameters and reports of the namespace.
///
/// # Errors
/// A pod is given, which requires the profiles; or an object cannot be read.
pub(super) fn answer(live: &Live) -> Result<Why, Failure> {
    if live.pod.is_some() || live.object.is_some() {
        let (what, file) = if live.pod.is_some() { ("pod", "POD.yaml") } else { ("object", "FILE") };
        return Err(could_not_run(format!(
            "the profiles cannot be read, so the {what} cannot be evaluated here; let the API server evaluate it: kubectl \
             create --dry-run=server -f {file}"
        )));
    }
    let params = live.params.as_deref().unwrap_or_default();
    let profiles: BTreeSet<&str> = params.iter().chain(&live.reports).filter_map(name).collect();
    Ok(Why {
        namespace: name(&live.namespace).unwrap_or_default().to_owned(),
        profiles_read: false,
        profiles: profiles.into_iter().map(|profile| of_profile(live, params, profile)).collect::<Result<_, _>>()?,
        ..Why::default()
    })
}

fn of_profile(live: &Live, params: &[Json], profile: &str) -> Result<ActiveProfile, Failure> {
    let params: Option<ToolSecurityParamsSpec> = spec(params, profile)?;
    let report: Option<ToolSecurityReportSpec> = spec(&live.reports, profile)?;
    let params = params.unwrap_or_default();
    let stage = report.as_ref().map(|report| {
        let from = format!("the report of {}", report.observed_time.0);
        ActiveStage { pods: report.stage, workloads: None, objects: None, checks: BTreeMap::new(), from }
    });
    let parameters = values(&params).into_iter();
    Ok(ActiveProfile {
        profile: profile.to_owned(),
        ready: UNKNOWN.to_owned(),
        message: "the profile cannot be read".to_owned(),
        rejected: None,
        stage,
        parameters: parameters
            .map(|(name, value)| ActiveParameter { name: name.to_owned(), value: Some(value), from: None })
            .collect(),
        exceptions: in_force(&params).collect(),
        problem: params.problem,
        rollout: None,
        held: live.namespace["metadata"]["annotations"][names::rollout_annotation(profile)].as_str().map(str::to_owned),
        report,
    })
}

/// The spec of the object for a profile.
fn spec<T: serde::de::DeserializeOwned>(objects: &[Json], profile: &str) -> Result<Option<T>, Failure> {
    let found = objects.iter().find(|object| name(object) == Some(profile));
    let spec = found.map(|object| serde_json::from_value(object["spec"].clone())).transpose();
    spec.map_err(|error| could_not_run(format!("an object for profile {profile} cannot be read: {error}")))
}

fn name(object: &Json) -> Option<&str> {
    object["metadata"]["name"].as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_and_reports_say_what_a_tenant_may_know() {
        let params = |integers: &Json, problem: &str, exceptions: &Json| {
            json!({
                "integers": integers, "strings": {}, "booleans": {}, "stringLists": {}, "objects": {},
                "problem": problem, "exceptions": exceptions,
            })
        };
        let object = |name: &str, spec: Json| json!({"metadata": {"name": name}, "spec": spec});
        let mut live = Live {
            namespace: json!({"metadata": {
                "name": "tool-a", "annotations": {names::rollout_annotation("tools"): "Violations: by generation 2: x"},
            }}),
            params: Some(vec![
                object("tools", params(&json!({"uid": 50001}), "", &json!({"privileged": "2099-01-01T00:00:00Z"}))),
                object("broken", params(&json!({}), "parameter uid is missing", &json!({}))),
            ]),
            reports: vec![object(
                "tools",
                json!({
                    "stage": "Audit", "observedTime": "2026-01-01T00:00:00Z", "workloads": 1,
                    "violations": [{"workload": "Pod/x", "check": "privileged", "message": "m", "objects": 1}],
                }),
            )],
            ..Live::default()
        };
        let text = super::super::human(&answer(&live).unwrap());
        assert_eq!(
            text,
            "namespace tool-a\n\n\
             profile broken\n  every pod   violates the profile: parameter uid is missing\n\n\
             profile tools\n  stage       pods Audit (from the report of 2026-01-01T00:00:00Z)\n  \
             parameter   uid = 50001\n  exception   privileged, everywhere here, until 2099-01-01T00:00:00Z\n  \
             held        Violations: by generation 2: x\n  violations  1 workload, since 2026-01-01T00:00:00Z\n              \
             Pod/x [privileged] m\n"
        );
        live.pod = Some(json!({}));
        assert!(answer(&live).is_err());
    }
}
