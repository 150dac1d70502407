//! Kinds of CustomResourceDefinitions (`k8s.io/apiextensions-apiserver`): pruned and completed by their schemas.

mod correlation;
mod embedded;
mod inspect;
mod judge;
mod prune;
mod rules;
mod scaled;
mod schema;
mod validate;
mod warnings;

use std::{collections::BTreeMap, ops::Deref, sync::OnceLock};

use palisade_cel::Minor;
use serde_json::{Map, Value};

use crate::validation::{Checking, ErrorType, FieldError, meta, names, shown};
use validate::{Reading, Validator, duplicates};

pub use inspect::InspectedRule;
use rules::Rules;

use super::{
    Refused, Resource, Submission, Subresource, Unserved, cannot_be_handled, conclude,
    decode::Decoder,
    encode,
    resource::{Source, api_version},
    table::Table,
};

/// A CustomResourceDefinition.
#[derive(Debug)]
pub(super) struct Custom {
    /// The name of the definition.
    name: String,
    pub group: String,
    pub plural: String,
    /// By version; where there is none, nothing is pruned.
    schemas: BTreeMap<String, Value>,
    /// `subresources.scale`, by version.
    scales: BTreeMap<String, Value>,
    /// By version, compiled when they are first asked for.
    rules: BTreeMap<String, OnceLock<Rules>>,
    /// `spec.preserveUnknownFields`, of old definitions only.
    preserves: bool,
    /// The versions with a schema, each with its index in the definition.
    versions: Vec<(usize, String)>,
    /// Whether rules remember what their parts came to.
    watches: bool,
}

impl Custom {
    /// Also the resources, one for each version that is served.
    pub(super) fn new(crd: &Value, watches: bool) -> Result<(Self, Vec<Resource>), Unserved> {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let lacks = |field: &str| Unserved { name: name.clone(), problem: format!("{field}: Required value") };
        let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let group = text("/spec/group").ok_or_else(|| lacks("spec.group"))?;
        let plural = text("/spec/names/plural").ok_or_else(|| lacks("spec.names.plural"))?;
        let kind = text("/spec/names/kind").ok_or_else(|| lacks("spec.names.kind"))?;
        let scope = text("/spec/scope").ok_or_else(|| lacks("spec.scope"))?;
        let versions = crd.pointer("/spec/versions").and_then(Value::as_array).ok_or_else(|| lacks("spec.versions"))?;
        let mut resources = Vec::new();
        let (mut schemas, mut scales, mut indexed) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for (i, version) in versions.iter().enumerate() {
            let name = version["name"].as_str().ok_or_else(|| lacks(&format!("spec.versions[{i}].name")))?;
            if version["served"] != true {
                continue;
            }
            if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
                schemas.insert(name.to_owned(), schema.clone());
                indexed.push((i, name.to_owned()));
            }
            if let Some(scale) = version.pointer("/subresources/scale") {
                scales.insert(name.to_owned(), scale.clone());
            }
            resources.push(Resource {
                group: group.to_owned(),
                version: name.to_owned(),
                kind: kind.to_owned(),
                plural: plural.to_owned(),
                namespaced: scope == "Namespaced",
                verbs: verbs(&["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]),
                by_default: true,
                deprecated: warnings::deprecation(group, kind, version, versions),
                subresources: subresources(group, name, kind, version),
                source: Source::Custom,
            });
        }
        let custom = Self {
            name: name.clone(),
            group: group.to_owned(),
            plural: plural.to_owned(),
            rules: schemas.keys().map(|version| (version.clone(), OnceLock::new())).collect(),
            schemas,
            scales,
            preserves: crd.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true)),
            versions: indexed,
            watches,
        };
        Ok((custom, resources))
    }

    pub(super) fn schema(&self, version: &str) -> Option<&Value> {
        self.schemas.get(version)
    }

    /// `subresources.scale` of a version.
    pub(super) fn scale(&self, version: &str) -> Option<&Value> {
        self.scales.get(version)
    }

    /// Prunes what the schema does not have, and sets its defaults.
    pub(super) fn decode(
        &self,
        table: &Table,
        resource: &Resource,
        value: &Value,
    ) -> Result<(Map<String, Value>, Vec<String>), Refused> {
        let mut object = value.as_object().cloned().ok_or_else(|| {
            Refused::Decode(cannot_be_handled(&resource.kind, &resource.version, "unstructured object has no kind"))
        })?;
        object.values_mut().for_each(prune::widen);
        let mut decoder = Decoder::new(table);
        let metadata = decoder
            .metadata(object.get("metadata").unwrap_or(&Value::Null))
            .map_err(|error| Refused::Decode(cannot_be_handled(&resource.kind, &resource.version, &error)))?;
        let mut unknown = decoder.unknown;
        if let Some(schema) = self.schema(&resource.version) {
            if !self.preserves {
                unknown.extend(prune::prune(&mut object, schema));
                prune::drop_nulls(&mut object, schema);
            }
            let mut inner = Vec::new();
            embedded::coerce_object(table, &mut object, schema, "", &mut inner).map_err(|error| {
                let error = format!("{}: {}", error.field, error.body);
                Refused::Decode(cannot_be_handled(&resource.kind, &resource.version, &error))
            })?;
            inner.sort();
            unknown.extend(inner);
            prune::fill(&mut object, schema);
            // The metadata in defaults, which are valid (`PruneDefaults`).
            let _ = embedded::coerce_object(table, &mut object, schema, "", &mut Vec::new());
        }
        let mut metadata = encode::encode(table, "meta/v1.ObjectMeta", &metadata);
        metadata.retain(|_, value| !value.is_null());
        object.insert("metadata".to_owned(), Value::Object(metadata));
        // `schemaCoercingDecoder` does not escape the path.
        let warnings = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
        Ok((object, warnings))
    }

    fn rules(&self, version: &str, minor: Minor) -> Option<&Rules> {
        Some(self.rules.get(version)?.get_or_init(|| Rules::new(&self.schemas[version], minor, self.watches)))
    }

    /// The warnings of the rules, which are errors in parts that an update did not change, and of the strategy.
    pub(super) fn warnings(&self, minor: Minor, sent: Submission<'_>, object: &Value) -> Vec<String> {
        let old = sent.old.map(Deref::deref);
        let rules = self.rules(&sent.resource.version, minor).filter(|_| old.is_some());
        let mut warnings = rules.map(|rules| rules.judge(object, old, true).warnings).unwrap_or_default();
        if sent.subresource.is_empty() {
            warnings.extend(warnings::finalizers(minor, object, old));
        }
        warnings
    }

    /// Checks an object against the schema and its rules.
    pub(super) fn validate(&self, minor: Minor, sent: Submission<'_>, object: &Value) -> Result<(), Refused> {
        self.validate_against(minor, sent, sent.old.map(Deref::deref), object)
    }

    /// [`Self::validate`] of an object that takes the place of an old one.
    pub(super) fn validate_against(
        &self,
        minor: Minor,
        sent: Submission<'_>,
        old: Option<&Value>,
        object: &Value,
    ) -> Result<(), Refused> {
        let r = sent.resource;
        let mut checking = Checking { minor, old, errors: Vec::new(), unknown: None };
        type_meta(&mut checking, sent, object);
        let schema = self.schema(&r.version);
        let is_status = sent.subresource == "status" && old.is_some();
        if checking.errors.is_empty() {
            match old {
                None => meta::check(&mut checking, object, names::subdomain),
                Some(old) => {
                    // A name that is there already only has to be a part of a path.
                    meta::check(&mut checking, object, names::path_segment);
                    meta::update(&mut checking, old, object);
                }
            }
            self.by_schema(&mut checking, &r.version, object, is_status);
        }
        if let Some(schema) = schema {
            if !is_status {
                embedded::validate(minor, schema, object, "", &mut checking.errors);
            }
            let mut before = Vec::new();
            if let Some(old) = old {
                duplicates(minor, schema, old, "", &mut before);
            }
            if before.is_empty() {
                duplicates(minor, schema, object, "", &mut checking.errors);
            }
        }
        if let Some(rules) = self.rules(&r.version, minor) {
            if rules.are_there() && checking.errors.iter().any(is_blocking) {
                let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                              errors to complete validation";
                checking.errors.push(FieldError::invalid_shown("<nil>", &shown(minor, &Value::Null), detail));
            } else {
                checking.errors.extend(rules.judge(object, old, !is_status || minor >= Minor::V1_33).errors);
            }
            checking.unknown.clone_from(&rules.unknown);
        }
        conclude(&r.group, &r.kind, object, checking)
    }

    /// The errors by the schema and of the fields of `scale`: of an object, or of its status alone.
    fn by_schema(&self, checking: &mut Checking<'_>, version: &str, object: &Value, is_status: bool) {
        let (minor, old) = (checking.minor, checking.old);
        let validator = Validator { minor, reading: Reading::Objects };
        if let Some(schema) = self.schema(version) {
            if !is_status {
                checking.errors.extend(validator.errors(schema, object, old, None));
            } else if let (Some(schema), Some(status)) = (schema::property(schema, "status"), object.get("status")) {
                // Of an old one that is not there nothing is unchanged. Before 1.33, updates of a status did not ratchet.
                let old = old.filter(|_| minor >= Minor::V1_33).map(|old| old.get("status").unwrap_or(&Value::Null));
                checking.errors.extend(validator.errors(schema, status, old, Some("status")));
            }
        }
        if let Some(scale) = self.scale(version) {
            if !is_status {
                checking.errors.extend(scaled::spec(minor, scale, object));
            }
            checking.errors.extend(scaled::status(minor, scale, object));
        }
    }
}

/// Whether an object has the type of its resource.
fn type_meta(checking: &mut Checking<'_>, sent: Submission<'_>, object: &Value) {
    let r = sent.resource;
    for (field, given, wanted) in [
        ("kind", &object["kind"], r.kind.clone()),
        ("apiVersion", &object["apiVersion"], api_version(&r.group, &r.version)),
    ] {
        let given = given.as_str().unwrap_or_default();
        if given != wanted {
            checking.errors.push(FieldError::invalid(field, given, &format!("must be {wanted}")));
        }
    }
}

/// The error in a default.
#[derive(Debug)]
pub(crate) struct JudgedDefault {
    pub(crate) has_unknown_fields: bool,
    /// With paths below the default.
    pub(crate) errors: Vec<FieldError>,
}

/// Evaluates a default by the schema that has it.
pub(crate) fn judge_default(minor: Minor, schema: &Value, default: &Value) -> JudgedDefault {
    let has_unknown_fields = prune::changes(default, schema);
    let errors = default_errors(minor, schema, default);
    JudgedDefault { has_unknown_fields, errors }
}

/// Each kind of errors only if there are none of those before.
fn default_errors(minor: Minor, schema: &Value, default: &Value) -> Vec<FieldError> {
    let mut default = default.clone();
    if let Err(error) = embedded::coerce(&Table::of(minor), &mut default, schema, "", &mut Vec::new()) {
        return vec![error];
    }
    let mut errors = Vec::new();
    embedded::validate(minor, schema, &default, "", &mut errors);
    if errors.is_empty() {
        errors = Validator { minor, reading: Reading::Defaults }.errors(schema, &default, None, None);
        // As the API server joins them.
        for error in errors.iter_mut().filter(|error| error.field.starts_with('[')) {
            error.field.insert(0, '.');
        }
    }
    if errors.is_empty() {
        let rules = Rules::of_part(schema, minor);
        errors = rules.judge(&default, Some(&default), true).errors;
        if errors.is_empty() {
            errors = rules.judge(&default, None, true).errors;
        }
    }
    errors
}

/// Whether rules are not evaluated because of an error, on which they might fail (`hasBlockingErr`).
fn is_blocking(error: &FieldError) -> bool {
    matches!(
        error.error_type,
        ErrorType::NotSupported
            | ErrorType::Required
            | ErrorType::TooLong
            | ErrorType::TooMany
            | ErrorType::TypeInvalid
    )
}

fn verbs(verbs: &[&str]) -> Vec<String> {
    verbs.iter().map(|verb| (*verb).to_owned()).collect()
}

fn subresources(group: &str, name: &str, kind: &str, version: &Value) -> Vec<Subresource> {
    let mut out = Vec::new();
    if version.pointer("/subresources/status").is_some_and(|status| !status.is_null()) {
        out.push(Subresource {
            name: "status".to_owned(),
            group: group.to_owned(),
            version: name.to_owned(),
            kind: kind.to_owned(),
            verbs: verbs(&["get", "patch", "update"]),
            source: Source::Custom,
        });
    }
    if version.pointer("/subresources/scale").is_some_and(|scale| !scale.is_null()) {
        out.push(Subresource {
            name: "scale".to_owned(),
            group: "autoscaling".to_owned(),
            version: "v1".to_owned(),
            kind: "Scale".to_owned(),
            verbs: verbs(&["get", "patch", "update"]),
            source: Source::Struct("autoscaling/v1.Scale".to_owned()),
        });
    }
    out
}
