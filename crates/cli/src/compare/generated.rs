//! The differences of generated objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use k8s_openapi::jiff::Timestamp;
use palisade_api::names::{self, GENERATION_ANNOTATION, Part, Shape};
use palisade_cel::Minor;
use palisade_compiler::Namespace;
use serde_json::{Map, Value as Json, json};

use super::tenant_objects::TenantObjects;
use crate::{
    diff::{self, CONTEXT},
    namespaces::Tenant,
    output::could_not_print,
    profiles::{self, Accepted},
    report::Failure,
};

/// A generated object that differs.
struct Object {
    /// `ValidatingAdmissionPolicy/palisade-tools-pods`.
    name: String,
    change: &'static str,
    diff: String,
}

/// The differences between two sets of profiles.
pub(super) struct Difference {
    /// `changed`, `added` or `removed`, by profile.
    profiles: BTreeMap<String, &'static str>,
    objects: Vec<Object>,
    /// The number of objects that are generated from both together.
    all: usize,
    tenant_objects: TenantObjects,
    /// Whether pods are mutated differently.
    mutates: bool,
    /// Whether the rollout of namespaces to stages differs.
    rollout: bool,
    /// The namespaces whose parameters differ.
    parameters: BTreeSet<String>,
    /// Whether parameters could differ in an unknown namespace.
    parameters_may: bool,
    /// The namespaces that only one of the profiles selects.
    selected: BTreeSet<String>,
    deselected: BTreeSet<String>,
    /// The number of compared namespaces.
    namespaces: usize,
}

impl Difference {
    pub(super) fn new(
        before: &[Accepted],
        after: &[Accepted],
        tenants: &[Tenant],
        version: Minor,
    ) -> Result<Self, Failure> {
        let [old, new] = [named(before), named(after)];
        let all: BTreeSet<_> = old.keys().chain(new.keys()).copied().collect();
        let mut found = Self {
            profiles: BTreeMap::new(),
            objects: Vec::new(),
            all: 0,
            tenant_objects: TenantObjects::default(),
            mutates: false,
            rollout: false,
            parameters: BTreeSet::new(),
            parameters_may: false,
            selected: BTreeSet::new(),
            deselected: BTreeSet::new(),
            namespaces: tenants.len(),
        };
        for name in all {
            let (one, other) = (old.get(name).copied(), new.get(name).copied());
            let change = match (one, other) {
                (Some(one), Some(other)) if one.profile.spec == other.profile.spec => continue,
                (Some(_), Some(_)) => "changed",
                (None, _) => "added",
                (_, None) => "removed",
            };
            found.profiles.insert(name.to_owned(), change);
            let mutation = |of: Option<&Accepted>| of.and_then(|of| of.checked.mutation.clone());
            found.mutates |= mutation(one) != mutation(other);
            let rollout = |of: Option<&Accepted>| of.and_then(|of| of.profile.spec.rollout.clone());
            found.rollout |= rollout(one) != rollout(other);
            let parameters_may = parameters_may(one, other);
            found.parameters_may |= parameters_may;
            found.compare_namespaces(one, other, tenants);
            found.tenant_objects.compare([one, other], parameters_may, tenants)?;
        }
        found.compare_objects(&generated(before, version)?, &generated(after, version)?)?;
        Ok(found)
    }

    fn compare_namespaces(&mut self, one: Option<&Accepted>, other: Option<&Accepted>, tenants: &[Tenant]) {
        let now = Timestamp::now();
        let selects = |of: Option<&Accepted>, namespace: &Namespace| {
            of.is_some_and(|of| palisade_compiler::selects(&of.profile.spec, namespace))
        };
        for tenant in tenants {
            match (selects(one, tenant), selects(other, tenant)) {
                (false, true) => self.selected.extend([tenant.name.clone()]),
                (true, false) => self.deselected.extend([tenant.name.clone()]),
                (false, false) => {}
                (true, true) => {
                    let params = |of: Option<&Accepted>| {
                        let requests = tenant.requests.iter().map(|(_, request)| request);
                        of.and_then(|of| of.checked.params(tenant, requests, now)).map(|params| params.spec)
                    };
                    if params(one) != params(other) {
                        self.parameters.insert(tenant.name.clone());
                    }
                }
            }
        }
    }

    fn compare_objects(&mut self, old: &BTreeMap<String, Json>, new: &BTreeMap<String, Json>) -> Result<(), Failure> {
        let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
        self.all = names.len();
        for name in names {
            let [one, other] = [old, new].map(|of| of.get(name).unwrap_or(&Json::Null));
            if one == other {
                continue;
            }
            let change = match (one.is_null(), other.is_null()) {
                (true, _) => "added",
                (_, true) => "removed",
                _ => "changed",
            };
            let diff = diff::between((&format!("BEFORE/{name}"), one), (&format!("AFTER/{name}"), other), CONTEXT)?;
            self.objects.push(Object { name: name.clone(), change, diff });
        }
        Ok(())
    }

    /// Whether the change has an effect. `whole` means that all namespaces were compared.
    pub(super) fn matters(&self, whole: bool) -> bool {
        self.changes_answers(whole) || self.tenant_objects.differ(whole)
    }

    /// Whether the answers of an API server can differ.
    pub(super) fn changes_answers(&self, whole: bool) -> bool {
        let params = !self.parameters.is_empty() || (self.parameters_may && !whole);
        !self.objects.is_empty() || self.mutates || self.rollout || params
    }

    /// The differences, as a sentence.
    pub(super) fn sentence(&self, whole: bool) -> String {
        if self.profiles.is_empty() {
            return "the profiles are equal: the change has no effect".to_owned();
        }
        let profiles: Vec<_> =
            self.profiles.iter().map(|(name, change)| format!("profile {name} is {change}")).collect();
        let mut text = format!("{}; ", profiles.join(", "));
        if !self.matters(whole) {
            text.push_str(
                "the generated policies, bindings, parameters and objects are equal: the change has no effect",
            );
            return text;
        }
        let _ = write!(text, "{} of {} generated objects differ", self.objects.len(), self.all);
        if self.mutates {
            text.push_str(", pods are mutated differently");
        }
        if self.rollout {
            text.push_str(", the rollout differs");
        }
        for (names, what) in [
            (&self.parameters, "have different parameters"),
            (&self.selected, "are newly selected"),
            (&self.deselected, "are no longer selected"),
        ] {
            if let Some(first) = names.first() {
                let _ = write!(text, ", {} of {} namespaces {what} (first: {first})", names.len(), self.namespaces);
            }
        }
        if self.parameters_may && !whole {
            text.push_str(", parameters may differ in unknown namespaces");
        }
        for part in self.tenant_objects.parts(whole) {
            let _ = write!(text, ", {part}");
        }
        text
    }

    pub(super) fn diffs(&self) -> Vec<(String, String)> {
        let policies = self.objects.iter().map(|one| (format!("{} is {}", one.name, one.change), one.diff.clone()));
        policies.chain(self.tenant_objects.diffs()).collect()
    }

    pub(super) fn json(&self, whole: bool) -> Map<String, Json> {
        let objects: Vec<_> =
            self.objects.iter().map(|one| json!({"name": one.name, "change": one.change, "diff": one.diff})).collect();
        let all = json!({
            "matters": self.matters(whole), "profiles": self.profiles, "generated": objects,
            "objectsInNamespaces": self.tenant_objects.json(),
            "mutatesOtherwise": self.mutates, "otherParameters": self.parameters,
            "newlySelected": self.selected, "noLongerSelected": self.deselected,
        });
        match all {
            Json::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

fn named(profiles: &[Accepted]) -> BTreeMap<&str, &Accepted> {
    profiles.iter().map(|one| (one.checked.profile.as_str(), one)).collect()
}

/// Whether the sources of the parameters of a namespace differ.
fn parameters_may(one: Option<&Accepted>, other: Option<&Accepted>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return true };
    let (one, other) = (&one.profile.spec, &other.profile.spec);
    one.parameters != other.parameters
        || one.overrides != other.overrides
        || one.exceptions != other.exceptions
        || one.exception_requests != other.exception_requests
}

/// The generated objects by kind and name, without fields that name the profile and its generation.
fn generated(accepted: &[Accepted], version: Minor) -> Result<BTreeMap<String, Json>, Failure> {
    let mut found = BTreeMap::new();
    for mut object in
        profiles::objects(accepted, &[], version, Timestamp::now()).map_err(|error| could_not_print(&error))?
    {
        if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
            metadata.remove("ownerReferences");
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Json::as_object_mut) {
                annotations.remove(GENERATION_ANNOTATION);
            }
        }
        for one in accepted {
            let (name, generation) = (&one.checked.profile, one.profile.metadata.generation);
            for part in Part::judging(Shape::Pods) {
                let subject = |generation| format!("'{}'", names::probe_subject(name, generation, part));
                replace(&mut object, &subject(generation), &subject(None));
            }
        }
        let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str).unwrap_or_default().to_owned();
        found.insert(format!("{}/{}", text("/kind"), text("/metadata/name")), object);
    }
    Ok(found)
}

/// Replaces a text in all strings of an object.
fn replace(json: &mut Json, old: &str, new: &str) {
    match json {
        Json::String(text) if text.contains(old) => *text = text.replace(old, new),
        Json::Array(items) => items.iter_mut().for_each(|item| replace(item, old, new)),
        Json::Object(fields) => fields.values_mut().for_each(|field| replace(field, old, new)),
        _ => {}
    }
}
