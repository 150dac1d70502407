//! Invalid parts that an update may keep because the CRD already has them (`ValidateCustomResourceDefinitionUpdate`).

use std::collections::BTreeSet;

use palisade_cel::Minor;
use serde_json::Value as Json;

use super::{
    defaults, flag,
    parts::{Parts, same_schema, schema_of},
    schema, structural,
};
use crate::validation::{any_schema, list, part, text};

/// The requirements for a CRD, and the rules and messages that it already has.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
pub(super) struct Existing {
    pub(super) rules: BTreeSet<String>,
    pub(super) messages: BTreeSet<String>,
    /// The versions whose schema does not change.
    unchanged: BTreeSet<String>,
    /// The versions that may have too many selectable fields, and whether those of all versions may be too many.
    too_many: (BTreeSet<String>, bool),
    /// Whether the version at hand keeps its schema.
    pub(super) is_unchanged: bool,
    /// Whether each version must have a schema.
    pub(super) schemas: bool,
    pub(super) types: bool,
    pub(super) structural: bool,
    pub(super) pruned: bool,
    pub(super) atomic_sets: bool,
    pub(super) keys: bool,
    /// Whether a version of `ConversionReview` must be known.
    pub(super) reviews: bool,
    /// Whether the scope and the kind must stay what they are.
    pub(super) established: bool,
    /// Whether certificates of the conversion must be right.
    pub(super) certificates: bool,
}

impl Default for Existing {
    fn default() -> Self {
        Self {
            rules: BTreeSet::new(),
            messages: BTreeSet::new(),
            unchanged: BTreeSet::new(),
            too_many: (BTreeSet::new(), false),
            is_unchanged: false,
            schemas: true,
            types: true,
            structural: true,
            pruned: true,
            atomic_sets: true,
            keys: true,
            reviews: true,
            established: false,
            certificates: false,
        }
    }
}

impl Existing {
    /// The requirements for the update of a CRD.
    pub(super) fn of(minor: Minor, old: &Json, new: &Json) -> Self {
        let mut existing = Self::default();
        let (before, now) = (&old["spec"], &new["spec"]);
        let parts = Parts::new(before);
        for schema in parts.schemas().flatten() {
            existing.add(schema);
            existing.types &= !any_schema(schema, &|of| schema::has_unknown_type(of));
            existing.structural &=
                structural::unsupported(schema).is_none() && structural::check(minor, schema, "").is_empty();
            existing.atomic_sets &= !any_schema(schema, &|of| schema::has_open_set(of));
            existing.keys &= !any_schema(schema, &|of| schema::has_wrong_keys(of));
        }
        if existing.structural {
            let unpruned = |schema: &Json| {
                defaults::check(minor, schema, "", true).iter().any(|error| error.body.ends_with(defaults::UNPRUNED))
            };
            existing.pruned = !parts.schemas().flatten().any(unpruned);
        }
        existing.schemas = parts.schemas().all(|schema| schema.is_some());
        for version in list(now, "versions") {
            let name = text(version, "name");
            let Some(known) = parts.versions.iter().find(|known| text(known, "name") == name) else { continue };
            if same_schema(schema_of(known), schema_of(version)) {
                existing.unchanged.insert(name.to_owned());
            }
            let (fields, of) = (list(known, "selectableFields"), list(version, "selectableFields"));
            if minor >= Minor::V1_35 && fields.len() > MAX_SELECTABLE && fields == of {
                existing.too_many.0.insert(name.to_owned());
            }
        }
        let shared = |parts: &Parts<'_>| parts.shared("selectableFields").map(|(fields, _)| fields.clone());
        existing.too_many.1 = minor >= Minor::V1_35
            && shared(&parts).is_some_and(|fields| {
                fields.as_array().is_some_and(|fields| fields.len() > MAX_SELECTABLE)
                    && Some(fields) == shared(&Parts::new(now))
            });
        let reviews = before.pointer("/conversion/webhook/conversionReviewVersions").and_then(Json::as_array);
        let reviews: Vec<_> = reviews.into_iter().flatten().filter_map(Json::as_str).collect();
        existing.reviews = reviews.is_empty() || reviews.iter().any(|one| REVIEWS.contains(one));
        existing.established = list(old.get("status").unwrap_or(&Json::Null), "conditions")
            .iter()
            .any(|one| text(one, "type") == "Established" && text(one, "status") == "True");
        existing.certificates = existing.established;
        existing
    }

    /// For the schema of a version.
    pub(super) fn at_version(&mut self, name: &str) {
        self.is_unchanged = self.unchanged.contains(name);
    }

    /// Whether a version, or all of them together, may have too many selectable fields.
    pub(super) fn may_have_too_many(&self, version: Option<&str>) -> bool {
        version.map_or(self.too_many.1, |name| self.too_many.0.contains(name))
    }

    /// A schema that has to be structural whatever the definition has.
    pub(super) fn requires_structure(spec: &Json) -> bool {
        let extended = |of: &Json| {
            flag(of, "x-kubernetes-embedded-resource")
                || part(of, "x-kubernetes-preserve-unknown-fields").is_some()
                || flag(of, "x-kubernetes-int-or-string")
                || !list(of, "x-kubernetes-list-map-keys").is_empty()
                || part(of, "x-kubernetes-list-type").is_some()
                || !list(of, "x-kubernetes-validations").is_empty()
                || part(of, "default").is_some()
        };
        !flag(spec, "preserveUnknownFields")
            || Parts::new(spec).schemas().flatten().any(|schema| any_schema(schema, &extended))
    }

    fn add(&mut self, schema: &Json) {
        match schema {
            Json::Object(fields) => {
                for rule in list(schema, "x-kubernetes-validations") {
                    self.rules.insert(text(rule, "rule").to_owned());
                    self.messages.insert(text(rule, "messageExpression").to_owned());
                }
                fields.values().for_each(|value| self.add(value));
            }
            Json::Array(elements) => elements.iter().for_each(|element| self.add(element)),
            _ => {}
        }
    }
}

/// The most fields by which objects can be selected.
pub(super) const MAX_SELECTABLE: usize = 8;
/// The versions of `ConversionReview`.
pub(super) const REVIEWS: [&str; 2] = ["v1", "v1beta1"];
