//! The differences of the objects that profiles generate in namespaces (`spec.generate`).

use std::collections::{BTreeMap, BTreeSet};

use palisade_api::names::{DELETION_POLICY_ANNOTATION, DIGEST_ANNOTATION};
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
    objects: BTreeMap<(String, &'static str), InNamespaces>,
    /// Whether they could differ in an unknown namespace.
    may_differ: bool,
    /// The templates whose problem was reported.
    noted: BTreeSet<(String, String)>,
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
                let empty = (String::new(), Json::Null);
                let [(template, before), (_, after)] = [&old, &new].map(|of| of.get(&name).unwrap_or(&empty));
                // Without a valid value, the object remains as it is.
                if before == after || after.is_null() && unresolved.contains(template) {
                    continue;
                }
                let is_orphaned = before
                    .pointer("/metadata/annotations")
                    .is_some_and(|annotations| annotations.get(DELETION_POLICY_ANNOTATION).is_some());
                let change = match (before.is_null(), after.is_null()) {
                    (true, _) => "added",
                    (_, true) if is_orphaned => "released",
                    (_, true) => "removed",
                    _ => "changed",
                };
                let place = format!("{}/{name}", tenant.name);
                if let Some(known) = self.objects.get_mut(&(name.clone(), change)) {
                    known.namespaces.insert(tenant.name.clone());
                    continue;
                }
                let diff =
                    diff::between((&format!("BEFORE/{place}"), before), (&format!("AFTER/{place}"), after), CONTEXT)?;
                let namespaces = BTreeSet::from([tenant.name.clone()]);
                self.objects.insert((name, change), InNamespaces { namespaces, diff });
            }
        }
        Ok(())
    }

    /// The objects of a namespace with their templates, by kind and name; and the templates that have no valid value.
    fn objects_of(
        &mut self,
        of: Option<&Accepted>,
        tenant: &Tenant,
    ) -> (BTreeMap<String, (String, Json)>, BTreeSet<String>) {
        let (mut objects, mut unresolved) = (BTreeMap::new(), BTreeSet::new());
        let Some(Accepted { profile, checked }) = of else { return (objects, unresolved) };
        if !palisade_compiler::selects(&profile.spec, tenant) {
            return (objects, unresolved);
        }
        for resolved in checked.generated(tenant) {
            match resolved.object {
                Ok(mut generated) => {
                    if let Some(Json::Object(annotations)) = generated.object.pointer_mut("/metadata/annotations") {
                        annotations.remove(DIGEST_ANNOTATION);
                    }
                    let name = format!("{}/{}", generated.object_type.kind, generated.name);
                    objects.insert(name, (resolved.template, generated.object));
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
            self.objects.iter().map(|((name, change), found)| format!("{name} is {change} in {}", found.place()));
        let unknown = (self.may_differ && !whole).then(|| "objects may differ in unknown namespaces".to_owned());
        known.chain(unknown).collect()
    }

    pub(super) fn diffs(&self) -> impl Iterator<Item = (String, String)> {
        let title = |name: &str, change: &str, found: &InNamespaces| format!("{name} is {change} in {}", found.place());
        self.objects.iter().map(move |((name, change), found)| (title(name, change, found), found.diff.clone()))
    }

    pub(super) fn json(&self) -> Json {
        let one = |((name, change), found): (&(String, &str), &InNamespaces)| json!({"name": name, "change": change, "namespaces": found.namespaces, "diff": found.diff});
        self.objects.iter().map(one).collect()
    }
}
