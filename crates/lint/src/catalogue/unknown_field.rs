//! A field that does not exist.

use palisade_admission::objects::unknown_fields;
use palisade_cel::{
    Environment, Mode,
    schema::{Kind, escape},
    types::Type,
};
use palisade_manifest::Severity;
use palisade_manifest::{nearest, suggestion};
use serde_json::Value as Json;

use crate::{Category, Rule, cluster::Cluster, finding::Findings, item::Item};

pub(super) static RULE: Rule = Rule {
    id: "unknown-field",
    severity: Severity::Error,
    category: Category::Rejected,
    precedes_extension: true,
    title: "A field that does not exist",
    why: "\
`kubectl apply` rejects the field (`strict decoding error: unknown field`). For a client that does not request strict field
validation, the API server returns a warning and drops the field, so it has no effect.",
    bad: include_str!("unknown_field.bad.yaml"),
    good: include_str!("unknown_field.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for (item, _) in &cluster.said {
        if item.is_definition() {
            definition(cluster, item, found);
            continue;
        }
        let kind = Kind::parse(&format!("{}/{}", item.api_version(), item.kind));
        let base = || Environment::kubernetes(cluster.minor, Mode::Stored);
        let declared = kind.and_then(|kind| cluster.schemas.declare(base(), &kind));
        let Some((environment, of)) = declared else { continue };
        let mut walk = Walk { item, environment: &environment, found };
        walk.value(&item.json, &of, "");
    }
}

/// The fields of a schema that users write.
const OF_SCHEMA: &[&str] = &[
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Checks a CRD. The type of its schemas is recursive.
fn definition(cluster: &Cluster<'_>, item: &Item<'_>, found: &mut Findings<'_>) {
    for path in unknown_fields(cluster.minor, item.api_version(), &item.kind, &item.json) {
        if path.starts_with("status.") {
            continue;
        }
        let key = path.rsplit('.').next().unwrap_or_default();
        let help = if path.contains("openAPIV3Schema.") {
            nearest(key, OF_SCHEMA.iter().copied(), 3).map(|known| format!("did you mean {known}?"))
        } else {
            None
        };
        found.unknown(item, &path, &help.unwrap_or_else(|| "the API server has no such field here".to_owned()));
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
