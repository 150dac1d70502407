//! # nodeName
//!
//! A pod that is made with a `nodeName` runs on that node: no scheduler is asked, and taints that keep others off the
//! node (NoSchedule) are not looked at. So a tenant reaches nodes that are not meant for tenants.
//!
//! Only new pods are judged by it, and pod templates, for the scheduler sets the field in every pod. Who may bind pods to
//! nodes (`pods/binding`) is for RBAC: only schedulers should.
//!
//! ## If your pod was denied
//!
//! Remove `nodeName`. To ask for a kind of node use `nodeSelector` or `affinity`, for one of them with the label
//! `kubernetes.io/hostname`. `kubectl debug node/...` makes such pods: it is for admins.

use serde_json::json;

use crate::{Check, Field, Over, Resolve, Rule, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "nodeName",
    title: "Choice of the node by its name",
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
            Over::Pod,
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
