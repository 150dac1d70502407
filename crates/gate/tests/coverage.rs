//! No field of a pod is forgotten: each that the API's schema of a supported minor has is decided in
//! `palisade_checks::coverage`, as a check's or with the reason why no check restricts it.

use std::collections::{BTreeMap, BTreeSet};

use palisade_cel::{
    Minor,
    schema::{Kind, Schemas},
};
use palisade_checks::coverage::{self, Decision};
use serde_json::Value as Json;

const WHERE: &str = "Decide in crates/checks/src/coverage (pods.rs, containers.rs or volumes.rs): a check restricts it, \
                     or `Open` with the reason why none does.";

/// The name of a type, in whatever way a minor writes it: `io.k8s.api.core.v1.PodSpec`, `k8s.io/api/core/v1.PodSpec`.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap()
}

/// The type that a property has, or that the elements of its list or map have.
fn type_of(property: &Json) -> Option<&str> {
    let inner = ["items", "additionalProperties"].into_iter().find_map(|key| property.get(key));
    let wrapped = property.get("allOf").and_then(Json::as_array).into_iter().flatten().find_map(type_of);
    property.get("$ref").and_then(Json::as_str).or(wrapped).or_else(|| inner.and_then(type_of))
}

/// What one minor has: each type that is decided field by field, and its fields with the types that they have.
struct Read {
    schemas: Schemas,
    found: BTreeMap<&'static str, BTreeMap<String, Option<String>>>,
    mistakes: Vec<String>,
}

impl Read {
    fn of(minor: Minor) -> Self {
        let schemas = Schemas::builtin(minor).unwrap();
        let pod = schemas.of_kind(&Kind::parse("v1/Pod").unwrap()).unwrap();
        let spec = type_of(&pod["properties"]["spec"]).unwrap().to_owned();
        let mut read = Self { schemas, found: BTreeMap::new(), mistakes: Vec::new() };
        read.visit(&spec);
        read
    }

    /// The fields of the schema with this name; none if it is a scalar such as a quantity.
    fn fields(&self, name: &str) -> BTreeMap<String, Option<String>> {
        let properties = self.schemas.named(name).and_then(|schema| schema.get("properties")).and_then(Json::as_object);
        let field = |(field, property): (&String, &Json)| (field.clone(), type_of(property).map(str::to_owned));
        properties.into_iter().flatten().map(field).collect()
    }

    fn visit(&mut self, name: &str) {
        let Some(known) = coverage::named(short(name)) else {
            self.mistakes.push(format!("the type {} is not known", short(name)));
            return;
        };
        let schema = known.schemas.iter().find(|schema| **schema == short(name)).unwrap();
        let fields = self.fields(name);
        if self.found.insert(schema, fields.clone()).is_some() {
            return;
        }
        for (field, of) in fields {
            let has_fields = of.as_deref().is_some_and(|of| !self.fields(of).is_empty());
            let place = format!("{schema}.{field}");
            match (known.decision(&field), &of) {
                (None, _) => self.mistakes.push(format!("{place} is not known")),
                (Some(Decision::Of(expected)), Some(of)) if short(of) == expected => self.visit(of),
                (Some(Decision::Of(expected)), of) => {
                    self.mistakes.push(format!("{place} is of {of:?}, and not of {expected}"));
                }
                (Some(Decision::Checked | Decision::Open(_)), Some(of)) if has_fields => {
                    self.mistakes.push(format!("{place} is of {of}, of whose fields nothing is said"));
                }
                (Some(_), _) => {}
            }
        }
    }
}

#[test]
fn every_pod_field_has_a_coverage_decision() {
    let mut mistakes = BTreeMap::<String, BTreeSet<Minor>>::new();
    let mut found = BTreeSet::new();
    for minor in Minor::ALL {
        let read = Read::of(minor);
        for mistake in read.mistakes {
            mistakes.entry(mistake).or_default().insert(minor);
        }
        found.extend(
            read.found
                .into_iter()
                .flat_map(|(schema, fields)| fields.into_keys().map(move |field| (schema, field)).collect::<Vec<_>>()),
        );
    }
    assert!(found.len() > 200, "the schemas were read: {}", found.len());
    let list = |minors: &BTreeSet<Minor>| minors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mistakes: Vec<_> =
        mistakes.iter().map(|(mistake, minors)| format!("{mistake} (Kubernetes {})", list(minors))).collect();
    assert!(mistakes.is_empty(), "{} fields of pods are not decided. {WHERE}\n{}", mistakes.len(), mistakes.join("\n"));
    // And nothing is decided that does not exist.
    let mut gone = Vec::new();
    for known in coverage::types() {
        let exists = |field: &str| known.schemas.iter().any(|schema| found.contains(&(*schema, field.to_owned())));
        gone.extend(
            known
                .fields()
                .filter(|(field, _)| !exists(field))
                .map(|(field, _)| format!("{}: {field}", known.schemas.join(", "))),
        );
    }
    assert!(
        gone.is_empty(),
        "none of {} has these fields, which crates/checks/src/coverage decides; take them out:\n{}",
        Minor::supported(),
        gone.join("\n")
    );
}

#[test]
fn coverage_reasons_are_sentences() {
    for known in coverage::types() {
        for (field, decision) in known.fields() {
            let (Decision::Open(why) | Decision::OpenWhole(why) | Decision::CheckedWhole(why)) = decision else {
                continue;
            };
            assert!(why.len() > 10 && why.ends_with('.'), "{}: {field}: {why:?}", known.title);
        }
    }
}
