//! Walking a schema (`ValidateCustomResourceDefinitionOpenAPISchema`).

use std::{cell::OnceCell, collections::BTreeSet};

use palisade_cel::{Environment, Minor, Mode, schema::with_metadata};
use serde_json::{Map, Value as Json};

use super::{Existing, cost::Costs, flag};
use crate::validation::{Checking, FieldError as Error, list, part, shown, text};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const METADATA: [&str; 3] = ["metadata", "kind", "apiVersion"];

/// The error in a schema and what is in it.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// With the schema itself, and with rules as far as they are not compiled.
    pub(super) schema: Vec<Error>,
    /// With rules that were compiled.
    pub(super) rules: Vec<Error>,
}

impl Found {
    fn add(&mut self, other: Self) {
        self.schema.extend(other.schema);
        self.rules.extend(other.rules);
    }
}

/// Where in a schema another one is.
#[derive(Clone, Debug)]
pub(super) struct Context {
    is_root: bool,
    /// Inside of the metadata of the object, or of an embedded one.
    in_metadata: bool,
    /// Why there must not be defaults.
    no_defaults: Option<String>,
    /// The outermost schema that does not show which old values belong to which new ones.
    pub(super) uncorrelatable: Option<String>,
    /// Whether rules are compiled.
    compiles: bool,
    /// How many such values an object may have, if lists and maps say how many elements they may have.
    pub(super) cardinality: Option<u64>,
}

pub(super) struct Walk<'a, 'b> {
    pub(super) checking: &'a mut Checking<'b>,
    pub(super) existing: &'a Existing,
    /// For new rules, and for those that are there already. Most schemas have no rules, and making these takes longer than
    /// all else.
    environments: OnceCell<[Environment; 2]>,
    pub(super) costs: Costs,
}

impl<'a, 'b> Walk<'a, 'b> {
    pub(super) fn new(checking: &'a mut Checking<'b>, existing: &'a Existing) -> Self {
        Self { checking, existing, environments: OnceCell::new(), costs: Costs::default() }
    }

    pub(super) fn environments(&self) -> &[Environment; 2] {
        let minor = self.checking.minor;
        self.environments.get_or_init(|| [Mode::New, Mode::Stored].map(|mode| Environment::kubernetes(minor, mode)))
    }

    pub(super) fn into_costs(self) -> Costs {
        self.costs
    }

    /// The errors in the schema of a version.
    pub(super) fn root(&mut self, schema: &Json, field: &str, is_structural: bool) -> Vec<Error> {
        let context = Context {
            is_root: true,
            in_metadata: false,
            no_defaults: None,
            uncorrelatable: None,
            compiles: is_structural,
            cardinality: Some(1),
        };
        let typed = with_metadata(schema, true, self.checking.minor);
        let Found { mut schema, rules } = self.schema(schema, &typed, field, &context);
        schema.extend(rules);
        schema
    }

    /// Checks a schema. `typed` is the same with metadata where objects have it.
    fn schema(&mut self, schema: &Json, typed: &Json, field: &str, context: &Context) -> Found {
        let mut found = Found::default();
        standard(self.checking.minor, schema, field, context, self.existing.types, &mut found.schema);
        if flag(schema, "uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            found.schema.push(Error::forbidden(format!("{field}.uniqueItems"), detail));
        }
        self.children(schema, typed, field, context, &mut found);
        if part(schema, "x-kubernetes-preserve-unknown-fields") == Some(&Json::Bool(false)) {
            let at = format!("{field}.x-kubernetes-preserve-unknown-fields");
            found.schema.push(Error::invalid_value(
                self.checking.minor,
                at,
                &Json::Bool(false),
                "must be true or undefined",
            ));
        }
        let minor = self.checking.minor;
        kinds_of_collections(minor, schema, field, self.existing.atomic_sets, &mut found.schema);
        keys(minor, schema, field, &mut found.schema);
        if self.existing.keys {
            set_and_map(schema, field, &mut found.schema);
        }
        let rules = list(schema, "x-kubernetes-validations");
        if !rules.is_empty() {
            self.rules(schema, field, &mut found);
            if found.schema.is_empty() && context.compiles {
                self.compile(schema, typed, field, context, &mut found);
            }
        }
        found
    }

    fn children(&mut self, schema: &Json, typed: &Json, field: &str, context: &Context, found: &mut Found) {
        let inner = |key: &str| part(schema, key).filter(|of| of.is_object());
        let typed_inner = |key: &str| typed.get(key).unwrap_or(&Json::Null);
        let properties = part(schema, "properties").and_then(Json::as_object).filter(|of| !of.is_empty());
        let below = context.below(schema);
        // Rules of alternatives are not compiled.
        let alternative = Context { compiles: false, is_root: false, ..context.clone() };
        if let Some(values) = part(schema, "additionalProperties") {
            if properties.is_some() && *values != Json::Bool(true) {
                let detail = "additionalProperties and properties are mutual exclusive";
                found.schema.push(Error::forbidden(format!("{field}.additionalProperties"), detail));
            }
            if values.is_object() {
                let mut below = below.clone();
                if context.in_metadata {
                    below.no_defaults = Some("inside additionalProperties applying to object metadata".to_owned());
                }
                let at = format!("{field}.additionalProperties");
                found.add(self.schema(values, typed_inner("additionalProperties"), &at, &below));
            }
        }
        for (name, property) in properties.into_iter().flatten() {
            let mut below = below.clone();
            if !matches!(
                part(schema, "x-kubernetes-map-type").and_then(Json::as_str),
                None | Some("granular" | "atomic")
            ) {
                below.forbid_old(field);
            }
            if (context.is_root || flag(schema, "x-kubernetes-embedded-resource")) && METADATA.contains(&name.as_str())
            {
                below.in_metadata = true;
                if context.is_root {
                    below.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            let typed = typed_inner("properties").get(name).unwrap_or(property);
            found.add(self.schema(property, typed, &format!("{field}.properties[{name}]"), &below));
        }
        if let Some(not) = inner("not") {
            found.add(self.schema(not, not, &format!("{field}.not"), &alternative));
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            for (index, of) in list(schema, key).iter().enumerate() {
                found.add(self.schema(of, of, &format!("{field}.{key}[{index}]"), &alternative));
            }
        }
        for (name, of) in inner("definitions").and_then(Json::as_object).into_iter().flatten() {
            found.add(self.schema(of, of, &format!("{field}.definitions[{name}]"), &alternative));
        }
        let mut below = below;
        if text(schema, "x-kubernetes-list-type") != "map" {
            below.forbid_old(field);
        }
        if let Some(items) = inner("items") {
            found.add(self.schema(items, typed_inner("items"), &format!("{field}.items"), &below));
        }
        for (index, items) in list(schema, "items").iter().enumerate() {
            found.add(self.schema(items, items, &format!("{field}.items[{index}]"), &below));
        }
        for (name, of) in inner("dependencies").and_then(Json::as_object).into_iter().flatten() {
            if of.is_object() {
                found.add(self.schema(of, of, &format!("{field}.dependencies[{name}]"), &alternative));
            }
        }
    }
}

impl Context {
    fn below(&self, schema: &Json) -> Self {
        let most =
            |key: &str| part(schema, key).and_then(Json::as_i64).map(|most| u64::try_from(most).unwrap_or_default());
        let factor = match text(schema, "type") {
            "object" if part(schema, "additionalProperties").is_some() => most("maxProperties"),
            "array" => most("maxItems"),
            _ => Some(1),
        };
        let cardinality = self.cardinality.zip(factor).map(|(count, factor)| count.saturating_mul(factor));
        Self { is_root: false, cardinality, ..self.clone() }
    }

    fn forbid_old(&mut self, field: &str) {
        self.uncorrelatable.get_or_insert_with(|| field.to_owned());
    }
}

/// Checks the requirements for all schemas (`specStandardValidatorV3`).
fn standard(minor: Minor, schema: &Json, field: &str, context: &Context, types: bool, errors: &mut Vec<Error>) {
    let of = text(schema, "type");
    if types && has_unknown_type(schema) {
        errors.push(Error::not_supported(minor, format!("{field}.type"), of, &TYPES));
    }
    if let (Some(_), Some(reason)) = (part(schema, "default"), &context.no_defaults) {
        errors.push(Error::forbidden(format!("{field}.default"), &format!("must not be set {reason}")));
    }
    let mut unsupported = |key: &str, is_set: bool| {
        if is_set {
            errors.push(Error::forbidden(format!("{field}.{key}"), &format!("{key} is not supported")));
        }
    };
    let filled = |key: &str| part(schema, key).and_then(Json::as_object).is_some_and(|of| !of.is_empty());
    unsupported("id", !text(schema, "id").is_empty());
    unsupported("additionalItems", part(schema, "additionalItems").is_some());
    unsupported("patternProperties", filled("patternProperties"));
    unsupported("definitions", filled("definitions"));
    unsupported("dependencies", part(schema, "dependencies").is_some());
    unsupported("$ref", part(schema, "$ref").is_some());
    if of == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(Error::forbidden(format!("{field}.type"), detail));
    }
    if !list(schema, "items").is_empty() {
        errors.push(Error::forbidden(format!("{field}.items"), "items must be a schema object and not an array"));
    }
    if context.in_metadata && flag(schema, "x-kubernetes-embedded-resource") {
        let at = format!("{field}.x-kubernetes-embedded-resource");
        errors.push(Error::forbidden(at, "must not be used inside of resource meta"));
    }
}

/// `x-kubernetes-map-type` and `x-kubernetes-list-type`.
fn kinds_of_collections(minor: Minor, schema: &Json, field: &str, atomic_sets: bool, errors: &mut Vec<Error>) {
    let of = text(schema, "type");
    let map_type = part(schema, "x-kubernetes-map-type").and_then(Json::as_str);
    let list_type = part(schema, "x-kubernetes-list-type").and_then(Json::as_str);
    let mut must_be = |expected: &str, because: &str| {
        let detail = format!("must be {expected} if {because} is specified");
        errors.push(if of.is_empty() {
            Error::required(format!("{field}.type"), &detail)
        } else {
            Error::invalid(format!("{field}.type"), of, &detail)
        });
    };
    if map_type.is_some() && of != "object" {
        must_be("object", "x-kubernetes-map-type");
    }
    let is_list = of == "array";
    if list_type.is_some() && !is_list {
        must_be("array", "x-kubernetes-list-type");
    }
    if let Some(other) = map_type.filter(|one| !["atomic", "granular"].contains(one)) {
        let at = format!("{field}.x-kubernetes-map-type");
        errors.push(Error::not_supported(minor, at, other, &["atomic", "granular"]));
    }
    if let (true, true, Some((key, items))) = (atomic_sets, is_list, open_set(schema)) {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        // The API server shows the type of a list of either.
        let value = part(items, "x-kubernetes-list-type").unwrap_or(&Json::Null);
        errors.push(Error::invalid_shown(format!("{field}.items.{key}"), &shown(minor, value), detail));
    }
    if let Some(other) = list_type.filter(|one| !["atomic", "set", "map"].contains(one)) {
        let at = format!("{field}.x-kubernetes-list-type");
        errors.push(Error::not_supported(minor, at, other, &["atomic", "set", "map"]));
    }
}

/// Whether the type of a schema is none of those that there are.
pub(super) fn has_unknown_type(schema: &Json) -> bool {
    let of = text(schema, "type");
    !of.is_empty() && !TYPES.contains(&of)
}

/// The elements of a set whose parts can change one by one, and the field that says so.
fn open_set(schema: &Json) -> Option<(&'static str, &Json)> {
    let items = part(schema, "items").filter(|of| of.is_object() && text(schema, "x-kubernetes-list-type") == "set")?;
    let (key, open) = match text(items, "type") {
        "array" => {
            let key = "x-kubernetes-list-type";
            (key, part(items, key).is_some_and(|of| of != "atomic"))
        }
        "object" => {
            let key = "x-kubernetes-map-type";
            (key, part(items, key).is_none_or(|of| of != "atomic"))
        }
        _ => return None,
    };
    open.then_some((key, items))
}

/// Whether a schema has such a set.
pub(super) fn has_open_set(schema: &Json) -> bool {
    open_set(schema).is_some()
}

/// Whether the keys of a schema's list can be missing.
pub(super) fn has_wrong_keys(schema: &Json) -> bool {
    let mut errors = Vec::new();
    set_and_map(schema, "", &mut errors);
    !errors.is_empty()
}

/// The keys of associative lists.
fn keys(minor: Minor, schema: &Json, field: &str, errors: &mut Vec<Error>) {
    let list_type = part(schema, "x-kubernetes-list-type").and_then(Json::as_str);
    let keys: Vec<&str> =
        list(schema, "x-kubernetes-list-map-keys").iter().map(|key| key.as_str().unwrap_or_default()).collect();
    let items = part(schema, "items");
    if !keys.is_empty() && list_type != Some("map") {
        let (at, detail) =
            (format!("{field}.x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty");
        errors.push(list_type.map_or_else(|| Error::required(&at, detail), |of| Error::invalid(&at, of, detail)));
    }
    if list_type == Some("map") {
        if keys.is_empty() {
            let at = format!("{field}.x-kubernetes-list-map-keys");
            errors.push(Error::required(at, "must not be empty if x-kubernetes-list-type is map"));
        }
        match items {
            None => {
                let detail = "must have a schema if x-kubernetes-list-type is map";
                errors.push(Error::required(format!("{field}.items"), detail));
            }
            Some(items) if items.is_object() && text(items, "type") == "object" => {
                names_of_keys(minor, schema, items, &keys, field, errors);
            }
            Some(items) if items.is_object() => {
                let detail = "must be object if parent array's x-kubernetes-list-type is map";
                errors.push(Error::invalid(format!("{field}.items.type"), text(items, "type"), detail));
            }
            Some(_) => {}
        }
    }
}

/// Checks the requirements for sets and associative lists (`validateMapListKeysMapSet`).
fn set_and_map(schema: &Json, field: &str, errors: &mut Vec<Error>) {
    let keys = list(schema, "x-kubernetes-list-map-keys").iter().map(|key| key.as_str().unwrap_or_default());
    let list_type = part(schema, "x-kubernetes-list-type").and_then(Json::as_str);
    let items = part(schema, "items");
    let (Some(items), Some(of @ ("set" | "map"))) = (items.filter(|of| of.is_object()), list_type) else { return };
    if flag(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {of}");
        errors.push(Error::forbidden(format!("{field}.items.nullable"), &detail));
    }
    if of == "map" {
        let required: BTreeSet<&str> = list(items, "required").iter().filter_map(Json::as_str).collect();
        for key in keys {
            let Some(property) = part(items, "properties").and_then(|of| of.get(key)) else { continue };
            let at = |name: &str| format!("{field}.items.properties[{key}].{name}");
            let because = "this property is in x-kubernetes-list-map-keys, so it";
            if !required.contains(key) && part(property, "default").is_none() {
                let detail = format!("{because} must have a default or be a required property");
                errors.push(Error::required(at("default"), &detail));
            }
            if flag(property, "nullable") {
                errors.push(Error::forbidden(at("nullable"), &format!("{because} cannot be nullable")));
            }
        }
    }
}

fn names_of_keys(minor: Minor, schema: &Json, items: &Json, keys: &[&str], field: &str, errors: &mut Vec<Error>) {
    let none = Map::new();
    let properties = part(items, "properties").and_then(Json::as_object).unwrap_or(&none);
    let shown = shown(minor, schema.get("x-kubernetes-list-map-keys").unwrap_or(&Json::Null));
    let at = format!("{field}.x-kubernetes-list-map-keys");
    let mut seen = BTreeSet::new();
    for key in keys {
        match properties.get(*key).map(|of| text(of, "type")) {
            Some("array" | "object") => {
                let at = format!("{field}.items.properties[{key}].type");
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(Error::invalid(at, text(items, "type"), detail));
            }
            Some(_) => {}
            None => errors.push(Error::invalid_shown(&at, &shown, "entries must all be names of item properties")),
        }
        if !seen.insert(*key) {
            errors.push(Error::invalid_shown(&at, &shown, "must not contain duplicate entries"));
        }
    }
}
