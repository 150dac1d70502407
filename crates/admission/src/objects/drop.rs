//! Fields of features that are off by default: they are decoded, and dropped between mutating and validating admission
//! unless the stored object has them (`dropDisabledFields` of the strategies).

use std::collections::BTreeSet;

use palisade_cel::Minor;
use serde_json::{Map, Value};

use super::{
    gates::Gate,
    table::{Table, Type},
};

type Object = Map<String, Value>;

/// Struct, field, and the gate without which the API server drops it.
const GATED: &[(&str, &str, Gate)] = &[
    ("core/v1.PodSpec", "hostUsers", Gate::UserNamespacesSupport),
    ("core/v1.PodSecurityContext", "supplementalGroupsPolicy", Gate::SupplementalGroupsPolicy),
    ("core/v1.PodSecurityContext", "seLinuxChangePolicy", Gate::SELinuxChangePolicy),
    ("core/v1.Container", "resizePolicy", Gate::InPlacePodVerticalScaling),
    ("core/v1.EphemeralContainerCommon", "resizePolicy", Gate::InPlacePodVerticalScaling),
    ("core/v1.NodeStatus", "features", Gate::SupplementalGroupsPolicy),
    ("core/v1.PodSpec", "schedulingGroup", Gate::GenericWorkload),
    ("core/v1.PodSpec", "workloadRef", Gate::GenericWorkload),
    ("core/v1.PodSpec", "evictionResponders", Gate::EvictionRequestAPI),
    ("core/v1.PodSpec", "resources", Gate::PodLevelResources),
    ("core/v1.PodSpec", "resourceClaims", Gate::DynamicResourceAllocation),
    ("core/v1.PodSpec", "hostnameOverride", Gate::HostnameOverride),
    ("core/v1.ResourceRequirements", "claims", Gate::DynamicResourceAllocation),
    ("core/v1.Container", "restartPolicyRules", Gate::ContainerRestartRules),
    ("core/v1.EphemeralContainerCommon", "restartPolicyRules", Gate::ContainerRestartRules),
    ("core/v1.EnvVarSource", "fileKeyRef", Gate::EnvFiles),
    ("core/v1.PersistentVolumeClaimSpec", "volumeAttributesClassName", Gate::VolumeAttributesClass),
    ("core/v1.PersistentVolumeSpec", "volumeAttributesClassName", Gate::VolumeAttributesClass),
    ("core/v1.VolumeMount", "bindMountOptions", Gate::VolumeBindMountOptions),
    ("core/v1.GRPCAction", "mode", Gate::GRPCContainerProbeTLS),
    ("core/v1.HTTPGetAction", "protocol", Gate::H2CContainerProbe),
    ("core/v1.EmptyDirVolumeSource", "mode", Gate::EmptyDirVolumeMode),
    ("core/v1.SecretVolumeSource", "defaultUser", Gate::AtomicWriteVolumeUserFields),
    ("core/v1.ConfigMapVolumeSource", "defaultUser", Gate::AtomicWriteVolumeUserFields),
    ("core/v1.DownwardAPIVolumeSource", "defaultUser", Gate::AtomicWriteVolumeUserFields),
    ("core/v1.ProjectedVolumeSource", "defaultUser", Gate::AtomicWriteVolumeUserFields),
    ("core/v1.KeyToPath", "user", Gate::AtomicWriteVolumeUserFields),
    ("core/v1.DownwardAPIVolumeFile", "user", Gate::AtomicWriteVolumeUserFields),
    ("core/v1.ServiceAccountTokenProjection", "user", Gate::AtomicWriteVolumeUserFields),
    ("core/v1.ClusterTrustBundleProjection", "user", Gate::AtomicWriteVolumeUserFields),
    ("core/v1.PodCertificateProjection", "user", Gate::AtomicWriteVolumeUserFields),
    ("core/v1.NodeSpec", "podPreemptionPolicy", Gate::InPlacePodVerticalScalingSchedulerPreemption),
    ("core/v1.NodeStatus", "declaredFeatures", Gate::NodeDeclaredFeatures),
    ("batch/v1.JobSpec", "scheduling", Gate::WorkloadWithJob),
    ("core/v1.VolumeProjection", "clusterTrustBundle", Gate::ClusterTrustBundleProjection),
    ("core/v1.VolumeProjection", "podCertificate", Gate::PodCertificateRequest),
    ("coordination/v1.LeaseSpec", "strategy", Gate::CoordinatedLeaderElection),
    ("coordination/v1.LeaseSpec", "preferredHolder", Gate::CoordinatedLeaderElection),
    ("apps/v1.RollingUpdateStatefulSetStrategy", "maxUnavailable", Gate::MaxUnavailableStatefulSet),
    ("storage/v1.CSIDriverSpec", "nodeAllocatableUpdatePeriodSeconds", Gate::MutableCSINodeAllocatableCount),
    ("storage/v1.CSIDriverSpec", "preventPodSchedulingIfMissing", Gate::VolumeLimitScaling),
    ("autoscaling/v2.HPAScalingRules", "tolerance", Gate::HPAConfigurableTolerance),
];

/// Struct and field of what was removed from Kubernetes, and is dropped by every minor.
const REMOVED: &[(&str, &str)] = &[
    ("core/v1.NodeSpec", "configSource"),
    ("core/v1.NodeStatus", "config"),
    ("discovery/v1.Endpoint", "deprecatedTopology"),
];

/// The droppable fields that an object uses.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a feature of its own")]
struct Used {
    fields: BTreeSet<(&'static str, &'static str)>,
    image_volumes: bool,
    proc_mounts: bool,
    restart_policies: bool,
    stop_signals: bool,
}

/// Drops fields from a decoded struct and all structs in it. Fields that the object before an update uses are kept
/// (`*InUse` in `pkg/api/pod/util.go`).
pub(super) fn drop_disabled(table: &Table, minor: Minor, name: &str, object: &mut Object, old: Option<&Object>) {
    let mut used = Used::default();
    if let Some(old) = old {
        collect(table, name, old, &mut used);
    }
    drop_unused(table, minor, name, object, &used);
}

fn collect(table: &Table, name: &str, object: &Object, used: &mut Used) {
    let Some(of) = table.get(name) else { return };
    for (part, field, _) in GATED {
        if of.parts.iter().any(|one| one == part) && object.get(*field).is_some_and(|value| !value.is_null()) {
            used.fields.insert((part, field));
        }
    }
    used.image_volumes |= name == "core/v1.Volume" && object.contains_key("image");
    used.proc_mounts |= name == "core/v1.SecurityContext"
        && object.get("procMount").is_some_and(|mount| !mount.is_null() && mount != "Default");
    used.restart_policies |= name == "core/v1.Container" && object.contains_key("restartPolicy");
    used.stop_signals |= name == "core/v1.Lifecycle" && object.contains_key("stopSignal");
    for field in &of.fields {
        if let Some(value) = object.get(&field.name) {
            collect_in(table, &field.of, value, used);
        }
    }
}

fn collect_in(table: &Table, of: &Type, value: &Value, used: &mut Used) {
    match (of, value) {
        (Type::Named(_, inner) | Type::Pointer(inner), value) => collect_in(table, inner, value, used),
        (Type::Struct(name), Value::Object(object)) => collect(table, name, object, used),
        (Type::List(inner), Value::Array(list)) => list.iter().for_each(|one| collect_in(table, inner, one, used)),
        _ => {}
    }
}

fn drop_unused(table: &Table, minor: Minor, name: &str, object: &mut Object, used: &Used) {
    let Some(of) = table.get(name) else { return };
    for part in &of.parts {
        let disabled =
            GATED.iter().filter(|(of, field, gate)| !gate.is_on(minor) && !used.fields.contains(&(*of, *field)));
        let disabled = disabled.map(|(of, field, _)| (of, field));
        for (_, field) in disabled.chain(REMOVED.iter().map(|(of, field)| (of, field))).filter(|(of, _)| *of == part) {
            object.remove(*field);
        }
    }
    if name == "core/v1.PodSpec" && !Gate::ImageVolume.is_on(minor) && !used.image_volumes {
        image_volumes(object);
    }
    // A value that is set becomes the default (`dropDisabledProcMountField`).
    if name == "core/v1.SecurityContext"
        && !Gate::ProcMountType.is_on(minor)
        && !used.proc_mounts
        && let Some(mount) = object.get_mut("procMount").filter(|mount| !mount.is_null())
    {
        *mount = Value::from("Default");
    }
    // The minor before knows no such policy of other containers, and finds it invalid.
    if name == "core/v1.PodSpec"
        && minor >= Minor::V1_34
        && !Gate::ContainerRestartRules.is_on(minor)
        && !used.restart_policies
    {
        restart_policies(object);
    }
    if !used.stop_signals
        && of.parts.iter().any(|part| part == "core/v1.Container" || part == "core/v1.EphemeralContainerCommon")
    {
        stop_signal(object);
    }
    for field in &of.fields {
        if let Some(value) = object.get_mut(&field.name) {
            drop_in(table, minor, &field.of, value, used);
        }
    }
}

/// Without the feature `ImageVolume` such volumes are dropped with what mounts them (`dropImageVolumes`).
fn image_volumes(spec: &mut Object) {
    let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) else { return };
    let is_image = |volume: &Value| volume.get("image").is_some();
    let names: Vec<_> = volumes.iter().filter(|volume| is_image(volume)).map(|volume| volume["name"].clone()).collect();
    volumes.retain(|volume| !is_image(volume));
    for containers in ["containers", "initContainers", "ephemeralContainers"] {
        for container in spec.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) {
                mounts.retain(|mount| !names.contains(&mount["name"]));
            }
        }
    }
}

/// Without the feature `ContainerRestartRules` only an init container has a separate policy, to be a sidecar
/// (`dropContainerRestartRules`).
fn restart_policies(spec: &mut Object) {
    for containers in ["containers", "initContainers", "ephemeralContainers"] {
        for container in spec.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
            let is_sidecar = containers == "initContainers" && container["restartPolicy"] == "Always";
            if let Some(container) = container.as_object_mut().filter(|_| !is_sidecar) {
                container.remove("restartPolicy");
            }
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

fn drop_in(table: &Table, minor: Minor, of: &Type, value: &mut Value, used: &Used) {
    match (of, value) {
        (Type::Named(_, inner) | Type::Pointer(inner), value) => drop_in(table, minor, inner, value, used),
        (Type::Struct(name), Value::Object(object)) => drop_unused(table, minor, name, object, used),
        (Type::List(inner), Value::Array(list)) => {
            for element in list.iter_mut() {
                drop_in(table, minor, inner, element, used);
            }
        }
        _ => {}
    }
}
