//! Updates of what runs pods (`pkg/apis/apps/validation`, `pkg/apis/batch/validation`).

use palisade_cel::Minor;
use palisade_kube_json::json::Change as _;
use serde_json::{Value, json};

use super::{
    super::{super::gates::Gate, jobs},
    Change, IMMUTABLE, ValueDisplay, invalid, nothing,
};
use crate::validation::{Checking, FieldError, list, part};

/// `ValidateStatefulSetUpdate`
pub(super) fn stateful_set(checking: &mut Checking<'_>, change: Change<'_>) {
    const FREE: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    if checking.minor >= Minor::V1_37 {
        for (key, display) in [
            ("selector", ValueDisplay::Value),
            ("volumeClaimTemplates", ValueDisplay::Own),
            ("serviceName", ValueDisplay::Value),
            ("podManagementPolicy", ValueDisplay::Value),
        ] {
            change.immutable(checking, &["spec", key], display);
        }
        return;
    }
    let spec = |of: &Value| of.get("spec").unwrap_or(nothing()).clone();
    let mut free = FREE.to_vec();
    if checking.minor < Minor::V1_33 {
        free.retain(|field| *field != "revisionHistoryLimit");
    }
    if !change.same.below(&["spec"]).but(&free, &spec(change.new), &spec(change.old)) {
        let quoted: Vec<_> = free.iter().map(|field| format!("'{field}'")).collect();
        let (last, others) =
            quoted.split_last().map(|(last, others)| (last.as_str(), others.join(", "))).unwrap_or_default();
        let text = format!("updates to statefulset spec for fields other than {others} and {last} are forbidden");
        checking.errors.push(FieldError::forbidden("spec", &text));
    }
}

/// `ValidateJobUpdate`
pub(super) fn job(checking: &mut Checking<'_>, change: Change<'_>) {
    let (new, old) = (&change.new["spec"], &change.old["spec"]);
    if new["completionMode"] == "Indexed" {
        if change.changed(&["spec", "completions"])
            && let Some(completions) = part(new, "completions").filter(|number| **number != new["parallelism"])
        {
            let detail = "can only be modified in tandem with spec.parallelism";
            checking.errors.push(invalid(checking.minor, "spec.completions", completions, ValueDisplay::Value, detail));
        }
    } else {
        change.immutable(checking, &["spec", "completions"], ValueDisplay::Value);
    }
    change.immutable(checking, &["spec", "selector"], ValueDisplay::Value);
    template(checking, change, new, old);
    for (key, display) in [
        ("completionMode", ValueDisplay::Value),
        ("podFailurePolicy", ValueDisplay::Own),
        ("backoffLimitPerIndex", ValueDisplay::Value),
        ("managedBy", ValueDisplay::Value),
        ("successPolicy", ValueDisplay::Own),
    ] {
        change.immutable(checking, &["spec", key], display);
    }
    if checking.minor >= Minor::V1_37 {
        jobs::name_of_update(checking, change.new);
    }
}

/// `validatePodTemplateUpdate`: what may change in the template of a job that is suspended.
fn template(checking: &mut Checking<'_>, change: Change<'_>, new: &Value, old: &Value) {
    let minor = checking.minor;
    let status = &change.old["status"];
    let suspended = old["suspend"] == true;
    let is_suspended =
        list(status, "conditions").iter().any(|one| one["type"] == "Suspended" && one["status"] == "True");
    // Since 1.37, a Job that was never started needs no condition (`shouldAllowMutablePodTemplate`).
    let never_started = minor >= Minor::V1_37 && status["startTime"].is_null();
    let settled = suspended && status["active"].as_i64().unwrap_or(0) == 0 && (is_suspended || never_started);
    let scheduling = if Gate::MutableSchedulingDirectivesForSuspendedJobs.is_on(minor) {
        settled
    } else {
        suspended && status["startTime"].is_null()
    };
    let resources = settled && Gate::MutablePodResourcesForSuspendedJobs.is_on(minor);
    let mut before = old["template"].clone();
    let now = &new["template"];
    if scheduling {
        directives(&mut before, now);
    }
    if resources {
        for containers in ["containers", "initContainers"] {
            let now = list(&now["spec"], containers);
            let before = before.at_mut(&["spec"]).get_mut(containers).and_then(Value::as_array_mut);
            for (before, now) in before.filter(|before| before.len() == now.len()).into_iter().flatten().zip(now) {
                if before["name"] == now["name"] {
                    *before.at_mut(&["resources"]) = now["resources"].clone();
                }
            }
        }
        // Of the metadata nothing is compared then.
        *before.at_mut(&["metadata"]) = now["metadata"].clone();
    }
    let whole = |template: &Value| json!({"spec": {"template": template}});
    if !change.same.at(&["spec", "template"], &whole(now), &whole(&before)) {
        let field = if resources { "spec.template.spec" } else { "spec.template" };
        checking.errors.push(invalid(minor, field, now, ValueDisplay::Own, IMMUTABLE));
    }
}

/// Takes from the new template what a job that did not start may change of where its pods run.
fn directives(before: &mut Value, now: &Value) {
    for part in ["annotations", "labels"] {
        *before.at_mut(&["metadata", part]) = now["metadata"][part].clone();
    }
    for part in ["nodeSelector", "tolerations", "schedulingGates"] {
        *before.at_mut(&["spec", part]) = now["spec"][part].clone();
    }
    let wanted = &now["spec"]["affinity"];
    let affinity = before.at_mut(&["spec", "affinity"]);
    match (wanted.is_null(), affinity.is_null()) {
        (true, false) => {
            *affinity.at_mut(&["nodeAffinity"]) = Value::Null;
            if affinity.as_object().is_none_or(|of| of.values().all(Value::is_null)) {
                *affinity = Value::Null;
            }
        }
        (false, true) => *affinity = json!({"nodeAffinity": wanted["nodeAffinity"]}),
        (false, false) => *affinity.at_mut(&["nodeAffinity"]) = wanted["nodeAffinity"].clone(),
        (true, true) => {}
    }
}
