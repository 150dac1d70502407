//! Fixtures are accounted for: each restricted field has one that is denied because of it, in each kind of container,
//! and each fixture that is denied is denied because of a restricted field.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use palisade_api::{ToolSecurityParamsSpec, ToolSecurityProfile, catalogue, names::Shape};
use palisade_checks::{Check, Field, fixture::Fixture};
use serde_json::{Value as Json, json};

use crate::support::ShapePolicy;

const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

fn fixtures(check: &Check) -> Vec<Fixture> {
    serde_saphyr::from_str(check.fixtures).unwrap_or_else(|error| panic!("fixtures of {}: {error}", check.id))
}

/// The policy of a fixture, with its parameters. It cannot evaluate a pod without a field that an expression requires.
fn judge(fixture: &Fixture) -> ShapePolicy {
    let profile: ToolSecurityProfile = serde_json::from_value(json!({
        "apiVersion": "toolsecurity.dev/v1alpha1",
        "kind": "ToolSecurityProfile",
        "metadata": {"name": "fixture"},
        "spec": fixture.spec(&json!({"a": "b"})),
    }))
    .unwrap();
    let compiled = palisade_compiler::compile(&profile).unwrap();
    let values = fixture.values();
    let params = (!values.is_empty()).then(|| json!({"spec": ToolSecurityParamsSpec::of(&values)}));
    ShapePolicy::with(&compiled, Shape::Pods, params)
}

/// A restricted field in one of the places where it can stand: the pod, its volumes, or a kind of container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    list: &'static str,
    path: &'static str,
}

impl Place {
    fn all(check: &Check) -> Vec<Self> {
        let places = |field: &Field| match *field {
            Field::Pod(path) => vec![Self { list: "", path }],
            Field::Annotation(path) => vec![Self { list: "annotations", path }],
            Field::Volume(path) => vec![Self { list: "volumes", path }],
            Field::Container(path) => CONTAINERS.map(|list| Self { list, path }).into(),
        };
        check.fields.iter().flat_map(places).collect()
    }

    /// The keys that lead to it. A list of restricted things is taken as a whole.
    fn keys(self) -> impl Iterator<Item = &'static str> {
        self.path.split("[*]").next().unwrap().split('.')
    }

    /// What the field may stand in: the spec, or each container.
    fn owners(self, pod: &mut Json) -> Vec<&mut Json> {
        match self.list {
            "" => vec![&mut pod["spec"]],
            list => pod["spec"].get_mut(list).and_then(Json::as_array_mut).into_iter().flatten().collect(),
        }
    }

    /// Its values in the pod, one for each that it may stand in.
    fn values(self, pod: &Json) -> Vec<Option<Json>> {
        let mut pod = pod.clone();
        let owners = self.owners(&mut pod).into_iter();
        owners.map(|owner| self.keys().try_fold(&*owner, |at, key| at.get(key)).cloned()).collect()
    }

    /// Sets it to these values, or takes it away where there is none.
    fn set(self, pod: &mut Json, values: &[Option<Json>]) {
        let keys: Vec<_> = self.keys().collect();
        let (last, parents) = keys.split_last().unwrap();
        for (owner, value) in self.owners(pod).into_iter().zip(values) {
            match value {
                Some(value) => {
                    let parent = parents.iter().fold(owner, |at, key| &mut at[*key]);
                    parent[*last] = value.clone();
                }
                None => take(owner, &keys),
            }
        }
    }

    /// Whether it stands in this volume.
    fn is_in(self, volume: &Json) -> bool {
        self.path == "*" || self.keys().try_fold(volume, |at, key| at.get(key)).is_some()
    }

    /// Takes it out of the pod: a volume as a whole, because each has to be something.
    fn remove(self, pod: &mut Json) {
        match self.list {
            "volumes" => {
                if let Some(volumes) = pod["spec"].get_mut("volumes").and_then(Json::as_array_mut) {
                    volumes.retain(|volume| !self.is_in(volume));
                }
            }
            "annotations" => {
                if let Some(annotations) = pod["metadata"].get_mut("annotations").and_then(Json::as_object_mut) {
                    annotations.retain(|key, _| !key.starts_with(self.path));
                }
            }
            _ => {
                let nothing = vec![None; self.owners(pod).len()];
                self.set(pod, &nothing);
            }
        }
    }

    /// Puts it into the pod as it is in `other`.
    fn restore(self, pod: &mut Json, other: &Json) {
        match self.list {
            "volumes" => {
                let volumes = other["spec"]["volumes"].as_array().into_iter().flatten();
                let volumes: Vec<_> = volumes.filter(|volume| self.is_in(volume)).cloned().collect();
                if let Some(list) = pod["spec"]["volumes"].as_array_mut() {
                    list.extend(volumes);
                }
            }
            "annotations" => {
                let annotations = other["metadata"]["annotations"].as_object().into_iter().flatten();
                for (key, value) in annotations.filter(|(key, _)| key.starts_with(self.path)) {
                    pod["metadata"]["annotations"][key] = value.clone();
                }
            }
            _ => self.set(pod, &self.values(other)),
        }
    }
}

/// Takes away what the keys lead to, and what is empty then.
fn take(object: &mut Json, keys: &[&str]) {
    let Some((key, rest)) = keys.split_first() else { return };
    let Some(fields) = object.as_object_mut() else { return };
    if let Some(below) = fields.get_mut(*key) {
        take(below, rest);
        if rest.is_empty() || below.as_object().is_some_and(serde_json::Map::is_empty) {
            fields.remove(*key);
        }
    }
}

/// The places that a fixture is denied for: what is restricted there makes the difference between a pod that is
/// admitted and one that is not.
///
/// # Errors
/// The restricted fields do not explain the denial: without them the pod is denied as well.
fn denied_for(check: &Check, fixture: &Fixture, seen: &BTreeMap<&str, Vec<Json>>) -> Result<BTreeSet<Place>, String> {
    let judge = judge(fixture);
    let pod = fixture.pod();
    let places = Place::all(check);
    let mut neutral = pod.clone();
    for place in &places {
        place.remove(&mut neutral);
    }
    // What must be there is put there as the check itself would.
    (check.comply)(&fixture.settings, &fixture.values(), &mut neutral);
    if judge.admits(&neutral) != Some(true) {
        return Err(format!("is denied without the restricted fields, too: {neutral}"));
    }
    let alone = |place: &Place| {
        let mut changed = neutral.clone();
        place.restore(&mut changed, &pod);
        judge.admits(&changed) == Some(false)
    };
    // A field that only means something beside others, as the name of a profile beside its type.
    let others = |place: &Place| {
        let mut of_kind = neutral.clone();
        for other in places.iter().filter(|other| other.list == place.list) {
            other.restore(&mut of_kind, &pod);
        }
        [of_kind, pod.clone()]
    };
    let beside_others = |place: &Place| {
        others(place).into_iter().filter(|base| judge.admits(base) == Some(false)).any(|base| {
            seen.get(place.path).into_iter().flatten().any(|value| {
                let mut changed = base.clone();
                let values: Vec<_> =
                    place.values(&base).into_iter().map(|found| found.map(|_| value.clone())).collect();
                place.set(&mut changed, &values);
                judge.admits(&changed) == Some(true)
            })
        })
    };
    Ok(places.iter().filter(|place| alone(place) || beside_others(place)).copied().collect())
}

/// The values that the check's fixtures have in its fields.
fn seen(check: &Check) -> BTreeMap<&'static str, Vec<Json>> {
    let mut seen: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for fixture in fixtures(check) {
        for place in Place::all(check) {
            seen.entry(place.path).or_default().extend(place.values(&fixture.pod()).into_iter().flatten());
        }
    }
    seen
}

#[test]
fn every_restricted_field_has_a_fixture_that_fails() {
    let mut wrong = Vec::new();
    for check in catalogue::ALL {
        let seen = seen(check);
        let mut missing: BTreeSet<_> = Place::all(check).into_iter().collect();
        for fixture in fixtures(check).iter().filter(|fixture| !fixture.violations.is_empty()) {
            match denied_for(check, fixture, &seen) {
                Ok(places) if places.is_empty() => {
                    wrong.push(format!("{}: {}: no restricted field is why it is denied", check.id, fixture.name));
                }
                Ok(places) => missing.retain(|place| !places.contains(place)),
                Err(error) => wrong.push(format!("{}: {}: {error}", check.id, fixture.name)),
            }
        }
        wrong.extend(missing.into_iter().map(|Place { list, path }| {
            format!(
                "{}: no fixture is denied because of {path} of {}",
                check.id,
                if list.is_empty() { "the pod" } else { list }
            )
        }));
    }
    assert!(wrong.is_empty(), "{} are not accounted for:\n{}", wrong.len(), wrong.join("\n"));
}

/// A field that is spelled wrong would not be a field, and its fixture would test something else.
#[test]
fn fixture_pods_have_only_known_fields() {
    for check in catalogue::ALL {
        for fixture in fixtures(check) {
            let pod = fixture.pod();
            let known: Pod = serde_json::from_value(pod.clone())
                .unwrap_or_else(|error| panic!("{}: {}: {error}", check.id, fixture.name));
            assert_eq!(serde_json::to_value(known).unwrap(), pod, "{}: {}", check.id, fixture.name);
        }
    }
}
