//! The recorded revisions of a profile in a cluster: the generations that were active.

use k8s_openapi::{api::apps::v1::ControllerRevision, jiff::Timestamp};
use kube::{Api, Client, api::ListParams};
use palisade_api::{
    ToolSecurityProfile, ToolSecurityProfileSpec, names,
    revision::{Revision, by_age},
};
use palisade_runtime::lists;
use serde_json::Value as Json;

use crate::{
    cluster::{could_not_run, failed},
    report::{Failure, Problem},
};

/// A profile with its recorded revisions.
#[derive(Clone, Debug)]
pub struct History {
    /// The profile.
    pub profile: ToolSecurityProfile,
    /// Its revisions, newest first. The newest one is active.
    pub revisions: Vec<Recorded>,
}

/// A generation that was active.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The revision.
    pub revision: Revision,
    /// The time when it became active.
    pub at: Option<Timestamp>,
}

impl History {
    /// Reads it from a cluster.
    ///
    /// # Errors
    /// The profile does not exist, or the user has no permission to read it or its revisions.
    pub async fn read(client: &Client, name: &str) -> Result<Self, Failure> {
        let profiles = Api::<ToolSecurityProfile>::all(client.clone());
        let profile = profiles.get_opt(name).await.map_err(|error| failed("cannot read the profile", &error))?;
        let Some(profile) = profile else {
            let problem = Problem::new(format!("ToolSecurityProfile {name:?} not found in this cluster"));
            return Err(Failure::CouldNotRun(vec![
                problem.help("list the profiles with kubectl get toolsecurityprofiles"),
            ]));
        };
        let revisions = Api::<ControllerRevision>::namespaced(client.clone(), names::OPERATOR_NAMESPACE);
        let of_profile = ListParams::default().labels(&format!("{}={name}", names::PROFILE_LABEL));
        let found = lists::all(&revisions, &of_profile).await;
        let found = found.map_err(|error| {
            failed(&format!("cannot read the revisions in namespace {}", names::OPERATOR_NAMESPACE), &error)
        })?;
        Ok(Self::of(profile, found))
    }

    /// From these objects, without those of an earlier profile with the same name, and without damaged ones.
    pub fn of(profile: ToolSecurityProfile, mut objects: Vec<ControllerRevision>) -> Self {
        objects.sort_by(|one, other| by_age(other, one));
        let uid = profile.metadata.uid.clone().unwrap_or_default();
        let recorded = |object: ControllerRevision| {
            let revision = Revision::read(&object).ok().filter(|revision| revision.uid == uid)?;
            Some(Recorded { revision, at: object.metadata.creation_timestamp.map(|time| time.0) })
        };
        let revisions = objects.into_iter().filter_map(recorded).collect();
        Self { profile, revisions }
    }

    /// The profile's name.
    pub fn name(&self) -> &str {
        self.profile.metadata.name.as_deref().unwrap_or_default()
    }

    /// A revision by its number.
    ///
    /// # Errors
    /// It is not recorded. The message lists the recorded ones.
    pub fn get(&self, number: i64) -> Result<&Recorded, Failure> {
        let found = self.revisions.iter().find(|recorded| recorded.revision.generation == number);
        found.ok_or_else(|| {
            let known: Vec<_> = self.revisions.iter().map(|one| one.revision.generation.to_string()).collect();
            let known = if known.is_empty() {
                "there are no revisions".to_owned()
            } else {
                format!("recorded: {}", known.join(", "))
            };
            could_not_run(format!("revision {number} of profile {} not found; {known}", self.name()))
        })
    }
}

/// A spec as JSON, without unset fields.
pub fn json(spec: &ToolSecurityProfileSpec) -> Json {
    serde_json::to_value(spec).unwrap_or_default()
}

/// The fields in which two objects differ, as paths. A list is one field.
pub fn changed(before: &Json, after: &Json) -> Vec<String> {
    let mut paths = Vec::new();
    collect(before, after, "spec", &mut paths);
    paths
}

fn collect(before: &Json, after: &Json, path: &str, paths: &mut Vec<String>) {
    match (before, after) {
        (Json::Object(one), Json::Object(other)) => {
            let keys: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let of = |map: &serde_json::Map<String, Json>| map.get(key).cloned().unwrap_or_default();
                collect(&of(one), &of(other), &format!("{path}.{key}"), paths);
            }
        }
        (one, other) if one == other => {}
        _ => paths.push(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;

    fn profile(uid: &str) -> ToolSecurityProfile {
        let spec = serde_json::from_value(json!({"namespaceSelector": {"matchLabels": {"a": "b"}}})).unwrap();
        let mut profile = ToolSecurityProfile::new("p", spec);
        profile.metadata.uid = Some(uid.to_owned());
        profile
    }

    fn recorded(uid: &str, generation: i64, second: i64) -> ControllerRevision {
        let mut profile = profile(uid);
        profile.metadata.generation = Some(generation);
        let mut object = Revision::of(&profile).object("p", None);
        object.metadata.creation_timestamp = Timestamp::from_second(second).ok().map(Time);
        object
    }

    #[test]
    fn revisions_of_another_profile_and_damaged_ones_are_left_out() {
        let damaged = ControllerRevision::default();
        let all = vec![recorded("u", 1, 10), damaged, recorded("v", 9, 30), recorded("u", 4, 20)];
        let history = History::of(profile("u"), all);
        let numbers: Vec<_> = history.revisions.iter().map(|one| one.revision.generation).collect();
        assert_eq!(numbers, [4, 1]);
        assert!(history.get(1).is_ok());
        let Err(Failure::CouldNotRun(problems)) = history.get(9) else { panic!("it is found") };
        assert_eq!(problems[0].to_string(), "revision 9 of profile p not found; recorded: 4, 1");
    }

    #[test]
    fn changed_fields_are_named_by_their_paths() {
        let before = json!({"a": {"b": 1, "c": [1]}, "d": null, "e": 1});
        let after = json!({"a": {"b": 2, "c": [1, 2]}, "f": {"g": 1}, "e": 1});
        assert_eq!(changed(&before, &after), ["spec.a.b", "spec.a.c", "spec.f"]);
        assert_eq!(changed(&before, &before), [""; 0]);
    }
}
