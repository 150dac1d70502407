//! Updates of pods (`ValidatePodUpdate`, `ValidatePodEphemeralContainersUpdate` and `ValidatePodResize` in
//! `pkg/apis/core/validation/validation.go`).

use palisade_cel::{Minor, Quantity};
use palisade_kube_json::json::Change as _;
use serde_json::{Map, Value, json};

use super::{
    super::super::{gates::Gate, pods::quality},
    Change, NOT_SHOWN, ValueDisplay, invalid,
};
use crate::validation::{Checking, FieldError, list, part, text};

const MIRROR: &str = "kubernetes.io/config.mirror";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// The fields of a pod's specification that may change, in the words of the API server.
const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                         `spec.tolerations` (only additions to existing tolerations),\
                         `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn update(checking: &mut Checking<'_>, change: Change<'_>) {
    annotations(checking, change);
    let (new, old) = (&change.new["spec"], &change.old["spec"]);
    for containers in ["containers", "initContainers"] {
        if list(new, containers).len() != list(old, containers).len() {
            let text = "pod updates may not add or remove containers";
            checking.errors.push(FieldError::forbidden(format!("spec.{containers}"), text));
            return;
        }
    }
    if !deadline(checking, new, old) {
        return;
    }
    tolerations(checking, change, new, old);
    gates(checking, new, old);
    let spec = change.same.below(&["spec"]);
    let mut munged = new.clone();
    let mut besides = vec!["activeDeadlineSeconds", "schedulingGates", "tolerations"];
    for containers in ["containers", "initContainers"] {
        let now = munged.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, before) in now.zip(list(old, containers)) {
            *container.at_mut(&["image"]) = before["image"].clone();
        }
    }
    if old["terminationGracePeriodSeconds"].as_i64().is_some_and(|period| period < 0)
        && new["terminationGracePeriodSeconds"] == 1
    {
        besides.push("terminationGracePeriodSeconds");
    }
    // A pod that is not scheduled yet may say more precisely where.
    if !list(old, "schedulingGates").is_empty() {
        selector(checking, change, new, old);
        besides.push("nodeSelector");
        affinity(checking, change, &mut munged, old);
    }
    if !spec.but(&besides, &munged, old) {
        let text = format!("pod updates may not change fields other than {UPDATABLE}\n{NOT_SHOWN}");
        checking.errors.push(FieldError::forbidden("spec", &text));
    }
}

/// `ValidatePodSpecificAnnotationUpdates`. In Go maps have no order; here keys are sorted.
pub(super) fn annotations(checking: &mut Checking<'_>, change: Change<'_>) {
    let none = Map::new();
    let of =
        |object: &'_ Value| object.pointer("/metadata/annotations").and_then(Value::as_object).unwrap_or(&none).clone();
    let (now, before) = (of(change.new), of(change.old));
    let special = |key: &str| match key {
        MIRROR => Some("mirror pod annotation"),
        _ if key.starts_with(APP_ARMOR) => Some("AppArmor annotations"),
        _ => None,
    };
    let field = |key: &str| format!("metadata.annotations[{key}]");
    for (key, _) in before.iter().filter(|(key, value)| now.get(*key) != Some(value)) {
        if let Some(what) = special(key) {
            checking.errors.push(FieldError::forbidden(field(key), &format!("may not remove or update {what}")));
        }
    }
    for key in now.keys().filter(|key| !before.contains_key(*key)) {
        if let Some(what) = special(key) {
            checking.errors.push(FieldError::forbidden(field(key), &format!("may not add {what}")));
        }
    }
}

/// False if nothing more is validated.
fn deadline(checking: &mut Checking<'_>, new: &Value, old: &Value) -> bool {
    let field = "spec.activeDeadlineSeconds";
    let (now, before) = (new["activeDeadlineSeconds"].as_i64(), old["activeDeadlineSeconds"].as_i64());
    let detail = match (now, before) {
        (Some(now), _) if !(0..=i64::from(i32::MAX)).contains(&now) => "must be between 0 and 2147483647, inclusive",
        (Some(now), Some(before)) if before < now => "must be less than or equal to previous value",
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            checking.errors.push(invalid(checking.minor, field, &Value::Null, ValueDisplay::Value, detail));
            return true;
        }
        _ => return true,
    };
    checking.errors.push(FieldError::invalid_value(checking.minor, field, &json!(now), detail));
    false
}

/// `validateOnlyAddedTolerations`
fn tolerations(checking: &mut Checking<'_>, change: Change<'_>, new: &Value, old: &Value) {
    let same = change.same.below(&["spec"]);
    let one = |toleration: &Value| json!({"tolerations": [toleration]});
    let kept = list(old, "tolerations").iter().all(|old| {
        list(new, "tolerations").iter().any(|new| {
            let mut old = old.clone();
            *old.at_mut(&["tolerationSeconds"]) = new["tolerationSeconds"].clone();
            same.at(&["tolerations"], &one(new), &one(&old))
        })
    });
    if !kept {
        let text = "existing toleration can not be modified except its tolerationSeconds";
        checking.errors.push(FieldError::forbidden("spec.tolerations", text));
    }
}

/// `validateOnlyDeletedSchedulingGates`
fn gates(checking: &mut Checking<'_>, new: &Value, old: &Value) {
    let known = |name: &str| list(old, "schedulingGates").iter().any(|gate| text(gate, "name") == name);
    for (i, name) in list(new, "schedulingGates").iter().map(|gate| text(gate, "name")).enumerate() {
        if !known(name) {
            let text = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            checking.errors.push(FieldError::forbidden(format!("spec.schedulingGates[{i}].name"), &text));
        }
    }
}

/// `validateNodeSelectorMutation`
fn selector(checking: &mut Checking<'_>, change: Change<'_>, new: &Value, old: &Value) {
    let now = &new["nodeSelector"];
    let kept = old["nodeSelector"].as_object().into_iter().flatten().all(|(key, value)| now.get(key) == Some(value));
    if change.changed(&["spec", "nodeSelector"]) && !kept {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        checking.errors.push(invalid(checking.minor, "spec.nodeSelector", now, ValueDisplay::Value, detail));
    }
}

/// `validateNodeAffinityMutation`; then the old affinity is put in place of the new one, to be equal.
fn affinity(checking: &mut Checking<'_>, change: Change<'_>, munged: &mut Value, old: &Value) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let path = ["spec", "affinity", "nodeAffinity"];
    if !change.changed(&path) {
        return;
    }
    let field = format!("{}.{REQUIRED}.nodeSelectorTerms", path.join("."));
    let terms = |of: &Value| list(&of["affinity"]["nodeAffinity"][REQUIRED], "nodeSelectorTerms").to_vec();
    let (now, before) = (terms(munged), terms(old));
    if !before.is_empty() && before.len() != now.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        checking.errors.push(invalid(checking.minor, &field, &json!(now), ValueDisplay::Own, detail));
    } else {
        for (i, (now, before)) in now.iter().zip(&before).enumerate() {
            // Requirements may follow the old ones.
            let only_added = ["matchExpressions", "matchFields"].iter().all(|key| {
                let (now, before) = (list(now, key), list(before, key));
                now.len() >= before.len() && now[..before.len()] == *before
            });
            if !only_added || before.as_object().is_none_or(|term| term.values().all(Value::is_null)) {
                let detail = "only additions are allowed (no mutations or deletions)";
                checking.errors.push(invalid(checking.minor, &format!("{field}[{i}]"), now, ValueDisplay::Own, detail));
            }
        }
    }
    let old_node = old["affinity"]["nodeAffinity"].clone();
    let others = |of: &Value| part(of, "podAffinity").is_some() || part(of, "podAntiAffinity").is_some();
    match (munged["affinity"].is_null(), old_node.is_null()) {
        (true, true) => {}
        (true, false) => *munged.at_mut(&["affinity"]) = json!({"nodeAffinity": old_node}),
        (false, _) if old["affinity"].is_null() && !others(&munged["affinity"]) => {
            *munged.at_mut(&["affinity"]) = Value::Null;
        }
        (false, _) => *munged.at_mut(&["affinity", "nodeAffinity"]) = old_node,
    }
}

/// Why a subresource that changes pods does not change this one.
fn special(checking: &mut Checking<'_>, change: Change<'_>, what: &str) -> bool {
    let mirror = !change.old["metadata"]["annotations"][MIRROR].is_null();
    if mirror {
        checking.errors = vec![FieldError::forbidden("", &format!("static pods {what}"))];
    }
    mirror
}

pub(super) fn ephemeral(checking: &mut Checking<'_>, change: Change<'_>) {
    annotations(checking, change);
    if special(checking, change, "do not support ephemeral containers") {
        return;
    }
    let one = |container: &Value| json!({"ephemeralContainers": [container]});
    let spec = change.same.below(&["spec"]);
    for old in list(&change.old["spec"], "ephemeralContainers") {
        let name = text(old, "name");
        let quoted = crate::validation::quote(name);
        let now = list(&change.new["spec"], "ephemeralContainers").iter().rfind(|new| text(new, "name") == name);
        let detail = match now {
            None => format!("existing ephemeral containers {quoted} may not be removed\n"),
            Some(new) if !spec.at(&["ephemeralContainers"], &one(new), &one(old)) => {
                format!("existing ephemeral containers {quoted} may not be changed\n{NOT_SHOWN}")
            }
            Some(_) => continue,
        };
        checking.errors.push(FieldError::forbidden("spec.ephemeralContainers", &detail));
    }
}

pub(super) fn resize(checking: &mut Checking<'_>, change: Change<'_>) {
    if special(checking, change, "cannot be resized") {
        return;
    }
    let (minor, new, old) = (checking.minor, &change.new["spec"], &change.old["spec"]);
    if old["os"]["name"] == "windows" {
        checking.errors = vec![FieldError::forbidden("", "windows pods cannot be resized")];
        return;
    }
    let class = change.old["status"]["qosClass"].as_str().filter(|class| !class.is_empty());
    if class.unwrap_or_else(|| quality(minor, old)) != quality(minor, new) {
        let text = "Pod QOS Class may not change as a result of resizing";
        checking.errors.push(FieldError::invalid(
            "spec",
            change.new["status"]["qosClass"].as_str().unwrap_or(""),
            text,
        ));
    }
    let running =
        list(&change.old["status"], "containerStatuses").iter().find(|one| !one["state"]["running"].is_null());
    if running.is_some_and(|status| part(status, "resources").is_none()) {
        checking.errors.push(FieldError::forbidden("spec", "Pod running on node without support for resize"));
    }
    let pod_level = |spec: &Value| {
        ["requests", "limits"].iter().any(|key| spec["resources"][key].as_object().is_some_and(|of| !of.is_empty()))
    };
    if pod_level(new) || pod_level(old) {
        if minor < Minor::V1_35 {
            checking.errors = vec![FieldError::forbidden("", "pods with pod-level resources cannot be resized")];
            return;
        }
        if minor < Minor::V1_36 {
            let text = "resize of pods with pod-level resources is forbidden when \
                        InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled";
            checking.errors.push(FieldError::forbidden("", text));
            return;
        }
        // Which combinations are taken depends on much more than what is compared here.
        let why = "what a resize of a pod with resources of its own may change is not checked here";
        checking.unknown.get_or_insert_with(|| why.to_owned());
        return;
    }
    if !list(&change.old["status"], "nodeAllocatableResourceClaimStatuses").is_empty() && minor >= Minor::V1_36 {
        let text = "pods with node allocatable resource claims cannot be resized";
        checking.errors.push(FieldError::forbidden("spec", text));
    }
    let mut ordered = true;
    for containers in ["containers", "initContainers"] {
        let (now, before) = (list(new, containers), list(old, containers));
        if now.len() != before.len() {
            let text = format!("{containers} may not be added or removed on resize");
            checking.errors.push(FieldError::forbidden(format!("spec.{containers}"), &text));
            ordered = false;
            continue;
        }
        for (i, _) in now.iter().zip(before).enumerate().filter(|(_, (now, before))| now["name"] != before["name"]) {
            let field = format!("spec.{containers}[{i}].name");
            let text = format!("{containers} may not be renamed or reordered on resize");
            checking.errors.push(FieldError::forbidden(field, &text));
            ordered = false;
        }
    }
    if ordered {
        containers(checking, change, new, old);
    }
}

fn containers(checking: &mut Checking<'_>, change: Change<'_>, new: &Value, old: &Value) {
    let minor = checking.minor;
    let sidecar = |container: &Value| container["restartPolicy"] == "Always";
    let resizable =
        |container: &Value| sidecar(container) || Gate::InPlacePodVerticalScalingInitContainers.is_on(minor);
    for key in ["initContainers", "containers"] {
        for (i, (now, before)) in list(new, key).iter().zip(list(old, key)).enumerate() {
            if key == "initContainers" && !resizable(before) {
                continue;
            }
            for which in ["requests", "limits"] {
                let names = |of: &Value| of["resources"][which].as_object().cloned().unwrap_or_default();
                if names(before).keys().any(|name| !names(now).contains_key(name)) {
                    let field = format!("spec.{key}[{i}].resources.{which}");
                    checking.errors.push(FieldError::forbidden(field, &format!("resource {which} cannot be removed")));
                }
            }
            if minor < Minor::V1_34 {
                less_memory(checking, &format!("spec.{key}[{i}].resources.limits[memory]"), now, before);
            }
        }
    }
    let spec = change.same.below(&["spec"]);
    let one = |container: &Value| json!({"containers": [container]});
    let differs = |now: &Value, before: &Value| !spec.at(&["containers"], &one(now), &one(before));
    for (now, before) in list(new, "containers").iter().zip(list(old, "containers")) {
        if differs(&without(now, before), before) {
            checking.errors.push(FieldError::forbidden("spec", "only cpu and memory resources are mutable"));
        }
    }
    for (i, (now, before)) in list(new, "initContainers").iter().zip(list(old, "initContainers")).enumerate() {
        let field = format!("spec.initContainers[{i}]");
        let modified = differs(now, before);
        if resizable(now) {
            if differs(&without(now, before), before) {
                checking.errors.push(if minor < Minor::V1_36 {
                    let text = "only cpu and memory resources for sidecar containers are mutable";
                    FieldError::forbidden("spec", text)
                } else {
                    let text = "only cpu and memory resources for init or sidecar containers are mutable";
                    FieldError::forbidden(&field, text)
                });
            }
            if modified && !sidecar(now) {
                for _ in list(now, "resizePolicy").iter().filter(|one| one["restartPolicy"] == "RestartContainer") {
                    let text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
                    checking.errors.push(FieldError::forbidden(&field, text));
                }
            }
        } else if modified {
            let text = "resources for non-sidecar init containers are immutable";
            checking.errors.push(FieldError::forbidden("spec", text));
        }
    }
    // All else was taken from the old pod.
    if checking.errors.is_empty() && !spec.but(&["containers", "initContainers"], new, old) {
        checking.errors.push(FieldError::forbidden("spec", "only cpu and memory resources are mutable"));
    }
}

/// Until 1.33, a resize lowers or adds a limit of memory only if it restarts the container (`validateContainerResize`).
fn less_memory(checking: &mut Checking<'_>, field: &str, now: &Value, before: &Value) {
    let policy = list(now, "resizePolicy").iter().find(|policy| policy["resourceName"] == "memory");
    if policy.is_some_and(|policy| !matches!(text(policy, "restartPolicy"), "" | "NotRequired")) {
        return;
    }
    let limit = |of: &Value| Quantity::parse(of["resources"]["limits"]["memory"].as_str()?).ok();
    let what = match (limit(now), limit(before)) {
        (Some(now), Some(before)) if now.compare(&before).is_lt() => "decreased",
        (Some(_), None) => "added",
        _ => return,
    };
    let detail = format!("memory limits cannot be {what} unless resizePolicy is RestartContainer");
    checking.errors.push(FieldError::forbidden(field, &detail));
}

/// A container with the processor and memory of another (`dropCPUMemoryResourcesFromContainer`).
fn without(container: &Value, old: &Value) -> Value {
    let mut container = container.clone();
    let mut resources = Map::new();
    for which in ["requests", "limits"] {
        let mut of = container["resources"][which].as_object().cloned().unwrap_or_default();
        for name in ["cpu", "memory"] {
            match old["resources"][which].get(name) {
                Some(quantity) => drop(of.insert(name.to_owned(), quantity.clone())),
                None => drop(of.remove(name)),
            }
        }
        resources.insert(which.to_owned(), Value::Object(of));
    }
    *container.at_mut(&["resources"]) = Value::Object(resources);
    container
}
