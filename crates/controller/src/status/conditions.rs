//! The conditions of a profile. `Accepted` is about the profile, `Programmed` about policies and bindings, `Enforced`
//! about the answers of the API servers. The status counts and names failed namespaces; they make no condition false,
//! because API servers enforce the profile in all others.

use std::fmt::Write as _;

use palisade_api::{
    Enforcement, Stage, ToolSecurityProfileStatus,
    conditions::{ConditionType, Reason},
    names::{self, Part, Shape},
};
use palisade_compiler::exempt_tenants;

use crate::{
    generations::accepted::{AcceptedProfile, Verdict},
    message::{self, counted},
    pacing::ROUND_INTERVAL,
    param_plan::profile_params::Summary,
    status::{Condition, ConditionStatus},
    watch::store::ObservedProfile,
};

/// The reported status of a condition, if it is about the profile's generation.
fn reported(observed: &ObservedProfile, type_: ConditionType) -> Option<&str> {
    let status: &ToolSecurityProfileStatus = observed.profile.as_ref().ok()?.status.as_ref()?;
    let condition = status.conditions.iter().find(|condition| condition.type_ == type_.to_string())?;
    (condition.observed_generation == observed.meta.generation).then_some(condition.status.as_str())
}

pub fn accepted(verdict: &Verdict) -> Condition {
    match verdict {
        Ok(accepted) => {
            let checks = accepted.compiled.checks.len() + accepted.compiled.object_checks.len();
            let parameters = accepted.compiled.parameters.len();
            let mut message = format!("{} and {}", counted(checks, "check"), counted(parameters, "parameter"));
            let warnings = exempt_tenants(&accepted.profile.spec.exemptions);
            if !warnings.is_empty() {
                let _ = write!(message, "; warning: {}", message::diagnostics(&warnings));
            }
            Condition::new(ConditionType::Accepted, ConditionStatus::True, Reason::Accepted, message)
        }
        Err(refused) => {
            Condition::new(ConditionType::Accepted, ConditionStatus::False, refused.reason, refused.message.clone())
        }
    }
}

/// A condition of a profile that is not accepted and has no earlier generation to enforce.
pub fn not_accepted(type_: ConditionType) -> Condition {
    let message = "the profile is not accepted, and no earlier generation is known";
    Condition::new(type_, ConditionStatus::False, Reason::NotAccepted, message)
}

/// The conditions of a profile that is being deleted; `error` is why that does not go on. They are written before the
/// first binding is deleted: from then on nothing is enforced.
pub fn deleting(error: Option<&str>) -> [Condition; 3] {
    let mut message = "the profile is being deleted, and is no longer enforced".to_owned();
    if let Some(error) = error {
        let _ = write!(message, "; {error}; the controller will retry");
    }
    [ConditionType::Accepted, ConditionType::Programmed, ConditionType::Enforced]
        .map(|type_| Condition::new(type_, ConditionStatus::False, Reason::Deleting, message.clone()))
}

/// The cluster does not have the policies and bindings of the profile.
pub fn not_programmed(message: impl Into<String>) -> Condition {
    Condition::new(ConditionType::Enforced, ConditionStatus::False, Reason::NotProgrammed, message)
}

/// Parameters are being written.
pub fn pending(summary: &Summary) -> Condition {
    let message = format!("{} of {} namespaces have their parameters", summary.ready, summary.selected);
    Condition::new(ConditionType::Programmed, ConditionStatus::False, Reason::Pending, message)
}

/// The policies wait for the next round of writes ([`crate::pacing`]).
pub fn paced(servers: &str) -> Condition {
    let message = format!(
        "the policies will be written within {} s: API servers can exit while they compile a policy, so changes are \
         collected; affected: {servers}",
        ROUND_INTERVAL.as_secs()
    );
    Condition::new(ConditionType::Programmed, ConditionStatus::False, Reason::Pending, message)
}

/// Adds a warning about affected API servers to Programmed.
pub fn with_warning(mut programmed: Condition, affected: Option<String>) -> Condition {
    if let Some(servers) = affected.filter(|_| programmed.status == ConditionStatus::True) {
        let _ = write!(
            programmed.message,
            "; warning: API servers can exit while they compile a policy: upgrade to Kubernetes 1.34 or later; affected: \
             {servers}"
        );
    }
    programmed
}

/// Nothing of a new generation was written: the API server gave no verdict on it.
pub fn not_tried(error: &impl std::fmt::Display) -> Condition {
    let message = format!("the API server did not validate the policies and bindings: {error}");
    Condition::new(ConditionType::Programmed, ConditionStatus::False, Reason::ApplyFailed, message)
}

/// The condition Programmed. `error` is the reason why policies or bindings could not be written.
pub fn programmed(verdict: &Verdict, error: Option<&str>, summary: &Summary, accepted: &AcceptedProfile) -> Condition {
    let condition = |status, reason, message| Condition::new(ConditionType::Programmed, status, reason, message);
    let wrong = error.map(|error| format!("the policies and bindings could not be written: {error}"));
    match (verdict, wrong) {
        (Err(_), wrong) => {
            let mut message = format!("the spec of generation {} stays in effect", accepted.generation());
            if let Some(wrong) = wrong {
                let _ = write!(message, "; {wrong}");
            }
            condition(ConditionStatus::False, Reason::LastGoodInForce, message + &unwritten(summary))
        }
        (Ok(_), Some(wrong)) => condition(ConditionStatus::False, Reason::ApplyFailed, wrong),
        (Ok(_), None) => {
            let message = "the policies and bindings are in the API server".to_owned();
            condition(ConditionStatus::True, Reason::Programmed, message + &unwritten(summary))
        }
    }
}

/// Where parameters could not be written, as the end of a message.
fn unwritten(summary: &Summary) -> String {
    let mut failed = summary.unwritten.keys().filter(|namespace| *namespace != names::PROBE_NAMESPACE);
    let Some(first) = failed.next() else { return String::new() };
    let namespaces = counted(failed.count() + 1, "namespace");
    format!("; the parameters of {namespaces} could not be written (status.failedNamespaces), first {first}")
}

/// The part of Enforced's message about namespaces without parameters: the answers of probes are about all others.
pub fn with_missing(mut enforced: Condition, summary: &Summary) -> Condition {
    if summary.missing > 0 && enforced.status == ConditionStatus::True {
        let namespaces = counted(summary.missing, "namespace");
        let _ = write!(
            enforced.message,
            "; except {namespaces} without parameters (status.failedNamespaces): there, the stage Deny denies new \
             pods, and updates of existing pods are not evaluated by checks with parameters"
        );
    }
    enforced
}

/// Adds the stages of the namespaces to the message of Enforced, and the number of objects that the stage Deny would
/// deny according to the scan.
pub fn with_stages(mut enforced: Condition, observed: &ObservedProfile, by_stage: [usize; 3]) -> Condition {
    let Ok(profile) = &observed.profile else { return enforced };
    let by_label = !profile.spec.enforcement.namespace_stages.is_uniform();
    if by_label && enforced.status == ConditionStatus::True {
        let [deny, warn, audit] = by_stage;
        enforced.message = format!(
            "in the stage Deny ({}), {}; in Warn ({warn}) and Audit ({audit}), violations are admitted",
            counted(deny, "namespace"),
            enforced.message
        );
    }
    // Those whose stage is Deny have an answer of their own (`with_denied_parts`).
    let own = profile.spec.enforcement.checks.values().next().copied().filter(|stage| *stage != Stage::Deny);
    let is_staged = matches!(enforced.reason, Reason::ProbesPassed | Reason::StageWarn | Reason::StageAudit);
    if let Some(stage) = own.filter(|_| is_staged) {
        // An object that also violates other checks gets the answer of the strictest check.
        let only = if enforced.status == ConditionStatus::True { "only " } else { "" };
        let (ids, consequence) = (own_stage(&profile.spec.enforcement), stage.consequence());
        let _ = write!(enforced.message, "; an object that violates {only}{ids} {consequence}");
    }
    let scan = profile.status.as_ref().and_then(|status| status.scan.as_ref()).filter(|scan| scan.workloads > 0);
    let would_deny = matches!(enforced.reason, Reason::StageWarn | Reason::StageAudit);
    if let Some(scan) = scan.filter(|_| would_deny) {
        let number = |count: i64| usize::try_from(count).unwrap_or_default();
        let (workloads, namespaces) =
            (counted(number(scan.workloads), "workload"), counted(number(scan.namespaces), "namespace"));
        let _ = match own {
            None => write!(enforced.message, "; the stage Deny would deny the pods of {workloads} in {namespaces}"),
            // It would not deny all of them.
            Some(_) => write!(enforced.message, "; {workloads} in {namespaces} violate the profile"),
        };
    }
    enforced
}

/// The checks with a separate stage, for a message.
pub fn own_stage(enforcement: &Enforcement) -> String {
    let ids: Vec<_> = enforcement.checks.keys().map(String::as_str).collect();
    format!("{} {}", if ids.len() == 1 { "check" } else { "checks" }, ids.join(", "))
}

/// The message of Enforced of a profile whose pods are not in Deny, with the API servers that deny what is; `None` while
/// no probe has shown any.
pub fn with_denied_parts(mut enforced: Condition, servers: Option<String>, accepted: &AcceptedProfile) -> Condition {
    let compiled = &accepted.compiled;
    let mut denied = Vec::new();
    if Shape::ALL.into_iter().any(|shape| compiled.denies(Part::Checks(shape))) {
        denied.push(format!("violations of {}", own_stage(&compiled.enforcement)));
    }
    for (shape, objects) in [(Shape::Workloads, "workloads"), (Shape::Objects, "other objects")] {
        if compiled.denies(Part::Judge(shape)) {
            denied.push(format!("{objects} that violate the profile"));
        }
    }
    let denied = denied.join(" and ");
    let _ = match servers {
        Some(servers) => write!(enforced.message, "; {servers} denies {denied}"),
        None => write!(enforced.message, "; no probe has confirmed yet that {denied} are denied"),
    };
    enforced
}

/// True if a profile whose pods are not in Deny denies something else, which probes can show.
pub fn probes_denied_parts(enforced: &Condition, accepted: &AcceptedProfile) -> bool {
    matches!(enforced.reason, Reason::StageWarn | Reason::StageAudit) && accepted.compiled.denying_part().is_some()
}

/// The condition Enforced of a profile that needs no probe; `None` if it needs one.
pub fn without_probe(verdict: &Verdict, programmed: &Condition, accepted: &AcceptedProfile) -> Option<Condition> {
    let condition =
        |reason, message: &str| Condition::new(ConditionType::Enforced, ConditionStatus::False, reason, message);
    if verdict.is_err() {
        return Some(not_programmed("an earlier generation of the profile is in effect"));
    }
    if programmed.status != ConditionStatus::True {
        return Some(not_programmed("the profile is not programmed"));
    }
    let compiled = &accepted.compiled;
    let Some(strictest) = compiled.strictest_stage() else {
        let text = "no check restricts pods, workloads or other objects";
        return Some(condition(Reason::NothingRestricted, text));
    };
    let (of, stage) = match compiled.probed_stage() {
        // Pods have no check, or only some with a separate stage.
        Stage::Deny => (" of all checks", strictest),
        stage => ("", stage),
    };
    let reason = match stage {
        Stage::Deny => return None,
        Stage::Warn => Reason::StageWarn,
        Stage::Audit => Reason::StageAudit,
    };
    let text = format!("the stage{of} is {stage}: an object that violates the profile {}", stage.consequence());
    Some(condition(reason, &text))
}

/// The condition Enforced before the first answer of a probe: false, unless the status already reports this generation
/// as enforced and this process has written no objects. A restart must not raise an alarm.
pub fn unless_known(observed: &ObservedProfile, wrote: bool) -> Option<Condition> {
    let known = reported(observed, ConditionType::Enforced) == Some("True") && !wrote;
    (!known).then(|| not_programmed("no probe of this generation has passed yet"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use palisade_api::{NamespaceStages, ScanStatus, ToolSecurityProfile};
    use serde_json::{Value as Json, json};

    use super::*;

    fn profile(stage: Stage, namespace_stages: NamespaceStages, scan: Option<ScanStatus>) -> ObservedProfile {
        let mut profile: ToolSecurityProfile = serde_json::from_value(json!({
            "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile",
            "metadata": {"name": "tools", "generation": 1}, "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "enforcement": {"pods": stage}},
        }))
        .expect("a profile");
        profile.spec.enforcement.namespace_stages = namespace_stages;
        profile.status = Some(ToolSecurityProfileStatus { scan, ..ToolSecurityProfileStatus::default() });
        ObservedProfile { meta: profile.metadata.clone(), profile: Ok(Arc::new(profile)) }
    }

    fn enforced(observed: &ObservedProfile, by_stage: [usize; 3]) -> Condition {
        let profile = Arc::clone(observed.profile.as_ref().expect("a profile"));
        let compiled = palisade_compiler::compile(&profile).expect("it compiles");
        let compiled = palisade_gate::check(compiled).expect("it is checked");
        let accepted = Arc::new(AcceptedProfile { profile, compiled });
        let programmed =
            Condition::new(ConditionType::Programmed, ConditionStatus::True, Reason::Programmed, String::new());
        let probed = || {
            let text = "the API server denies pods that violate the profile";
            Condition::new(ConditionType::Enforced, ConditionStatus::True, Reason::ProbesPassed, text.to_owned())
        };
        let enforced = without_probe(&Ok(Arc::clone(&accepted)), &programmed, &accepted).unwrap_or_else(probed);
        with_stages(enforced, observed, by_stage)
    }

    /// Each stage of the profile, and whether namespaces have stages of their own: the message of Enforced.
    #[test]
    fn enforced_reports_denials_only_in_the_stage_deny() {
        let found = ScanStatus { workloads: 12, namespaces: 3, ..ScanStatus::default() };
        for (stage, stages, by_stage, status, message) in [
            (
                Stage::Deny,
                NamespaceStages::Uniform,
                [20, 0, 0],
                ConditionStatus::True,
                "the API server denies pods that violate the profile",
            ),
            (
                Stage::Warn,
                NamespaceStages::Uniform,
                [0, 20, 0],
                ConditionStatus::False,
                "the stage is Warn: an object that violates the profile is admitted with a warning and audited; the \
                 stage Deny would deny the pods of 12 workloads in 3 namespaces",
            ),
            (
                Stage::Audit,
                NamespaceStages::Uniform,
                [0, 0, 20],
                ConditionStatus::False,
                "the stage is Audit: an object that violates the profile is admitted and audited; the \
                 stage Deny would deny the pods of 12 workloads in 3 namespaces",
            ),
            (
                Stage::Audit,
                NamespaceStages::ByLabel,
                [0, 1, 19],
                ConditionStatus::True,
                "in the stage Deny (0 namespaces), the API server denies pods that violate the profile; in Warn (1) and \
                 Audit (19), violations are admitted",
            ),
            (
                Stage::Deny,
                NamespaceStages::ByLabel,
                [18, 0, 2],
                ConditionStatus::True,
                "in the stage Deny (18 namespaces), the API server denies pods that violate the profile; in Warn (0) and \
                 Audit (2), violations are admitted",
            ),
        ] {
            let enforced = enforced(&profile(stage, stages, Some(found.clone())), by_stage);
            assert_eq!((enforced.status, enforced.message.as_str()), (status, message), "{stage} {stages}");
        }
        let unscanned = enforced(&profile(Stage::Audit, NamespaceStages::Uniform, None), [0, 0, 20]);
        assert!(!unscanned.message.contains("den"), "{}", unscanned.message);
    }

    /// Each kind of restriction alone, at its stages. Only a profile without any restricts nothing.
    #[test]
    fn each_restriction_alone_is_probed_or_has_its_stage() {
        let custom = |target: &str, kinds: Json| {
            let mut check = json!({"id": "own", "target": target, "message": "no", "expression": "1 == 1"});
            check.as_object_mut().expect("an object").extend(kinds.as_object().expect("an object").clone());
            json!({"customChecks": [check]})
        };
        let of_pods = |target| custom(target, json!({}));
        let of_objects = custom("Object", json!({"kinds": [{"versions": ["v1"], "resource": "services"}]}));
        let staged = |spec: &Json, enforcement: Json| {
            let mut spec = spec.clone();
            spec.as_object_mut().expect("an object").insert("enforcement".to_owned(), enforcement);
            spec
        };
        let service_types = json!({"network": {"allowedServiceTypes": ["ClusterIP"]}});
        let audited = |message: &str| format!("{message}: an object that violates the profile is admitted and audited");
        let nothing = "no check restricts pods, workloads or other objects";
        let mut cases: Vec<(Json, Reason, String)> = Vec::new();
        for spec in [
            json!({"baseline": "Baseline"}),
            json!({"baseline": "Restricted"}),
            json!({"privileges": {"privileged": false}}),
            json!({"users": {"requireRunAsNonRoot": true}}),
            json!({"host": {"ports": []}}),
            json!({"images": {"allowedRegistries": ["registry.example"]}}),
            json!({"storage": {"maxRequest": "1Gi"}}),
            json!({"access": {"allowedConnections": []}}),
            service_types.clone(),
            of_pods("Pod"),
            of_pods("Containers"),
            of_pods("Volumes"),
            of_objects.clone(),
        ] {
            cases.push((spec, Reason::ProbesPassed, "the API server denies pods that violate the profile".to_owned()));
        }
        for spec in [&service_types, &of_objects] {
            let message = audited("the stage of all checks is Audit");
            cases.push((staged(spec, json!({"objects": "Audit"})), Reason::StageAudit, message));
            cases.push((staged(spec, json!({"objects": "Off"})), Reason::NothingRestricted, nothing.to_owned()));
        }
        for spec in [of_pods("Pod"), json!({"baseline": "Baseline"})] {
            let message = audited("the stage is Audit");
            cases.push((staged(&spec, json!({"pods": "Audit"})), Reason::StageAudit, message));
        }
        let addition = json!({"mutation": {"engine": "Webhook", "inject": [{"name": "a", "labels": {"a": "b"}}]}});
        for spec in [
            json!({}),
            json!({"enforcement": {"pods": "Audit"}}),
            json!({"guardSources": true}),
            json!({"parameters": [{"name": "team", "type": "String", "default": "none"}]}),
            addition,
        ] {
            cases.push((spec, Reason::NothingRestricted, nothing.to_owned()));
        }
        for (spec, reason, message) in cases {
            let mut all = json!({"namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged"});
            all.as_object_mut().expect("an object").extend(spec.as_object().expect("an object").clone());
            let mut observed = profile(Stage::Deny, NamespaceStages::Uniform, None);
            let mut changed = observed.profile.as_deref().expect("a profile").clone();
            changed.spec = serde_json::from_value(all).unwrap_or_else(|error| panic!("{spec}: {error}"));
            observed.profile = Ok(Arc::new(changed));
            let found = enforced(&observed, [20, 0, 0]);
            assert_eq!((found.reason, found.message), (reason, message), "{spec}");
        }
    }

    /// Checks with a stage of their own: what Enforced says of them at each stage of the profile.
    #[test]
    fn enforced_reports_checks_with_a_separate_stage() {
        let with = |stage, own: Stage| {
            let mut observed = profile(stage, NamespaceStages::Uniform, None);
            let mut changed = observed.profile.as_deref().expect("a profile").clone();
            changed.spec.enforcement.checks = ["privileged", "hostPorts"].map(|id| (id.to_owned(), own)).into();
            observed.profile = Ok(Arc::new(changed));
            observed
        };
        let denied = "the API server denies pods that violate the profile";
        let noted = "is admitted and audited";
        for (stage, own, message) in [
            (Stage::Deny, Stage::Deny, denied.to_owned()),
            (
                Stage::Deny,
                Stage::Audit,
                format!("{denied}; an object that violates only checks hostPorts, privileged {noted}"),
            ),
            (
                Stage::Audit,
                Stage::Warn,
                format!(
                    "the stage is Audit: an object that violates the profile {noted}; an object that violates checks hostPorts, \
                 privileged is admitted with a warning and audited"
                ),
            ),
        ] {
            assert_eq!(enforced(&with(stage, own), [0, 0, 20]).message, message, "{stage} {own}");
        }
        let observed = with(Stage::Audit, Stage::Deny);
        let profile = Arc::clone(observed.profile.as_ref().expect("a profile"));
        let compiled =
            palisade_gate::check(palisade_compiler::compile(&profile).expect("it compiles")).expect("checked");
        let accepted = Arc::new(AcceptedProfile { profile, compiled });
        let unprobed = || enforced(&observed, [0, 0, 20]);
        assert!(probes_denied_parts(&unprobed(), &accepted));
        let asked = with_denied_parts(unprobed(), None, &accepted);
        assert_eq!(asked.status, ConditionStatus::False);
        let end = "; no probe has confirmed yet that violations of checks hostPorts, privileged are denied";
        assert!(asked.message.ends_with(end), "{}", asked.message);
    }
}
