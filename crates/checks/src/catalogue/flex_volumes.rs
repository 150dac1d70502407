//! # flexVolumes
//!
//! A driver program on the node mounts a `flexVolume`. It runs as root, with options from the pod.
//!
//! ## If your pod was denied
//!
//! Use a driver that the message lists. Or use a `persistentVolumeClaim`, whose storage class an administrator has
//! chosen.

use serde_json::json;

use crate::settings::{any, kind_allowed, kind_refused};
use crate::{Check, Field, FindingScope, Meaning, Resolve, Rule, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "flexVolumes",
    title: "FlexVolume drivers",
    settings: &["volumes.flexVolumes", "volumes.allowed"],
    psp: Some("allowedFlexVolumes"),
    pss: &[],
    fields: &[Field::Volume("flexVolume.driver")],
    fixtures: include_str!("flex_volumes.yaml"),
    compile: |settings, cx| {
        let drivers = settings.volumes.flex_volumes.as_ref().filter(|drivers| !any(drivers))?;
        if kind_refused(settings, "flexVolume") {
            return None;
        }
        let allowed = cx.texts("spec.volumes.flexVolumes", drivers, Meaning::Word);
        Some(Rule::one(
            FindingScope::Volumes,
            format!("has(v.flexVolume) && !(v.flexVolume.driver in {})", allowed.cel()),
            format!("'flexVolume.driver is ' + v.flexVolume.driver + ', allowed: ' + {}", allowed.says()),
        ))
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let Some(drivers) = &settings.volumes.flex_volumes else { return false };
        let allowed = drivers.resolve(values);
        let bad = ["palisade.invalid/violation", "palisade.invalid/violation2"]
            .into_iter()
            .find(|bad| !allowed.iter().any(|driver| driver == bad || driver == "*"))
            .filter(|_| kind_allowed(settings, values, "flexVolume"));
        if let Some(bad) = bad {
            pod::set(pod, &["volumes"], json!([{"name": "violation", "flexVolume": {"driver": bad}}]));
        }
        bad.is_some()
    },
};
