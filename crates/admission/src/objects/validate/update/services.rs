//! Updates of services and nodes (`pkg/apis/core/validation/validation.go`).

use palisade_cel::Minor;
use serde_json::Value;

use super::{Change, ValueDisplay, invalid, unknown};
use crate::validation::{Checking, FieldError, list, part, text};

/// `ValidateServiceUpdate`
pub(super) fn update(checking: &mut Checking<'_>, change: Change<'_>) {
    let (new, old) = (&change.new["spec"], &change.old["spec"]);
    if new["type"] != "ExternalName" && old["type"] != "ExternalName" {
        allocated(checking, change);
    }
    if new["type"] == "LoadBalancer" {
        if old["type"] == "LoadBalancer" && change.changed(&["spec", "loadBalancerClass"]) {
            let (field, value) = ("spec.loadBalancerClass", &new["loadBalancerClass"]);
            checking.errors.push(invalid(checking.minor, field, value, ValueDisplay::Value, "may not change once set"));
        }
        let local = |spec: &Value| spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local";
        if local(new) && local(old) && change.changed(&["spec", "healthCheckNodePort"]) {
            checking.errors.push(FieldError::forbidden("spec.healthCheckNodePort", "field is immutable"));
        }
    } else if part(new, "loadBalancerClass").is_some() {
        let text = "may only be used when `type` is 'LoadBalancer'";
        checking.errors.push(FieldError::forbidden("spec.loadBalancerClass", text));
    }
}

/// Checks that values that were allocated for a service do not change.
fn allocated(checking: &mut Checking<'_>, change: Change<'_>) {
    let (new, old) = (&change.new["spec"], &change.old["spec"]);
    let headless = |spec: &Value| text(spec, "clusterIP") == "None";
    for key in ["clusterIPs", "ipFamilies"] {
        if headless(new) || headless(old) {
            if change.changed(&["spec", key]) {
                unknown(checking, "services", &format!("spec.{key}"));
            }
        } else {
            addresses(checking, key, new, old);
        }
    }
    if change.changed(&["spec", "clusterIP"]) && !change.changed(&["spec", "clusterIPs"]) {
        // The API server brings the two in line first.
        unknown(checking, "services", "spec.clusterIP");
    }
    if change.changed(&["spec", "ipFamilyPolicy"]) {
        unknown(checking, "services", "spec.ipFamilyPolicy");
    }
}

/// `validateUpgradeDowngradeClusterIPs` and `validateUpgradeDowngradeIPFamilies`, where as many are left as there were.
fn addresses(checking: &mut Checking<'_>, key: &str, new: &Value, old: &Value) {
    let (now, before) = (list(new, key), list(old, key));
    if now.len() != before.len() {
        if !before.is_empty() {
            unknown(checking, "services", &format!("the number of spec.{key}"));
        }
        return;
    }
    for (i, _) in now.iter().zip(before).enumerate().filter(|(_, (now, before))| now != before) {
        let at = if key == "ipFamilies" { 0 } else { i };
        let (field, minor) = (format!("spec.{key}[{at}]"), checking.minor);
        checking.errors.push(invalid(minor, &field, &new[key], ValueDisplay::Value, "may not change once set"));
    }
}

/// `ValidateNodeUpdate`
pub(super) fn node(checking: &mut Checking<'_>, change: Change<'_>) {
    let (new, old) = (&change.new["spec"], &change.old["spec"]);
    let (now, before) = (list(new, "podCIDRs"), list(old, "podCIDRs"));
    let text_of_ranges = "node updates may not change podCIDR except from \"\" to valid";
    if !before.is_empty() && now != before {
        checking.errors.push(FieldError::forbidden("spec.podCIDRs", text_of_ranges));
    }
    let (now, before) = (text(new, "providerID"), text(old, "providerID"));
    if !before.is_empty() && now != before {
        let field = "spec.providerID";
        checking.errors.push(match now {
            _ if checking.minor < Minor::V1_37 => {
                FieldError::forbidden(field, "node updates may not change providerID except from \"\" to valid")
            }
            "" => FieldError::invalid_value(checking.minor, field, &Value::Null, "field cannot be cleared once set"),
            _ => FieldError::invalid_value(checking.minor, field, &Value::Null, "field cannot be modified once set"),
        });
    }
    if text(old, "externalID") != text(new, "externalID") {
        checking.errors.push(FieldError::forbidden("spec.externalID", "may not be updated"));
    }
}
