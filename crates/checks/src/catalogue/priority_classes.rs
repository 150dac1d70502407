//! # priorityClasses
//!
//! The priority class decides which pods wait, and which pods are evicted for others if nodes are full. Without this
//! check, any tenant can use any class, including `system-node-critical`, and so evict pods of other tenants.
//!
//! If a pod has no class, the API server sets the default class of the cluster, if there is one, before policies run.
//! List that class to admit such pods. Pod templates do not get the default class: a template without a class is
//! admitted, and its pods are evaluated on creation. `priority` and `preemptionPolicy` follow from the class: the API
//! server rejects other values.
//!
//! If pods are scheduled in groups (`schedulingGroup`, off by default), a PodGroup has a separate class. Permission to
//! create PodGroups is for RBAC.
//!
//! The probe pods of Palisade have the first class of the list, which must exist. Palisade uses them to test whether a
//! profile is enforced.
//!
//! ## If your pod was denied
//!
//! Set the pod's `priorityClassName` to a class that the message lists. If it lists `(unset)`, you can remove the
//! field.

use serde_json::json;

use crate::settings::any;
use crate::{Check, Field, FindingScope, Meaning, Resolve, Rule, cel, pod};

const FIELD: &str = "variables.spec.?priorityClassName.orValue('')";

/// The check.
pub static CHECK: Check = Check {
    id: "priorityClasses",
    title: "Priority classes",
    settings: &["scheduling.priorityClasses"],
    psp: None,
    pss: &[],
    fields: &[Field::Pod("priorityClassName")],
    fixtures: include_str!("priority_classes.yaml"),
    compile: |settings, cx| {
        let classes = settings.scheduling.priority_classes.as_ref().filter(|classes| !any(classes))?;
        let allowed = cx.texts("spec.scheduling.priorityClasses", classes, Meaning::Word);
        let says = allowed.says_unset();
        Some(Rule::one(
            FindingScope::Pod,
            // A template has no class yet where its pods get the default one.
            format!("!({FIELD} in {}) && ({FIELD} != '' || request.kind.kind == 'Pod')", allowed.cel()),
            format!(
                "'spec.priorityClassName is ' + ({FIELD} == '' ? {} : {FIELD}) + ', allowed: ' + {says}",
                cel::quote("unset")
            ),
        ))
    },
    defaults: |_, _| vec![],
    comply: |settings, values, pod| {
        let classes = settings.scheduling.priority_classes.as_ref().map(|classes| classes.resolve(values));
        let classes = classes.unwrap_or_default();
        if let Some(first) = classes.first()
            && !classes.iter().any(|class| class.is_empty() || class == "*")
        {
            pod::set(pod, &["priorityClassName"], json!(first));
        }
    },
    violate: |settings, values, pod| {
        let Some(classes) = settings.scheduling.priority_classes.as_ref().map(|classes| classes.resolve(values)) else {
            return false;
        };
        // Each cluster has these two. The API server rejects a class that does not exist before policies run.
        let bad = ["system-cluster-critical", "system-node-critical"]
            .into_iter()
            .find(|bad| !classes.iter().any(|class| class == bad || class == "*"));
        if let Some(bad) = bad {
            pod::set(pod, &["priorityClassName"], json!(bad));
        }
        bad.is_some()
    },
};
