//! The profiles in effect: from the revisions that the controller writes, checked by the gate.
//!
//! The controller writes a `ControllerRevision` after all objects of a generation are in the API server. The webhook
//! does not use a generation that the controller rejected or that is not in effect yet: it could redirect images to
//! registries that no policy allows.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use k8s_openapi::api::apps::v1::ControllerRevision;
use palisade_api::revision::{Revision, by_age, profile_of};
use palisade_compiler::compile;
use palisade_gate::check;
use palisade_runtime::on_large_stack;

use crate::mutator::Mutator;

/// A generation of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    uid: String,
    generation: i64,
}

/// A profile in effect.
#[derive(Debug)]
struct Profile {
    of: Identity,
    /// How it mutates pods, if it does.
    mutator: Option<Arc<Mutator>>,
}

/// The profiles in effect.
#[derive(Debug, Default)]
pub struct Profiles {
    known: RwLock<BTreeMap<String, Profile>>,
}

/// The result of loading the newest revision of a profile.
#[derive(Debug, PartialEq, Eq)]
pub enum Loaded {
    /// It is in use.
    Yes,
    /// The gate rejects it, and would do so again; the earlier one stays in use.
    Rejected(String),
    /// The gate panicked; the earlier one stays in use. It may be tried again.
    Panicked,
}

impl Profiles {
    /// The mutator of a profile; `None` if the profile does not mutate pods, or does not exist.
    pub fn mutator(&self, profile: &str) -> Option<Arc<Mutator>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(profile)?.mutator.clone()
    }

    /// Forgets the profiles that have no revision.
    pub fn retain(&self, newest: &BTreeMap<String, Arc<ControllerRevision>>) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).retain(|name, _| newest.contains_key(name));
    }

    /// Loads the newest revision of a profile. The gate runs on a separate thread, because it takes up to some tenths
    /// of a second.
    pub async fn load(&self, name: &str, object: &ControllerRevision) -> Loaded {
        let revision = match Revision::read(object) {
            Ok(revision) => revision,
            Err(error) => return Loaded::Rejected(error),
        };
        let of = Identity { uid: revision.uid.clone(), generation: revision.generation };
        {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            match known.get(name) {
                Some(profile) if profile.of == of => return Loaded::Yes,
                // It belongs to an earlier profile of the same name.
                Some(profile) if profile.of.uid != of.uid => drop(known.remove(name)),
                _ => {}
            }
        }
        let profile = revision.profile(name);
        let checked = tokio::task::spawn_blocking(move || {
            on_large_stack(move || {
                let compiled = compile(&profile).map_err(|found| texts(&found))?;
                let checked = check(compiled).map_err(|rejected| rejected.to_string())?;
                Ok(Mutator::new(&checked))
            })
        });
        match checked.await {
            Ok(Ok(Ok(mutator))) => {
                let profile = Profile { of, mutator: mutator.map(Arc::new) };
                self.known.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), profile);
                Loaded::Yes
            }
            Ok(Ok(Err(why))) => Loaded::Rejected(why),
            Ok(Err(_)) | Err(_) => Loaded::Panicked,
        }
    }
}

fn texts(found: &[palisade_api::Diagnostic]) -> String {
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The newest revision of each profile.
pub fn newest(all: Vec<Arc<ControllerRevision>>) -> BTreeMap<String, Arc<ControllerRevision>> {
    let mut newest = BTreeMap::<String, Arc<ControllerRevision>>::new();
    for object in all {
        let Some(profile) = profile_of(&object) else { continue };
        match newest.get(profile) {
            Some(known) if by_age(known, &object).is_ge() => {}
            _ => drop(newest.insert(profile.to_owned(), object)),
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn revision(uid: &str, generation: i64, spec: &Json) -> ControllerRevision {
        let mut whole = json!({"namespaceSelector": {"matchLabels": {"a": "b"}}});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let spec = serde_json::from_value(whole).unwrap();
        Revision { uid: uid.into(), generation, spec }.object("p", None)
    }

    fn good() -> Json {
        json!({"mutation": {"defaults": "Secure", "engine": "Webhook"}})
    }

    /// It compiles, and its policy denies the images that it redirects.
    fn bad() -> Json {
        json!({
            "images": {"allowedRegistries": ["a.example"], "redirect": {"target": "b.example"}},
            "mutation": {"engine": "Webhook"},
        })
    }

    #[tokio::test]
    async fn a_rejected_revision_leaves_the_earlier_one_in_use() {
        let profiles = Profiles::default();
        assert!(matches!(profiles.load("p", &revision("u", 1, &bad())).await, Loaded::Rejected(_)));
        assert!(profiles.mutator("p").is_none());
        assert_eq!(profiles.load("p", &revision("u", 2, &good())).await, Loaded::Yes);
        let before = profiles.mutator("p").expect("it mutates pods");
        let Loaded::Rejected(why) = profiles.load("p", &revision("u", 3, &bad())).await else { panic!("it is loaded") };
        assert!(why.contains("imageRegistries"), "{why}");
        assert!(Arc::ptr_eq(&before, &profiles.mutator("p").unwrap()), "it was replaced");
        // Another profile of that name does not use it.
        assert!(matches!(profiles.load("p", &revision("v", 1, &bad())).await, Loaded::Rejected(_)));
        assert!(profiles.mutator("p").is_none());
    }

    #[tokio::test]
    async fn a_profile_without_a_revision_is_forgotten() {
        let profiles = Profiles::default();
        assert_eq!(profiles.load("p", &revision("u", 1, &good())).await, Loaded::Yes);
        profiles.retain(&newest(vec![Arc::new(revision("u", 1, &good()))]));
        assert!(profiles.mutator("p").is_some());
        profiles.retain(&BTreeMap::new());
        assert!(profiles.mutator("p").is_none());
    }
}
