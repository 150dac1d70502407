//! # nodeSelector
//!
//! Each pod must select nodes with the listed labels, for example the nodes of its tenant. A node must match both
//! `nodeSelector` and `affinity.nodeAffinity`, so a pod can narrow the choice but not bypass it. A kubelet cannot set
//! labels below `node-restriction.kubernetes.io/` on its own node.
//!
//! To keep other pods off those nodes, use taints (check `tolerations`). `nodeName` bypasses the scheduler, but the
//! kubelet still compares the labels.
//!
//! ## If your pod was denied
//!
//! Set the label in the message in the pod's `nodeSelector`, with one of the listed values.

use crate::json::Change as _;
use serde_json::json;

use crate::{Check, Field, Finding, FindingScope, Meaning, Resolve, Rule, cel, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "nodeSelector",
    title: "Node selectors",
    settings: &["scheduling.nodeSelector"],
    psp: None,
    pss: &[],
    fields: &[Field::Pod("nodeSelector")],
    fixtures: include_str!("node_selector.yaml"),
    compile: |settings, cx| {
        let labels = settings.scheduling.node_selector.as_ref().filter(|labels| !labels.is_empty())?;
        let finding = |(index, label): (usize, &crate::settings::NodeLabel)| {
            let allowed =
                cx.texts(&format!("spec.scheduling.nodeSelector[{index}].values"), &label.values, Meaning::Word);
            let found = format!("variables.spec.?nodeSelector[?{}]", cel::quote(&label.key));
            Finding::new(
                FindingScope::Pod,
                format!("!{found}.hasValue() || !({found}.value() in {})", allowed.cel()),
                format!(
                    "{} + {found}.orValue('unset') + ', allowed: ' + {}",
                    cel::quote(&format!("spec.nodeSelector[{}] is ", label.key)),
                    allowed.says()
                ),
            )
        };
        Some(Rule { findings: labels.iter().enumerate().map(finding).collect(), ..Rule::default() })
    },
    defaults: |_, _| vec![],
    comply: |settings, values, pod| {
        for label in settings.scheduling.node_selector.iter().flatten() {
            if let Some(first) = label.values.resolve(values).first() {
                pod::set(pod, &["nodeSelector", &label.key], json!(first));
            }
        }
    },
    violate: |settings, _, pod| {
        let demanded = settings.scheduling.node_selector.as_ref().is_some_and(|labels| !labels.is_empty());
        if demanded && let Some(spec) = pod.at_mut(&["spec"]).as_object_mut() {
            spec.remove("nodeSelector");
        }
        demanded
    },
};
