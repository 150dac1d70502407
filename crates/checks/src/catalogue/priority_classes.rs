//! # priorityClasses
//!
//! The priority class says which pods wait and which are removed for others when nodes are full. Any tenant may name any
//! class, also `system-node-critical`, and so remove other tenants' pods.
//!
//! The API server gives a pod that names no class the cluster's default class, if there is one, before it asks policies,
//! so that this class must be listed for such pods. It does not do so in pod templates: one that names no class is judged
//! when its pods are made. `priority` and `preemptionPolicy` follow from the class: the API server rejects other values.
//!
//! Where pods are scheduled in groups (`schedulingGroup`, off by default), a PodGroup has a class of its own: who may make
//! PodGroups is for RBAC.
//!
//! The pods with which Palisade asks whether a profile is in force have the first class of the list, which must exist.
//!
//! ## If your pod was denied
//!
//! Set the pod's `priorityClassName` to one that the message lists; where it lists `(unset)`, remove the field.

use serde_json::json;

use crate::settings::any;
use crate::{Check, Field, Meaning, Over, Resolve, Rule, TextList, cel, pod};

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
        let named = |class: &String| if class.is_empty() { "(unset)".to_owned() } else { class.clone() };
        let says = TextList { constants: allowed.constants.iter().map(named).collect(), ..allowed.clone() }.says();
        Some(Rule::one(
            Over::Pod,
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
