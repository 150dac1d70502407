//! The generations of profiles that took effect. The controller writes the spec of each into a `ControllerRevision`
//! after all of its objects are in the API server. The webhook and the next controller read it.
//!
//! Each generation has a separate object, so that one always exists while the next replaces it.

use std::cmp::Ordering;

use k8s_openapi::{
    api::apps::v1::ControllerRevision,
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, apis::meta::v1::OwnerReference, runtime::RawExtension},
};
use serde::{Deserialize, Serialize};

use crate::{ToolSecurityProfile, ToolSecurityProfileSpec, names};

/// Number of generations of a profile to keep: the default of a Deployment.
pub const KEPT: usize = 10;

/// A generation of a profile that took effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Revision {
    /// The profile's uid, which distinguishes it from another profile of the same name.
    pub uid: String,
    /// The generation of the spec.
    pub generation: i64,
    /// The spec.
    pub spec: ToolSecurityProfileSpec,
}

impl Revision {
    /// The spec of a profile.
    pub fn of(profile: &ToolSecurityProfile) -> Self {
        Self {
            uid: profile.metadata.uid.clone().unwrap_or_default(),
            generation: profile.metadata.generation.unwrap_or_default(),
            spec: profile.spec.clone(),
        }
    }

    /// Reads an object.
    ///
    /// # Errors
    ///
    /// If its data is invalid.
    pub fn read(object: &ControllerRevision) -> Result<Self, String> {
        let data = object.data.as_ref().ok_or("it has no data")?;
        serde_json::from_value(data.0.clone()).map_err(|error| error.to_string())
    }

    /// The revision as an object that belongs to a profile.
    pub fn object(&self, profile: &str, owner: Option<OwnerReference>) -> ControllerRevision {
        let labels = [(names::MANAGED_BY_LABEL, names::MANAGED_BY), (names::PROFILE_LABEL, profile)];
        ControllerRevision {
            metadata: ObjectMeta {
                name: Some(names::revision(profile, self.generation)),
                namespace: Some(names::OPERATOR_NAMESPACE.to_owned()),
                labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
                owner_references: owner.map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            data: serde_json::to_value(self).ok().map(RawExtension),
            revision: self.generation,
        }
    }

    /// The profile of that generation.
    pub fn profile(&self, name: &str) -> ToolSecurityProfile {
        let mut profile = ToolSecurityProfile::new(name, self.spec.clone());
        profile.metadata.uid = Some(self.uid.clone());
        profile.metadata.generation = Some(self.generation);
        profile
    }
}

/// The profile that an object belongs to.
pub fn profile_of(object: &ControllerRevision) -> Option<&str> {
    object.metadata.labels.as_ref()?.get(names::PROFILE_LABEL).map(String::as_str)
}

/// Compares two objects of a profile by age. A profile that is deleted and recreated counts its generations from one,
/// so the creation time of the object decides first.
pub fn by_age(one: &ControllerRevision, other: &ControllerRevision) -> Ordering {
    let key = |of: &ControllerRevision| (of.metadata.creation_timestamp.as_ref().map(|time| time.0), of.revision);
    key(one).cmp(&key(other))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;

    fn revision(uid: &str, generation: i64, second: i64) -> ControllerRevision {
        let spec = serde_json::from_str(r#"{"namespaceSelector": {"matchLabels": {"a": "b"}}}"#).unwrap();
        let mut object = Revision { uid: uid.into(), generation, spec }.object("p", None);
        object.metadata.creation_timestamp = Timestamp::from_second(second).ok().map(Time);
        object
    }

    #[test]
    fn revision_round_trips() {
        let object = revision("u", 7, 0);
        let read = Revision::read(&object).unwrap();
        assert_eq!((read.uid.as_str(), read.generation, object.revision), ("u", 7, 7));
        assert_eq!(profile_of(&object), Some("p"));
        assert_eq!(Revision::of(&read.profile("p")), read);
        assert!(Revision::read(&ControllerRevision::default()).is_err());
    }

    #[test]
    fn newest_revision_is_the_last_created() {
        let mut all = [revision("old", 9, 1), revision("new", 1, 2), revision("new", 2, 2)];
        all.sort_by(by_age);
        assert_eq!(all.map(|one| one.revision), [9, 1, 2]);
    }

    #[test]
    fn revision_names_are_unique() {
        let all =
            [("a", 1), ("a-1", 1), ("a.1", 1), ("a", 11), ("a-1", 11)].map(|(name, of)| names::revision(name, of));
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "{all:?}");
        // The only name that there was before had dashes.
        assert!(all.iter().all(|name| !name.starts_with("palisade-")));
    }
}
