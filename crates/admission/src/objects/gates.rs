//! Which feature gates of kube-apiserver are on by default, for those that change what it makes of an object
//! (`pkg/features/kube_features.go`).

use palisade_cel::Minor;

/// A feature gate, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    AtomicWriteVolumeUserFields,
    ClearingNominatedNodeNameAfterBinding,
    ClusterTrustBundleProjection,
    ContainerRestartRules,
    ContainerStopSignals,
    CoordinatedLeaderElection,
    CrossNamespaceVolumeDataSource,
    DynamicResourceAllocation,
    EmptyDirVolumeMode,
    EnvFiles,
    EvictionRequestAPI,
    GRPCContainerProbeTLS,
    GenericWorkload,
    H2CContainerProbe,
    HPAConfigurableTolerance,
    HPAGeneration,
    HPAScaleToZero,
    HostnameOverride,
    ImageVolume,
    InPlacePodLevelResourcesVerticalScaling,
    InPlacePodVerticalScaling,
    InPlacePodVerticalScalingInitContainers,
    InPlacePodVerticalScalingSchedulerPreemption,
    MatchLabelKeysInPodTopologySpreadSelectorMerge,
    MaxUnavailableStatefulSet,
    MutableCSINodeAllocatableCount,
    MutablePodResourcesForSuspendedJobs,
    MutableSchedulingDirectivesForSuspendedJobs,
    NodeDeclaredFeatures,
    PodCertificateRequest,
    PodLevelResources,
    PodLevelResourcesFixDefaulting,
    PodLifecycleSleepActionAllowZero,
    PodTopologyLabelsAdmission,
    PreferSameTrafficDistribution,
    ProcMountType,
    RelaxedDNSSearchValidation,
    RelaxedServiceNameValidation,
    RestartAllContainersOnContainerExits,
    SELinuxChangePolicy,
    SELinuxMount,
    StrictIPCIDRValidation,
    SupplementalGroupsPolicy,
    TaintTolerationComparisonOperators,
    UserNamespacesHostNetworkSupport,
    UserNamespacesSupport,
    VolumeAttributesClass,
    VolumeBindMountOptions,
    VolumeLimitScaling,
    WorkloadWithJob,
}

use Gate::{
    AtomicWriteVolumeUserFields, ClearingNominatedNodeNameAfterBinding, ClusterTrustBundleProjection,
    ContainerRestartRules, ContainerStopSignals, CoordinatedLeaderElection, CrossNamespaceVolumeDataSource,
    DynamicResourceAllocation, EmptyDirVolumeMode, EnvFiles, EvictionRequestAPI, GRPCContainerProbeTLS,
    GenericWorkload, H2CContainerProbe, HPAConfigurableTolerance, HPAGeneration, HPAScaleToZero, HostnameOverride,
    ImageVolume, InPlacePodLevelResourcesVerticalScaling, InPlacePodVerticalScaling,
    InPlacePodVerticalScalingInitContainers, InPlacePodVerticalScalingSchedulerPreemption,
    MatchLabelKeysInPodTopologySpreadSelectorMerge, MaxUnavailableStatefulSet, MutableCSINodeAllocatableCount,
    MutablePodResourcesForSuspendedJobs, MutableSchedulingDirectivesForSuspendedJobs, NodeDeclaredFeatures,
    PodCertificateRequest, PodLevelResources, PodLevelResourcesFixDefaulting, PodLifecycleSleepActionAllowZero,
    PodTopologyLabelsAdmission, PreferSameTrafficDistribution, ProcMountType, RelaxedDNSSearchValidation,
    RelaxedServiceNameValidation, RestartAllContainersOnContainerExits, SELinuxChangePolicy, SELinuxMount,
    StrictIPCIDRValidation, SupplementalGroupsPolicy, TaintTolerationComparisonOperators,
    UserNamespacesHostNetworkSupport, UserNamespacesSupport, VolumeAttributesClass, VolumeBindMountOptions,
    VolumeLimitScaling, WorkloadWithJob,
};

/// A gate that no minor up to 1.37 has on by default.
const NEVER: u8 = u8::MAX;

/// The first minor that has each on by default; no later one has it off again.
const ON_SINCE: &[(Gate, u8)] = &[
    (InPlacePodVerticalScaling, 33),
    (PodLifecycleSleepActionAllowZero, 33),
    (ProcMountType, 33),
    (RelaxedDNSSearchValidation, 33),
    (SELinuxChangePolicy, 33),
    (SupplementalGroupsPolicy, 33),
    (UserNamespacesSupport, 33),
    (DynamicResourceAllocation, 34),
    (MatchLabelKeysInPodTopologySpreadSelectorMerge, 34),
    (PodLevelResources, 34),
    (PreferSameTrafficDistribution, 34),
    (VolumeAttributesClass, 34),
    (ContainerRestartRules, 35),
    (EnvFiles, 35),
    (HPAConfigurableTolerance, 35),
    (HostnameOverride, 35),
    (ImageVolume, 35),
    (MutableCSINodeAllocatableCount, 35),
    (PodTopologyLabelsAdmission, 35),
    (NodeDeclaredFeatures, 36),
    (ClearingNominatedNodeNameAfterBinding, 35),
    (InPlacePodLevelResourcesVerticalScaling, 36),
    (InPlacePodVerticalScalingInitContainers, 36),
    (MutablePodResourcesForSuspendedJobs, 36),
    (MutableSchedulingDirectivesForSuspendedJobs, 36),
    (RelaxedServiceNameValidation, 36),
    (RestartAllContainersOnContainerExits, 36),
    (StrictIPCIDRValidation, 36),
    (ClusterTrustBundleProjection, 37),
    (HPAGeneration, 37),
    (HPAScaleToZero, 37),
    (MaxUnavailableStatefulSet, 37),
    (PodCertificateRequest, 37),
    (PodLevelResourcesFixDefaulting, 37),
    (SELinuxMount, 37),
    (VolumeLimitScaling, 37),
    (AtomicWriteVolumeUserFields, NEVER),
    (TaintTolerationComparisonOperators, NEVER),
    (UserNamespacesHostNetworkSupport, NEVER),
    (ContainerStopSignals, NEVER),
    (CoordinatedLeaderElection, NEVER),
    (CrossNamespaceVolumeDataSource, NEVER),
    (EmptyDirVolumeMode, NEVER),
    (EvictionRequestAPI, NEVER),
    (GRPCContainerProbeTLS, NEVER),
    (GenericWorkload, NEVER),
    (H2CContainerProbe, NEVER),
    (InPlacePodVerticalScalingSchedulerPreemption, NEVER),
    (VolumeBindMountOptions, NEVER),
    (WorkloadWithJob, NEVER),
];

impl Gate {
    /// Whether it is on in a minor by default.
    pub(crate) fn is_on(self, minor: Minor) -> bool {
        ON_SINCE.iter().any(|(gate, since)| *gate == self && *since <= minor.number())
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path, process::Command};

    use super::*;

    /// The default of a gate in the sources of a minor, by the last version that is not later; `None` if they lack it.
    fn default(sources: &[String], gate: Gate, minor: Minor) -> Option<bool> {
        let of_gate = |source: &String| {
            let begins = [format!("\t{gate:?}: {{\n"), format!("\tgenericfeatures.{gate:?}: {{\n")];
            let start = begins.iter().find_map(|begin| Some(source.find(begin)? + begin.len()))?;
            let body = &source[start..start + source[start..].find("\n\t}")?];
            let spec = |line: &str| {
                let (_, rest) = line.split_once("MustParse(\"1.")?;
                let (version, rest) = rest.split_once('"')?;
                Some((version.parse::<u8>().ok()?, rest.contains("Default: true")))
            };
            Some(body.lines().filter_map(spec).filter(|(version, _)| *version <= minor.number()).any(|(_, on)| on))
        };
        sources.iter().find_map(of_gate)
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "reads the sources of Kubernetes")]
    fn feature_gate_defaults_match_the_sources_of_each_minor() {
        let output = Command::new("go").args(["env", "GOMODCACHE"]).output().ok();
        let cache = output.and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
        let modules = Path::new(cache.trim()).join("k8s.io");
        let (mut compared, mut known) = (BTreeSet::new(), BTreeSet::new());
        for entry in fs::read_dir(&modules).into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().unwrap();
            let Some(version) = name.strip_prefix("kubernetes@v1.") else { continue };
            let Ok(minor) = format!("1.{version}").parse::<Minor>() else { continue };
            let files = [entry.path(), modules.join(format!("apiserver@v0.{version}"))];
            // One of the two modules may have been downloaded alone.
            if !files.iter().all(|module| module.is_dir()) {
                continue;
            }
            // 1.32 has the versions of gates in a separate file.
            let read = |path: std::path::PathBuf| {
                let of = |name: &str| fs::read_to_string(path.join("pkg/features").join(name)).ok();
                of("versioned_kube_features.go").or_else(|| of("kube_features.go"))
            };
            let sources: Vec<_> = files.into_iter().filter_map(read).collect();
            assert_eq!(sources.len(), 2, "{name}");
            for (gate, since) in ON_SINCE {
                let found = default(&sources, *gate, minor);
                // Kubernetes removes a gate some minors after it can no longer be turned off.
                let wanted = found.unwrap_or(minor.number() > *since);
                assert_eq!(gate.is_on(minor), wanted, "{gate:?} in {name}");
                compared.insert(minor.number());
                if found.is_some() {
                    known.insert(format!("{gate:?}"));
                }
            }
        }
        // The minor that turns a gate on has it. Later ones may have removed it, and earlier ones may lack it.
        let all = compared.len() == Minor::ALL.len();
        for (gate, _) in ON_SINCE.iter().filter(|(_, since)| all || compared.contains(since)) {
            assert!(known.contains(&format!("{gate:?}")), "no source has {gate:?}");
        }
        println!("compared with the sources of 1.{compared:?}; with none if the modules are not there");
    }
}
