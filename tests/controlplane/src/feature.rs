//! Features of API servers that some minors lack. A test declares the features that it needs, and is skipped where the API
//! server lacks one of them.

use std::fmt;

/// A feature that some minors have by default and others lack. `features_match_the_api_server` in `tests/apiserver` compares
/// this table with an API server of each minor that is tested.
#[derive(Debug, PartialEq, Eq)]
pub struct Feature {
    /// Its name, for the reader of a test report.
    pub name: &'static str,
    /// The first minor that has it.
    pub since: u8,
    /// The last minor that has it, if a later one lacks it.
    pub until: Option<u8>,
    /// How an API server shows that it has the feature.
    pub source: Source,
}

/// How an API server shows that it has a feature.
#[derive(Debug, PartialEq, Eq)]
pub enum Source {
    /// The default of a feature gate. `kube-apiserver --help` lists a gate until it is locked.
    Gate(&'static str),
    /// A feature gate that exists, whatever its default is.
    Switch(&'static str),
    /// A resource in a discovery document.
    Resource {
        /// The path of the document.
        path: &'static str,
        /// The name of the resource.
        name: &'static str,
    },
}

impl Feature {
    /// The subresource `pods/resize`.
    pub const RESIZE: Self = Self {
        name: "resize subresource",
        since: 33,
        until: None,
        source: Source::Resource { path: "/api/v1", name: "pods/resize" },
    };
    /// MutatingAdmissionPolicy in `v1`.
    pub const NATIVE_MUTATION: Self = Self {
        name: "MutatingAdmissionPolicy v1",
        since: 36,
        until: None,
        source: Source::Resource { path: ADMISSION_V1, name: MUTATING_POLICIES },
    };
    /// MutatingAdmissionPolicy in `v1beta1` only: off by default, and served by the control planes of this crate.
    pub const BETA_MUTATION: Self = Self {
        name: "MutatingAdmissionPolicy v1beta1",
        since: 34,
        until: Some(35),
        source: Source::Resource { path: "/apis/admissionregistration.k8s.io/v1beta1", name: MUTATING_POLICIES },
    };
    /// Volumes of kind `image`.
    pub const IMAGE_VOLUMES: Self =
        Self { name: "image volumes", since: 35, until: None, source: Source::Gate("ImageVolume") };
    /// The field `securityContext.procMount`.
    pub const PROC_MOUNT: Self =
        Self { name: "procMount", since: 33, until: None, source: Source::Gate("ProcMountType") };
    /// The field `hostUsers`.
    pub const USER_NAMESPACES: Self =
        Self { name: "hostUsers", since: 33, until: None, source: Source::Gate("UserNamespacesSupport") };
    /// The field `securityContext.supplementalGroupsPolicy`.
    pub const SUPPLEMENTAL_GROUPS_POLICY: Self = Self {
        name: "supplementalGroupsPolicy",
        since: 33,
        until: None,
        source: Source::Gate("SupplementalGroupsPolicy"),
    };
    /// Pods are deleted before all other objects of a namespace.
    pub const ORDERED_NAMESPACE_DELETION: Self = Self {
        name: "ordered namespace deletion",
        since: 33,
        until: None,
        source: Source::Gate("OrderedNamespaceDeletion"),
    };
    /// Policies in files of the API server: an alpha in 1.36. The tests turn the gate on.
    pub const POLICIES_IN_FILES: Self = Self {
        name: "policies in files",
        since: 36,
        until: None,
        source: Source::Switch("ManifestBasedAdmissionControlConfig"),
    };

    /// All of them.
    pub const ALL: [&Self; 9] = [
        &Self::RESIZE,
        &Self::NATIVE_MUTATION,
        &Self::BETA_MUTATION,
        &Self::IMAGE_VOLUMES,
        &Self::PROC_MOUNT,
        &Self::USER_NAMESPACES,
        &Self::SUPPLEMENTAL_GROUPS_POLICY,
        &Self::ORDERED_NAMESPACE_DELETION,
        &Self::POLICIES_IN_FILES,
    ];

    /// Whether a minor has the feature.
    pub fn is_in(&self, minor: u8) -> bool {
        minor >= self.since && self.until.is_none_or(|until| minor <= until)
    }

    /// The first of these features that a minor lacks.
    pub fn lacking<'a>(features: &[&'a Self], minor: u8) -> Option<&'a Self> {
        features.iter().copied().find(|feature| !feature.is_in(minor))
    }
}

const ADMISSION_V1: &str = "/apis/admissionregistration.k8s.io/v1";
const MUTATING_POLICIES: &str = "mutatingadmissionpolicies";

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{VERSIONS, Version};

    #[test]
    fn a_minor_has_a_feature_from_its_first_to_its_last_minor() {
        for feature in Feature::ALL {
            for minor in 0..=u8::MAX {
                let expected = (feature.since..=feature.until.unwrap_or(u8::MAX)).contains(&minor);
                assert_eq!(feature.is_in(minor), expected, "{feature} in 1.{minor}");
            }
        }
    }

    #[test]
    fn a_test_is_skipped_exactly_where_a_declared_feature_is_missing() {
        for version in &VERSIONS {
            let minor = version.number;
            // All sets of features.
            for set in 0_u32..1 << Feature::ALL.len() {
                let features: Vec<_> =
                    Feature::ALL.into_iter().enumerate().filter(|(place, _)| set >> place & 1 == 1).collect();
                let features: Vec<_> = features.into_iter().map(|(_, feature)| feature).collect();
                let lacking = Feature::lacking(&features, minor);
                assert_eq!(lacking.is_none(), features.iter().all(|one| one.is_in(minor)));
                assert!(lacking.is_none_or(|one| features.contains(&one) && !one.is_in(minor)));
            }
        }
    }

    #[test]
    fn each_feature_is_missing_in_a_minor_and_documented() {
        let default = Version::of(None).unwrap().number;
        for feature in Feature::ALL {
            let is_in = |version: &Version| feature.is_in(version.number);
            assert!(VERSIONS.iter().any(is_in) && !VERSIONS.iter().all(is_in), "{feature}");
            // The default minor lacks only features that were removed before it.
            assert!(feature.is_in(default) || feature.until.is_some_and(|until| until < default), "{feature}");
        }
        // The page for users has each feature with its minors.
        let page = include_str!("../../../docs/versions.md");
        for feature in Feature::ALL {
            let range = feature.until.map_or_else(
                || format!("since 1.{}", feature.since),
                |until| format!("1.{} to 1.{until}", feature.since),
            );
            assert!(page.contains(&format!("\n| {feature} | {range} | ")), "docs/versions.md: {feature}, {range}");
        }
        let mut names = Feature::ALL.map(|feature| feature.name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
