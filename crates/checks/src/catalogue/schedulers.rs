//! # schedulers
//!
//! A pod selects the scheduler that chooses its node. A scheduler for other workloads may ignore device quotas, queues,
//! or the rules that keep the nodes of tenants apart.
//!
//! ## If your pod was denied
//!
//! Set the pod's `schedulerName` to a scheduler that the message lists. A pod without the field uses
//! `default-scheduler`.

use serde_json::json;

use crate::settings::any;
use crate::{Check, Field, FindingScope, Meaning, Resolve, Rule, pod};

const DEFAULT: &str = "default-scheduler";

/// The check.
pub static CHECK: Check = Check {
    id: "schedulers",
    title: "Schedulers",
    settings: &["scheduling.schedulers"],
    psp: None,
    pss: &[],
    fields: &[Field::Pod("schedulerName")],
    fixtures: include_str!("schedulers.yaml"),
    compile: |settings, cx| {
        let schedulers = settings.scheduling.schedulers.as_ref().filter(|schedulers| !any(schedulers))?;
        let allowed = cx.texts("spec.scheduling.schedulers", schedulers, Meaning::Word);
        let found = format!("variables.spec.?schedulerName.orValue('{DEFAULT}')");
        Some(Rule::one(
            FindingScope::Pod,
            format!("!({found} in {})", allowed.cel()),
            format!("'spec.schedulerName is ' + {found} + ', allowed: ' + {}", allowed.says()),
        ))
    },
    defaults: |_, _| vec![],
    comply: |settings, values, pod| {
        let schedulers = settings.scheduling.schedulers.as_ref().map(|schedulers| schedulers.resolve(values));
        let schedulers = schedulers.unwrap_or_default();
        if let Some(first) = schedulers.first()
            && !schedulers.iter().any(|one| one == DEFAULT || one == "*")
        {
            pod::set(pod, &["schedulerName"], json!(first));
        }
    },
    violate: |settings, values, pod| {
        let Some(schedulers) = settings.scheduling.schedulers.as_ref().map(|all| all.resolve(values)) else {
            return false;
        };
        let bad = ["violation.palisade.invalid", "violation2.palisade.invalid"]
            .into_iter()
            .find(|bad| !schedulers.iter().any(|one| one == bad || one == "*"));
        if let Some(bad) = bad {
            pod::set(pod, &["schedulerName"], json!(bad));
        }
        bad.is_some()
    },
};
