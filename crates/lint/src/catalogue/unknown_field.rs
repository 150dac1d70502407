//! A field that does not exist.

use palisade_cel::{
    Environment, Mode,
    schema::{Kind, escape},
    types::Type,
};
use palisade_manifest::Severity;
use palisade_manifest::suggestion;
use serde_json::Value as Json;

use crate::{Category, Rule, cluster::Cluster, finding::Findings, item::Item};

pub(super) static RULE: Rule = Rule {
    id: "unknown-field",
    severity: Severity::Error,
    category: Category::Rejected,
    title: "A field that does not exist",
    why: "\
`kubectl apply` refuses it (`strict decoding error: unknown field`). A client that does not ask for strict decoding gets
a warning, and the field is dropped: what it was to do is not done.",
    bad: include_str!("unknown_field.bad.yaml"),
    good: include_str!("unknown_field.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for (item, _) in cluster.said.iter().filter(|(item, _)| !item.is_definition()) {
        let kind = Kind::parse(&format!("{}/{}", item.api_version(), item.kind));
        let base = || Environment::kubernetes(cluster.minor, Mode::Stored);
        let declared = kind.and_then(|kind| cluster.schemas.declare(base(), &kind));
        let Some((environment, of)) = declared else { continue };
        let mut walk = Walk { item, environment: &environment, found };
        walk.value(&item.json, &of, "");
    }
}

struct Walk<'w, 'f, 'o> {
    item: &'w Item<'w>,
    environment: &'w Environment,
    found: &'f mut Findings<'o>,
}

impl Walk<'_, '_, '_> {
    fn value(&mut self, value: &Json, of: &Type, path: &str) {
        match (value, of) {
            (Json::Array(elements), Type::List(of)) => {
                for (index, element) in elements.iter().enumerate() {
                    self.value(element, of, &format!("{path}[{index}]"));
                }
            }
            (Json::Object(found), Type::Object(name)) => {
                let Some(fields) = self.environment.fields(name) else { return };
                for (key, value) in found {
                    let at = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    match escape(key).and_then(|name| fields.get(&*name)) {
                        // What is in there is not written by hand.
                        Some(_) if matches!(path, "metadata") || at == "status" => {}
                        Some(of) => self.value(value, of, &at),
                        None => {
                            let known: Vec<_> = fields.keys().map(|name| &**name).collect();
                            self.found.unknown(self.item, &at, &suggestion(key, &known));
                        }
                    }
                }
            }
            _ => {}
        }
    }
}
