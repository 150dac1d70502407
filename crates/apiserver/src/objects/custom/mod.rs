//! Kinds of CustomResourceDefinitions (`k8s.io/apiextensions-apiserver`): pruned and completed by their schemas.

mod correlation;
mod inspect;
mod judge;
mod prune;
mod rules;
mod schema;
mod validate;

use std::{collections::BTreeMap, ops::Deref, sync::OnceLock};

use palisade_cel::Minor;
use serde_json::{Map, Value};

use crate::validation::{Checking, ErrorType, FieldError, meta, names, shown};

pub use inspect::InspectedRule;
use rules::Rules;

use super::{
    Refused, Resource, Sent, Subresource, Unserved, conclude,
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
                // Of these the definition says what is warned of.
                deprecated: String::new(),
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
            Refused::Decode(format!(
                "{} in version {:?} cannot be handled as a {}: unstructured object has no kind",
                resource.kind, resource.version, resource.kind
            ))
        })?;
        let mut decoder = Decoder::new(table);
        let metadata = decoder.metadata(object.get("metadata").unwrap_or(&Value::Null)).map_err(|error| {
            let (kind, version) = (&resource.kind, &resource.version);
            Refused::Decode(format!("{kind} in version {version:?} cannot be handled as a {kind}: {error}"))
        })?;
        let mut warnings = std::mem::take(&mut decoder.warnings);
        if let Some(schema) = self.schema(&resource.version) {
            if !self.preserves {
                warnings.extend(prune::prune(&mut object, schema));
                prune::drop_nulls(&mut object, schema);
            }
            prune::fill(&mut object, schema);
        }
        let mut metadata = encode::encode(table, "meta/v1.ObjectMeta", &metadata);
        metadata.retain(|_, value| !value.is_null());
        object.insert("metadata".to_owned(), Value::Object(metadata));
        Ok((object, warnings))
    }

    fn rules(&self, version: &str, minor: Minor) -> Option<&Rules> {
        Some(self.rules.get(version)?.get_or_init(|| Rules::new(&self.schemas[version], minor, self.watches)))
    }

    /// What rules warn of: mistakes in what an update left as it was.
    pub(super) fn warnings(&self, minor: Minor, sent: Sent<'_>, object: &Value) -> Vec<String> {
        let rules = self.rules(&sent.resource.version, minor).filter(|_| sent.old.is_some());
        rules.map(|rules| rules.judge(object, sent.old.map(Deref::deref)).warnings).unwrap_or_default()
    }

    /// What the schema and its rules find wrong.
    pub(super) fn validate(&self, minor: Minor, sent: Sent<'_>, object: &Value) -> Result<(), Refused> {
        self.validate_against(minor, sent, sent.old.map(Deref::deref), object)
    }

    /// [`Self::validate`] of an object that takes the place of an old one.
    pub(super) fn validate_against(
        &self,
        minor: Minor,
        sent: Sent<'_>,
        old: Option<&Value>,
        object: &Value,
    ) -> Result<(), Refused> {
        let r = sent.resource;
        let mut checking = Checking { minor, old, errors: Vec::new(), unknown: None };
        for (field, given, wanted) in [
            ("kind", &object["kind"], r.kind.clone()),
            ("apiVersion", &object["apiVersion"], api_version(&r.group, &r.version)),
        ] {
            let given = given.as_str().unwrap_or_default();
            if given != wanted {
                checking.errors.push(FieldError::invalid(field, given, &format!("must be {wanted}")));
            }
        }
        meta::check(&mut checking, object, names::subdomain);
        if let Some(old) = old {
            meta::update(&mut checking, old, object);
        }
        if let Some(schema) = self.schema(&r.version) {
            validate::validate(minor, schema, object, old, &mut checking.errors);
        }
        self.scaled(&mut checking, &r.version, object);
        if let Some(rules) = self.rules(&r.version, minor) {
            if rules.are_there() && checking.errors.iter().any(is_blocking) {
                let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                              errors to complete validation";
                checking.errors.push(FieldError::invalid_shown("<nil>", &shown(minor, &Value::Null), detail));
            } else {
                checking.errors.extend(rules.judge(object, old).errors);
            }
            checking.unknown.clone_from(&rules.unknown);
        }
        conclude(&r.group, &r.kind, object, checking)
    }
}

impl Custom {
    /// The numbers that the subresource `scale` shows (`ValidateScaleSpec` and `ValidateScaleStatus`).
    fn scaled(&self, checking: &mut Checking<'_>, version: &str, object: &Value) {
        let Some(scale) = self.scale(version) else { return };
        for key in ["specReplicasPath", "statusReplicasPath"] {
            let field = scale[key].as_str().unwrap_or_default();
            let mut path = field.trim_start_matches('.').split('.');
            let Some(number) = path.try_fold(object, |value, key| value.get(key)).and_then(Value::as_i64) else {
                continue;
            };
            let detail = match number {
                ..0 => "should be a non-negative integer",
                0..=2_147_483_647 => continue,
                _ => "should be less than or equal to 2147483647",
            };
            checking.errors.push(FieldError::invalid_value(field, &Value::from(number), detail));
        }
    }
}

/// What is wrong with a default.
#[derive(Debug)]
pub(crate) struct JudgedDefault {
    pub(crate) has_unknown_fields: bool,
    /// With paths below the default.
    pub(crate) errors: Vec<FieldError>,
}

/// Judges a default by the schema that has it.
pub(crate) fn judge_default(minor: Minor, schema: &Value, default: &Value) -> JudgedDefault {
    let has_unknown_fields = prune::changes(default, schema);
    let mut errors = Vec::new();
    validate::by_schema(minor, schema, default, &mut errors);
    // As the API server joins them.
    for error in errors.iter_mut().filter(|error| error.field.starts_with('[')) {
        error.field.insert(0, '.');
    }
    if errors.is_empty() {
        let rules = Rules::of_part(schema, minor);
        errors = rules.judge(default, Some(default)).errors;
        if errors.is_empty() {
            errors = rules.judge(default, None).errors;
        }
    }
    JudgedDefault { has_unknown_fields, errors }
}

/// Whether rules are not evaluated because of a mistake, on which they might fail (`hasBlockingErr`).
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
