//! The fields that an update of a pod can change.

use crate::{Check, Field};

/// The fields that an update of a pod can change, and all annotations. All others stay as they were created
/// (`ValidatePodUpdate` in Kubernetes `pkg/apis/core/validation`, alike in 1.33 to 1.36). New ephemeral containers and
/// resources have requests of their own: `pods/ephemeralcontainers`, `pods/resize`.
const CHANGEABLE: &[Field] = &[
    Field::Pod("activeDeadlineSeconds"),
    // From a negative one to 1.
    Field::Pod("terminationGracePeriodSeconds"),
    // More of them.
    Field::Pod("tolerations"),
    // Fewer of them.
    Field::Pod("schedulingGates"),
    // Narrower, while there are scheduling gates.
    Field::Pod("nodeSelector"),
    Field::Pod("affinity"),
    Field::Container("image"),
    Field::Annotation(""),
];

impl Check {
    /// Whether an update of a pod can change a field that this check restricts.
    pub fn restricts_what_updates_change(&self) -> bool {
        self.fields.iter().any(|field| CHANGEABLE.iter().any(|other| overlap(field, other)))
    }
}

/// Whether two fields are the same, or one contains the other.
fn overlap(one: &Field, other: &Field) -> bool {
    match (one, other) {
        (Field::Pod(one), Field::Pod(other))
        | (Field::Container(one), Field::Container(other))
        | (Field::Volume(one), Field::Volume(other)) => {
            segments(one).zip(segments(other)).all(|(one, other)| one == "*" || other == "*" || one == other)
        }
        (Field::Annotation(_), Field::Annotation(_)) => true,
        _ => false,
    }
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').map(|segment| segment.trim_end_matches("[*]"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    #[test]
    fn only_checks_of_changeable_fields_restrict_updates() {
        let changeable: Vec<_> = catalogue::ALL
            .iter()
            .filter(|check| check.fields.contains(&Field::Container("image")))
            .map(|check| (check.id, check.restricts_what_updates_change()))
            .collect();
        assert_eq!(changeable, [("imageRegistries", true)]);
        assert!(catalogue::app_armor_profile::CHECK.restricts_what_updates_change());
        assert!(catalogue::seccomp_profile::CHECK.restricts_what_updates_change());
        assert!(!catalogue::privileged::CHECK.restricts_what_updates_change());
        assert!(!catalogue::restricted_volumes::CHECK.restricts_what_updates_change());
    }

    #[test]
    fn fields_overlap_by_segments() {
        let pod = Field::Pod("affinity.nodeAffinity");
        assert!(overlap(&pod, &Field::Pod("affinity")) && overlap(&Field::Pod("tolerations[*].key"), &CHANGEABLE[2]));
        assert!(!overlap(&Field::Container("imagePullPolicy"), &Field::Container("image")));
        assert!(!overlap(&pod, &Field::Container("affinity")));
    }
}
