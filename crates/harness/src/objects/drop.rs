//! Fields of features that are off by default: they are decoded, and dropped between mutating and validating admission
//! unless the stored object has them (`dropDisabledFields` of the strategies).

use serde_json::{Map, Value};

use super::table::{Table, Type};

type Object = Map<String, Value>;

/// A feature that no minor up to 1.37 has on by default.
const NEVER: u8 = u8::MAX;

/// Struct, field, and the first minor whose API server keeps it.
const GATED: &[(&str, &str, u8)] = &[
    ("core/v1.PodSpec", "schedulingGroup", NEVER),
    ("core/v1.PodSpec", "workloadRef", NEVER),
    ("core/v1.PodSpec", "evictionResponders", NEVER),
    ("core/v1.PodSpec", "resources", 34),
    ("core/v1.PodSpec", "resourceClaims", 34),
    ("core/v1.PodSpec", "hostnameOverride", 35),
    ("core/v1.ResourceRequirements", "claims", 34),
    ("core/v1.Container", "restartPolicyRules", 35),
    ("core/v1.EphemeralContainerCommon", "restartPolicyRules", 35),
    ("core/v1.PersistentVolumeClaimSpec", "volumeAttributesClassName", 34),
    ("core/v1.PersistentVolumeSpec", "volumeAttributesClassName", 34),
    ("core/v1.VolumeMount", "bindMountOptions", NEVER),
    ("core/v1.GRPCAction", "mode", NEVER),
    ("core/v1.HTTPGetAction", "protocol", NEVER),
    ("core/v1.EmptyDirVolumeSource", "mode", NEVER),
    ("core/v1.SecretVolumeSource", "defaultUser", NEVER),
    ("core/v1.ConfigMapVolumeSource", "defaultUser", NEVER),
    ("core/v1.DownwardAPIVolumeSource", "defaultUser", NEVER),
    ("core/v1.ProjectedVolumeSource", "defaultUser", NEVER),
    ("core/v1.KeyToPath", "user", NEVER),
    ("core/v1.DownwardAPIVolumeFile", "user", NEVER),
    ("core/v1.ServiceAccountTokenProjection", "user", NEVER),
    ("core/v1.ClusterTrustBundleProjection", "user", NEVER),
    ("core/v1.PodCertificateProjection", "user", NEVER),
    ("core/v1.NodeSpec", "podPreemptionPolicy", NEVER),
    ("core/v1.NodeStatus", "declaredFeatures", 36),
    ("batch/v1.JobSpec", "scheduling", NEVER),
    ("core/v1.VolumeProjection", "clusterTrustBundle", 37),
    ("core/v1.VolumeProjection", "podCertificate", 37),
    ("coordination/v1.LeaseSpec", "strategy", NEVER),
    ("coordination/v1.LeaseSpec", "preferredHolder", NEVER),
    ("core/v1.NodeSpec", "configSource", NEVER),
    ("core/v1.NodeStatus", "config", NEVER),
    ("core/v1.VolumeSource", "image", 35),
    ("discovery/v1.Endpoint", "deprecatedTopology", NEVER),
    ("apps/v1.RollingUpdateStatefulSetStrategy", "maxUnavailable", 37),
    ("storage/v1.CSIDriverSpec", "nodeAllocatableUpdatePeriodSeconds", 35),
    ("storage/v1.CSIDriverSpec", "preventPodSchedulingIfMissing", 37),
];

/// Drops them from a decoded struct and all in it.
pub(super) fn drop_disabled(table: &Table, minor: u8, name: &str, object: &mut Object) {
    let Some(of) = table.get(name) else { return };
    for part in &of.parts {
        for (_, field, _) in GATED.iter().filter(|(gated, _, since)| gated == part && minor < *since) {
            object.remove(*field);
        }
    }
    if of.parts.iter().any(|part| part == "core/v1.Container" || part == "core/v1.EphemeralContainerCommon") {
        stop_signal(object);
    }
    for field in &of.fields {
        if let Some(value) = object.get_mut(&field.name) {
            drop_in(table, minor, &field.of, value);
        }
    }
}

/// The feature `ContainerStopSignals` is off; a lifecycle that had nothing else goes with it.
fn stop_signal(container: &mut Object) {
    let Some(lifecycle) = container.get_mut("lifecycle").and_then(Value::as_object_mut) else { return };
    if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
        container.remove("lifecycle");
    }
}

fn drop_in(table: &Table, minor: u8, of: &Type, value: &mut Value) {
    match (of, value) {
        (Type::Named(_, inner) | Type::Pointer(inner), value) => drop_in(table, minor, inner, value),
        (Type::Struct(name), Value::Object(object)) => drop_disabled(table, minor, name, object),
        (Type::List(inner), Value::Array(list)) => {
            for element in list.iter_mut() {
                drop_in(table, minor, inner, element);
            }
        }
        _ => {}
    }
}
