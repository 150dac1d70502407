//! The fields of a pod that checks restrict, and the reasons why no check restricts the others.
//!
//! [`TYPES`] has every field of a pod's `spec` in a supported Kubernetes. A test of `crates/gate` reads the API's
//! schemas and fails at a missing field, and at a field that no minor has. [`Check::fields`] lists the fields that a
//! check restricts; this table only marks them as restricted. `docs/coverage.md` is generated from it.

mod containers;
mod pods;
mod volumes;

use crate::{Check, Field, catalogue};

/// A type of the Kubernetes API that is part of a pod.
#[derive(Clone, Copy, Debug)]
pub struct Type {
    /// The last parts of its names in the API's schemas. Most have one; a container and an ephemeral container have
    /// the same fields.
    pub schemas: &'static [&'static str],
    /// Its place in a pod, as a heading.
    pub title: &'static str,
    /// The decisions about its fields. Each field is in one group.
    pub groups: &'static [Group],
}

/// Fields with the same decision.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Their names.
    pub fields: &'static [&'static str],
    /// The decision.
    pub decision: Decision,
}

/// The decision about a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A check restricts it, in each place where a pod has it.
    Checked,
    /// A check restricts it but not its fields, for this reason (one or more sentences).
    CheckedWhole(&'static str),
    /// It has this type, and each field of the type has a separate decision.
    Of(&'static str),
    /// No check restricts it, for this reason (one or more sentences).
    Open(&'static str),
    /// No check restricts it or its fields, for this reason (one or more sentences).
    OpenWhole(&'static str),
}

/// All types with a decision about each field, the pod's `spec` first.
pub static TYPES: &[&[Type]] = &[pods::TYPES, containers::TYPES, volumes::TYPES];

/// All types, one after another.
pub fn types() -> impl Iterator<Item = &'static Type> {
    TYPES.iter().copied().flatten()
}

/// The type with this name in the API's schemas.
pub fn named(schema: &str) -> Option<&'static Type> {
    types().find(|one| one.schemas.contains(&schema))
}

impl Type {
    /// The decision about a field.
    pub fn decision(&self, field: &str) -> Option<Decision> {
        self.groups.iter().find(|group| group.fields.contains(&field)).map(|group| group.decision)
    }

    /// Each field with its decision.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, Decision)> {
        self.groups.iter().flat_map(|group| group.fields.iter().map(|&field| (field, group.decision)))
    }

    /// The places where a pod has this field, written as checks write the fields that they restrict, but without `[*]`.
    pub fn places(&'static self, field: &str) -> Vec<Place> {
        all_places().into_iter().filter(|(of, at, _)| std::ptr::eq(*of, self) && *at == field).map(|at| at.2).collect()
    }
}

/// A place in a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Below `spec`.
    Pod(String),
    /// Below each container, init container and ephemeral container.
    Container(String),
    /// Below each volume.
    Volume(String),
}

impl Place {
    fn below(&self, field: &str) -> Self {
        let joined = |path: &String| if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
        match self {
            Self::Pod(path) => match field {
                "containers" | "initContainers" | "ephemeralContainers" if path.is_empty() => {
                    Self::Container(String::new())
                }
                "volumes" if path.is_empty() => Self::Volume(String::new()),
                _ => Self::Pod(joined(path)),
            },
            Self::Container(path) => Self::Container(joined(path)),
            Self::Volume(path) => Self::Volume(joined(path)),
        }
    }

    /// Whether `field` is this place.
    pub fn is(&self, field: &Field) -> bool {
        match (self, field) {
            (Self::Volume(path), Field::Volume("*")) => path != "name" && !path.contains('.'),
            (Self::Pod(path), Field::Pod(field))
            | (Self::Container(path), Field::Container(field))
            | (Self::Volume(path), Field::Volume(field)) => *path == field.replace("[*]", ""),
            _ => false,
        }
    }

    /// Whether a check that restricts `field` may look at this place: it is `field`, or inside it.
    pub fn is_restricted_by(&self, field: &Field) -> bool {
        let below = |path: &str, field: &str| {
            path.strip_prefix(&field.replace("[*]", "")).is_some_and(|rest| rest.starts_with('.'))
        };
        self.is(field)
            || match (self, field) {
                (Self::Pod(path), Field::Pod(field))
                | (Self::Container(path), Field::Container(field))
                | (Self::Volume(path), Field::Volume(field)) => below(path, field),
                _ => false,
            }
    }

    /// The checks that restrict this place.
    pub fn checks(&self) -> impl Iterator<Item = &'static Check> {
        catalogue::ALL
            .iter()
            .copied()
            .filter(move |check| check.fields.iter().any(|field| self.is_restricted_by(field)))
    }
}

/// Each field of each type in each place, found by walking from the pod's `spec`.
pub fn all_places() -> Vec<(&'static Type, &'static str, Place)> {
    fn walk(of: &'static Type, at: &Place, out: &mut Vec<(&'static Type, &'static str, Place)>) {
        for (field, decision) in of.fields() {
            let place = at.below(field);
            if let Decision::Of(schema) = decision
                && let Some(inner) = named(schema)
            {
                walk(inner, &place, out);
            }
            // Three lists of containers are one place.
            if !out.iter().any(|(other, name, known)| std::ptr::eq(*other, of) && *name == field && *known == place) {
                out.push((of, field, place));
            }
        }
    }
    let mut out = Vec::new();
    if let Some(spec) = named("PodSpec") {
        walk(spec, &Place::Pod(String::new()), &mut out);
    }
    out
}

const fn group(fields: &'static [&'static str], decision: Decision) -> Group {
    Group { fields, decision }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_pod_field_is_in_one_coverage_group() {
        for one in types() {
            let mut seen = BTreeSet::new();
            for (field, decision) in one.fields() {
                assert!(seen.insert(field), "{}: {field} is in two groups", one.title);
                if let Decision::Of(schema) = decision {
                    assert!(named(schema).is_some(), "{}: {field} is of {schema}, of which nothing is said", one.title);
                }
            }
        }
    }

    #[test]
    fn coverage_decisions_match_the_checks() {
        let mut wrong = Vec::new();
        let named = |place: &Place| catalogue::ALL.iter().flat_map(|check| check.fields).any(|field| place.is(field));
        for (of, field, place) in all_places() {
            let checks: Vec<_> = place.checks().map(|check| check.id).collect();
            let is_right = match of.decision(field) {
                Some(Decision::Checked | Decision::CheckedWhole(_)) => !checks.is_empty(),
                Some(Decision::Open(_) | Decision::OpenWhole(_)) => !named(&place),
                // A check may restrict it as a whole, and others its fields.
                Some(Decision::Of(_)) => true,
                None => false,
            };
            if !is_right {
                wrong.push(format!("{}: {field} at {place:?}: checked by {checks:?}", of.title));
            }
        }
        assert!(wrong.is_empty(), "coverage says something else than the checks:\n{}", wrong.join("\n"));
    }

    #[test]
    fn coverage_knows_every_field_a_check_restricts() {
        let places = all_places();
        for check in catalogue::ALL {
            for field in check.fields {
                let known = matches!(field, Field::Annotation(_))
                    || places.iter().any(|(_, _, place)| place.is_restricted_by(field));
                assert!(known, "{}: {field:?} is not a field of a pod that coverage knows", check.id);
            }
        }
    }
}
