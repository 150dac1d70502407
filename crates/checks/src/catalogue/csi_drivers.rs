//! # csiDrivers
//!
//! A CSI driver on the node provides a `csi` volume. Some drivers give more access than a tenant should have. This
//! check covers volumes that the pod itself defines. The volumes of persistent volume claims depend on storage classes.
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
    id: "csiDrivers",
    title: "CSI drivers",
    settings: &["volumes.csiDrivers", "volumes.allowed"],
    psp: Some("allowedCSIDrivers"),
    pss: &[],
    fields: &[Field::Volume("csi.driver")],
    fixtures: include_str!("csi_drivers.yaml"),
    compile: |settings, cx| {
        let drivers = settings.volumes.csi_drivers.as_ref().filter(|drivers| !any(drivers))?;
        if kind_refused(settings, "csi") {
            return None;
        }
        let allowed = cx.texts("spec.volumes.csiDrivers", drivers, Meaning::Word);
        Some(Rule::one(
            FindingScope::Volumes,
            format!("has(v.csi) && !(v.csi.driver in {})", allowed.cel()),
            format!("'csi.driver is ' + v.csi.driver + ', allowed: ' + {}", allowed.says()),
        ))
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let Some(drivers) = &settings.volumes.csi_drivers else { return false };
        let allowed = drivers.resolve(values);
        let bad = ["violation.palisade.invalid", "violation2.palisade.invalid"]
            .into_iter()
            .find(|bad| !allowed.iter().any(|driver| driver == bad || driver == "*"))
            .filter(|_| kind_allowed(settings, values, "csi"));
        if let Some(bad) = bad {
            pod::set(pod, &["volumes"], json!([{"name": "violation", "csi": {"driver": bad}}]));
        }
        bad.is_some()
    },
};
