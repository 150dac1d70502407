//! # nodeSelector
//!
//! Each pod must ask for nodes with listed labels, for example those of its tenant. A node must have everything that
//! `nodeSelector` asks for, and what `affinity.nodeAffinity` asks for besides: a pod can narrow the choice and not get
//! around it. Labels below `node-restriction.kubernetes.io/` no kubelet can give to its own node.
//!
//! Taints of those nodes keep others off them (check `tolerations`), and `nodeName` goes around the scheduler, though
//! the kubelet still compares the labels.
//!
//! ## If your pod was denied
//!
//! Set the label that the message names in the pod's `nodeSelector`, with one of the values that it lists.

use crate::json::Change as _;
use serde_json::json;

use crate::{Check, Field, Finding, Meaning, Over, Resolve, Rule, cel, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "nodeSelector",
    title: "Selection of nodes",
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
                Over::Pod,
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
