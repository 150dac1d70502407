//! The profiles as they are in force: from what the controller has recorded of them, through the gate.
//!
//! The controller writes a `ControllerRevision` once all of a generation is in the API server. What an admin has written
//! and the controller has refused, or not yet put in force, is none of this process's business: it could redirect images
//! to where no policy admits them.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use k8s_openapi::api::apps::v1::ControllerRevision;
use palisade_api::revision::{Revision, by_age, profile_of};
use palisade_compiler::compile;
use palisade_gate::check;

use crate::filler::Filler;

/// Of which profile a state is, and its generation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Of {
    uid: String,
    generation: i64,
}

/// A profile in force.
#[derive(Debug)]
struct Profile {
    of: Of,
    /// What it changes, if anything.
    filler: Option<Arc<Filler>>,
}

/// What is known of all profiles.
#[derive(Debug, Default)]
pub struct Profiles {
    known: RwLock<BTreeMap<String, Profile>>,
}

/// What came of the newest record of a profile.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is known already, or is from now on.
    Yes,
    /// It is refused; what was known stays. The gate gives the same answer again.
    Refused(String),
    /// The gate panicked; what was known stays. It may be asked again.
    Panicked,
}

impl Profiles {
    /// What a profile changes in pods; `None` if nothing, or if it is not known.
    pub fn filler(&self, profile: &str) -> Option<Arc<Filler>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(profile)?.filler.clone()
    }

    /// Forgets the profiles of which there is no record.
    pub fn retain(&self, newest: &BTreeMap<String, Arc<ControllerRevision>>) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).retain(|name, _| newest.contains_key(name));
    }

    /// Takes the newest record of a profile. The gate has a thread of its own: it takes up to some tenths of a second.
    pub async fn take(&self, name: &str, object: &ControllerRevision) -> Taken {
        let revision = match Revision::read(object) {
            Ok(revision) => revision,
            Err(error) => return Taken::Refused(error),
        };
        let of = Of { uid: revision.uid.clone(), generation: revision.generation };
        {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            match known.get(name) {
                Some(profile) if profile.of == of => return Taken::Yes,
                // It is of another profile that had this name.
                Some(profile) if profile.of.uid != of.uid => drop(known.remove(name)),
                _ => {}
            }
        }
        let profile = revision.profile(name);
        let judged = tokio::task::spawn_blocking(move || {
            let compiled = compile(&profile).map_err(|found| texts(&found))?;
            let checked = check(compiled).map_err(|rejected| rejected.to_string())?;
            Ok(Filler::new(&checked))
        });
        match judged.await {
            Ok(Ok(filler)) => {
                let profile = Profile { of, filler: filler.map(Arc::new) };
                self.known.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), profile);
                Taken::Yes
            }
            Ok(Err(why)) => Taken::Refused(why),
            Err(_) => Taken::Panicked,
        }
    }
}

fn texts(found: &[palisade_api::Diagnostic]) -> String {
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The newest record of each profile.
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

    fn record(uid: &str, generation: i64, spec: &Json) -> ControllerRevision {
        let mut whole = json!({"namespaceSelector": {"matchLabels": {"a": "b"}}});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let spec = serde_json::from_value(whole).unwrap();
        Revision { uid: uid.into(), generation, spec }.object("p", None)
    }

    fn good() -> Json {
        json!({"mutation": {"defaults": "Secure", "engine": "Webhook"}})
    }

    /// It compiles, and what it redirects is denied.
    fn bad() -> Json {
        json!({
            "images": {"allowedRegistries": ["a.example"], "redirect": {"target": "b.example"}},
            "mutation": {"engine": "Webhook"},
        })
    }

    #[tokio::test]
    async fn what_the_gate_refuses_keeps_what_was() {
        let profiles = Profiles::default();
        assert!(matches!(profiles.take("p", &record("u", 1, &bad())).await, Taken::Refused(_)));
        assert!(profiles.filler("p").is_none());
        assert_eq!(profiles.take("p", &record("u", 2, &good())).await, Taken::Yes);
        let before = profiles.filler("p").expect("it changes pods");
        let Taken::Refused(why) = profiles.take("p", &record("u", 3, &bad())).await else { panic!("it is taken") };
        assert!(why.contains("imageRegistries"), "{why}");
        assert!(Arc::ptr_eq(&before, &profiles.filler("p").unwrap()), "it is not what it was");
        // Another profile of that name has nothing of it.
        assert!(matches!(profiles.take("p", &record("v", 1, &bad())).await, Taken::Refused(_)));
        assert!(profiles.filler("p").is_none());
    }

    #[tokio::test]
    async fn a_profile_without_a_record_is_forgotten() {
        let profiles = Profiles::default();
        assert_eq!(profiles.take("p", &record("u", 1, &good())).await, Taken::Yes);
        profiles.retain(&newest(vec![Arc::new(record("u", 1, &good()))]));
        assert!(profiles.filler("p").is_some());
        profiles.retain(&BTreeMap::new());
        assert!(profiles.filler("p").is_none());
    }
}
