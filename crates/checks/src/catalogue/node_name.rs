//! # nodeName
//!
//! A pod that is created with a `nodeName` runs on that node: no scheduler is involved, and taints with the effect
//! NoSchedule have no effect. So a tenant can reach nodes that are not meant for tenants.
//!
//! The check covers pod templates and new pods, but not updates, because the scheduler sets the field in every pod.
//! Permission to bind pods to nodes (`pods/binding`) is for RBAC: only schedulers should have it.
//!
//! ## If your pod was denied
//!
//! Remove `nodeName`. To select a kind of node, use `nodeSelector` or `affinity`. To select one node, use the label
//! `kubernetes.io/hostname`. `kubectl debug node/...` creates pods with a `nodeName`: it is meant for administrators.

use serde_json::json;

use crate::{Check, Field, FindingScope, Resolve, Rule, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "nodeName",
    title: "Node name",
    settings: &["scheduling.nodeName"],
    psp: None,
    pss: &[],
    fields: &[Field::Pod("nodeName")],
    fixtures: include_str!("node_name.yaml"),
    compile: |settings, cx| {
        let violated = cx.unless(
            "spec.scheduling.nodeName",
            settings.scheduling.node_name.as_ref()?,
            // An update of a pod cannot change it (`ValidatePodUpdate`), and sees the node that the scheduler has set.
            "variables.spec.?nodeName.orValue('') != '' \
             && !(request.kind.kind == 'Pod' && request.operation == 'UPDATE')",
        )?;
        Some(Rule::one(
            FindingScope::Pod,
            violated,
            "'spec.nodeName is ' + variables.spec.nodeName + ', must be unset: the scheduler chooses the node'",
        ))
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let forbidden = settings.scheduling.node_name.as_ref().is_some_and(|allowed| !allowed.resolve(values));
        if forbidden {
            pod::set(pod, &["nodeName"], json!("violation.palisade.invalid"));
        }
        forbidden
    },
};
