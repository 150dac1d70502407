//! The actions that make the objects of a profile in a namespace as its templates require. Pure.

use std::{collections::BTreeSet, sync::Arc};

use palisade_compiler::{GeneratedObject, ObjectType, ResolvedTemplate};

use super::fields;
use crate::watch::object_store::{ObjectInNamespace, ObservedObject};

/// The objects of a profile in a namespace.
#[derive(Debug, Default)]
pub struct ObjectPlan {
    /// How many objects the templates give, or should give.
    pub desired: usize,
    /// How many of them exist as required.
    pub ready: usize,
    pub actions: Vec<ObjectAction>,
    /// Problems that no action solves, by template.
    pub problems: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub enum ObjectAction {
    /// Creates or updates an object.
    Apply { object: Box<GeneratedObject>, observed: Option<Arc<ObservedObject>> },
    /// Deletes an object, or removes the labels of the controller from it.
    Remove(ObjectInNamespace),
}

impl ObjectAction {
    pub fn object_type(&self) -> &ObjectType {
        match self {
            Self::Apply { object, .. } => &object.object_type,
            Self::Remove(object) => &object.object_type,
        }
    }

    /// The object and its desired state, for limits of repeated attempts.
    pub fn key(&self) -> (String, String) {
        match self {
            // An object that may be adopted now is tried again at once.
            Self::Apply { object, .. } => {
                (name(&object.object_type, &object.name), format!("{} {}", object.digest, object.adopt))
            }
            Self::Remove(object) => (name(&object.object_type, &object.name), String::new()),
        }
    }

    /// True if another client has changed the object: it was applied in this state before.
    pub fn is_repair(&self) -> bool {
        let Self::Apply { object, observed } = self else { return false };
        observed.as_ref().is_some_and(|observed| observed.digest.as_ref() == Some(&object.digest))
    }
}

/// An object in messages.
fn name(object_type: &ObjectType, name: &str) -> String {
    format!("{} {name}", object_type.kind)
}

/// True if an object is as it was applied.
pub fn is_as_desired(object: &GeneratedObject, observed: &ObservedObject) -> bool {
    observed.template == object.template
        && observed.digest.as_ref() == Some(&object.digest)
        && observed.fields.as_ref().is_some_and(|fields| fields::contains(&fields.get(), &object.object))
}

/// Plans the objects of a profile in a namespace. `existing` are all generated objects in it, also of other profiles.
pub fn plan(profile: &str, templates: Vec<ResolvedTemplate>, existing: &[ObjectInNamespace]) -> ObjectPlan {
    let mut plan = ObjectPlan { desired: templates.len(), ..ObjectPlan::default() };
    let mut kept = BTreeSet::new();
    let mut unresolved = BTreeSet::new();
    for ResolvedTemplate { template, object } in templates {
        let object = match object {
            Ok(object) => object,
            // Its object remains until the values are valid again.
            Err(problem) => {
                plan.problems.push((template.clone(), problem));
                unresolved.insert(template);
                continue;
            }
        };
        kept.insert((object.object_type.clone(), object.name.clone()));
        let found = existing.iter().find(|one| one.object_type == object.object_type && one.name == object.name);
        match found.map(|found| &found.observed) {
            Some(observed) if observed.profile != profile => {
                let object = name(&object.object_type, &object.name);
                plan.problems.push((template, format!("{object} belongs to profile {}", observed.profile)));
            }
            Some(observed) if observed.terminating => {
                let object = name(&object.object_type, &object.name);
                plan.problems.push((template, format!("{object} is being deleted")));
            }
            Some(observed) if is_as_desired(&object, observed) => plan.ready += 1,
            observed => {
                let observed = observed.map(Arc::clone);
                plan.actions.push(ObjectAction::Apply { object: Box::new(object), observed });
            }
        }
    }
    let superfluous = existing.iter().filter(|one| {
        one.observed.profile == profile
            && one.observed.is_generated()
            && !one.observed.terminating
            && !unresolved.contains(&one.observed.template)
            && !kept.contains(&(one.object_type.clone(), one.name.clone()))
    });
    // A renamed object exists under its new name before the old one is deleted.
    plan.actions.extend(superfluous.cloned().map(ObjectAction::Remove));
    plan
}
