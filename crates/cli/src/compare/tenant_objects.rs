//! The differences of the objects that profiles generate in namespaces (`spec.generate`).

use std::collections::{BTreeMap, BTreeSet};

use palisade_api::names::{DELETION_POLICY_ANNOTATION, DIGEST_ANNOTATION};
use palisade_compiler::GeneratedObject;
use serde_json::{Value as Json, json};

use crate::{
    diff::{self, CONTEXT},
    namespaces::Tenant,
    profiles::Accepted,
    report::{self, Failure},
};

/// The differences, by object and change.
#[derive(Default)]
pub(super) struct TenantObjects {
    objects: BTreeMap<(Name, &'static str), InNamespaces>,
    /// Whether they could differ in an unknown namespace.
    may_differ: bool,
    /// The templates whose problem was reported.
    noted: BTreeSet<(String, String)>,
}

/// `ResourceQuota/tenant`, and the API group: two groups can have a kind of the same name.
type Name = (String, String);

/// An object of a namespace.
#[derive(Default)]
struct TenantObject {
    template: String,
    object: Json,
    /// Whether it takes over an object of another owner.
    adopt: bool,
}

struct InNamespaces {
    namespaces: BTreeSet<String>,
    /// In the first of them that was compared.
    diff: String,
}

impl InNamespaces {
    /// `3 namespaces (first: tool-a)`
    fn place(&self) -> String {
        let count = self.namespaces.len();
        let first = self.namespaces.first().map(String::as_str).unwrap_or_default();
        format!("{count} {} (first: {first})", if count == 1 { "namespace" } else { "namespaces" })
    }
}

impl TenantObjects {
    /// Compares the objects of a profile in namespaces. `parameters_may` means that the sources of its parameters differ.
    pub(super) fn compare(
        &mut self,
        [one, other]: [Option<&Accepted>; 2],
        parameters_may: bool,
        tenants: &[Tenant],
    ) -> Result<(), Failure> {
        let templates = |of: Option<&Accepted>| of.map(|of| of.profile.spec.generate.clone()).unwrap_or_default();
        let (old, new) = (templates(one), templates(other));
        if old.is_empty() && new.is_empty() {
            return Ok(());
        }
        let selector = |of: Option<&Accepted>| of.map(|of| of.profile.spec.namespace_selector.clone());
        self.may_differ |= old != new || selector(one) != selector(other) || parameters_may;
        for tenant in tenants {
            let (old, _) = self.objects_of(one, tenant);
            let (new, unresolved) = self.objects_of(other, tenant);
            let names: BTreeSet<_> = old.keys().chain(new.keys()).cloned().collect();
            for name in names {
                let empty = TenantObject::default();
                let [one, other] = [&old, &new].map(|of| of.get(&name).unwrap_or(&empty));
                let (before, after) = (&one.object, &other.object);
                // Without a valid value, the object remains as it is.
                if before == after && one.adopt == other.adopt || after.is_null() && unresolved.contains(&one.template)
                {
                    continue;
                }
                let is_orphaned = before
                    .pointer("/metadata/annotations")
                    .is_some_and(|annotations| annotations.get(DELETION_POLICY_ANNOTATION).is_some());
                let change = match (before.is_null(), after.is_null()) {
                    (true, _) => "added",
                    (_, true) if is_orphaned => "released",
                    (_, true) => "removed",
                    _ if before != after => "changed",
                    _ if other.adopt => "adopted from other owners",
                    _ => "no longer adopted from other owners",
                };
                let place = format!("{}/{}", tenant.name, name.0);
                if let Some(known) = self.objects.get_mut(&(name.clone(), change)) {
                    known.namespaces.insert(tenant.name.clone());
                    continue;
                }
                let adoption = [one, other].map(|of| json!({"adopt": of.adopt}));
                let [before, after] = if before == after { [&adoption[0], &adoption[1]] } else { [before, after] };
                let diff =
                    diff::between((&format!("BEFORE/{place}"), before), (&format!("AFTER/{place}"), after), CONTEXT)?;
                let namespaces = BTreeSet::from([tenant.name.clone()]);
                self.objects.insert((name, change), InNamespaces { namespaces, diff });
            }
        }
        Ok(())
    }

    /// The objects of a namespace; and the templates that have no valid value.
    fn objects_of(
        &mut self,
        of: Option<&Accepted>,
        tenant: &Tenant,
    ) -> (BTreeMap<Name, TenantObject>, BTreeSet<String>) {
        let (mut objects, mut unresolved) = (BTreeMap::new(), BTreeSet::new());
        let Some(Accepted { profile, checked }) = of else { return (objects, unresolved) };
        if !palisade_compiler::selects(&profile.spec, tenant) {
            return (objects, unresolved);
        }
        for resolved in checked.generated(tenant) {
            match resolved.object {
                Ok(GeneratedObject { object_type, name, mut object, adopt, template, .. }) => {
                    if let Some(Json::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
                        annotations.remove(DIGEST_ANNOTATION);
                    }
                    let group = object_type.api_version.rsplit_once('/').map_or("", |(group, _)| group).to_owned();
                    let name = (format!("{}/{name}", object_type.kind), group);
                    objects.insert(name, TenantObject { template, object, adopt });
                }
                Err(problem) => {
                    if self.noted.insert((checked.profile.clone(), resolved.template.clone())) {
                        report::note(&format!(
                            "note: profile {}: template {} gives no object in some namespaces (first: {}): {problem}",
                            checked.profile, resolved.template, tenant.name
                        ));
                    }
                    unresolved.insert(resolved.template);
                }
            }
        }
        (objects, unresolved)
    }

    /// Whether they differ. `whole` means that all namespaces were compared.
    pub(super) fn differ(&self, whole: bool) -> bool {
        !self.objects.is_empty() || (self.may_differ && !whole)
    }

    /// The differences, as parts of a sentence.
    pub(super) fn parts(&self, whole: bool) -> Vec<String> {
        let known =
            self.objects.iter().map(|(((name, _), change), found)| format!("{name} is {change} in {}", found.place()));
        let unknown = (self.may_differ && !whole).then(|| "objects may differ in unknown namespaces".to_owned());
        known.chain(unknown).collect()
    }

    pub(super) fn diffs(&self) -> impl Iterator<Item = (String, String)> {
        let title = |name: &str, change: &str, found: &InNamespaces| format!("{name} is {change} in {}", found.place());
        self.objects.iter().map(move |(((name, _), change), found)| (title(name, change, found), found.diff.clone()))
    }

    pub(super) fn json(&self) -> Json {
        let one = |(((name, _), change), found): (&(Name, &str), &InNamespaces)| json!({"name": name, "change": change, "namespaces": found.namespaces, "diff": found.diff});
        self.objects.iter().map(one).collect()
    }
}
