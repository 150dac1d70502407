//! The object that admission sees when a client sends one.
//!
//! ```text
//! client's JSON --decode--> mutating admission --prepare--> validating admission
//! ```
//!
//! [`Kinds::decode`] does what the API server does before mutating admission: decode into Go types (which drops unknown
//! fields), set defaults, and convert there and back; for kinds of CustomResourceDefinitions prune and set defaults by
//! the schema. [`Kinds::prepare`] and [`Kinds::validate`] do what it does between mutating and validating admission:
//! the strategy of the resource (status, generation, generated name), and the validation of the object as far as the
//! list below says; [`Kinds::warnings`] has the warnings of the strategy. [`finish`] does these three, and [`receive`]
//! all of it, as if no admission plugin, policy or webhook changed the object between them.
//!
//! That is the way of a submitted object. A stored object takes another one, [`Kinds::stored`], which strips nothing.
//! An update needs both.
//!
//! # Invented values
//!
//! The API server chooses some values anew for each object. Here they are fixed: see [`INVENTED_UID`],
//! [`INVENTED_SUFFIX`] and [`RequestContext::now`]. `metadata.managedFields` is what the client sent, without what the
//! server would add.
//!
//! # What is exact
//!
//! For Kubernetes 1.32 to 1.37 decoding, defaults, conversion and strategies (of creation) of the built-in kinds are
//! compared with the API server's own code, with random objects of every kind (`tests/oracle`, `tests/objects.rs`), and
//! so are pruning, defaults, validation and warnings of custom resources, of 1.35 and 1.36 with random schemas
//! (`tests/customs.rs`). Feature gates are as the minor has them by default. Not
//! compared are admission plugins, and what the allocators of services would choose. Tests compare updates, and their
//! subresources, with API servers (`tests/apiserver`, `stored`).
//!
//! # What is validated
//!
//! - Metadata of every kind: names, generated names, labels, annotations, owners, finalizers.
//! - All of the kinds that [`validated`] lists, from pods, what runs pods, and services to roles; but for what
//!   [`NOT_VALIDATED`] lists. `tests/mutants.rs` compares each rule with the API server's own code.
//! - Custom resources by their schema, with its formats, and its rules (`x-kubernetes-validations`), also of updates, in
//!   which unchanged parts are not evaluated; objects inside of them (`x-kubernetes-embedded-resource`) with their metadata.
//!
//! Everything else is assumed to be valid: if the API server rejects an object for another reason, the policies
//! evaluate it here. Objects of the aggregator (`APIService`) have no verdict.
//!
//! Of an update only what changed is validated, by the rules for new objects and by those for what may change: of pods
//! with `ephemeralcontainers` and `resize`, of what runs pods, claims, volumes, services, nodes, what holds data, roles
//! and their bindings, classes, and custom resources; with `status` and `scale` where a kind has them. Where these
//! rules are unknown, an update of more than metadata has no verdict.

mod complete;
mod convert;
mod custom;
mod decode;
mod defaults;
mod drop;
mod encode;
mod equal;
mod gates;
mod kinds;
mod own;
mod pods;
mod prepare;
mod resource;
mod scale;
mod service;
mod stored;
mod strategy;
mod table;
mod update;
mod validate;
mod warnings;

use std::collections::BTreeSet;

use palisade_cel::Minor;
use serde_json::{Map, Value};
use thiserror::Error;

pub use crate::validation::NOT_SHOWN;
use crate::validation::{Checking, FieldError, aggregate, quote};

pub use custom::InspectedRule;
pub(crate) use custom::judge_default;
pub(crate) use gates::Gate;
pub use kinds::Kinds;
pub use prepare::{INVENTED_SUFFIX, INVENTED_UID, RequestContext};
use resource::Source;
pub use resource::{Resource, Subresource, Unserved};
pub use stored::Stored;
pub use validate::{NOT_VALIDATED, is_validated, validated};

/// An object as admission sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionObject {
    /// The object.
    pub object: Value,
    /// The warnings that the client gets: `unknown field "spec.x"`, and what the strategy of the resource warns of.
    pub warnings: Vec<String>,
}

/// Why no policy is asked about an object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// It cannot be decoded; the text is the server's.
    #[error("{0}")]
    Decode(String),
    /// Its validation finds it wrong.
    #[error("{what} is invalid: {}", aggregate(.causes))]
    Validation {
        /// The kind with its group and the name: `Deployment.apps "web"`.
        what: String,
        /// The message.
        causes: Vec<FieldError>,
    },
    /// An admission plugin that is no policy denies it; the text is the server's.
    #[error("{0}")]
    Forbidden(String),
    /// Another object that the object requires does not exist; the text is the server's.
    #[error("{0}")]
    NotFound(String),
    /// The client knows another version of the object; the text is the server's.
    #[error("{0}")]
    Conflict(String),
    /// The API server fails to handle it, with an internal error; the text is the server's.
    #[error("{0}")]
    Failed(String),
    /// It cannot be told here what the API server would make of it, and why.
    #[error("{0}")]
    NoVerdict(String),
}

/// A request: the object, and the resource that it is sent to.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// The resource.
    pub resource: &'a Resource,
    /// The subresource, or empty.
    pub subresource: &'a str,
    /// The namespace of the request; empty if it has none.
    pub namespace: &'a str,
    /// The object, as a client submits it.
    pub object: &'a Value,
    /// The object as it is stored, if this is an update.
    pub old: Option<&'a Stored>,
}

/// The object that validating admission sees when a client sends one, if no admission plugin, policy or webhook changes
/// it.
///
/// # Errors
/// The API server rejects it before any policy evaluates it, or its answer is unknown.
pub fn receive(kinds: &Kinds, sent: Submission<'_>, around: &RequestContext<'_>) -> Result<AdmissionObject, Refused> {
    let received = kinds.decode(sent)?;
    let mut warnings = received.warnings;
    let object = finish(kinds, Submission { object: &received.object, ..sent }, around, &mut warnings)?;
    Ok(AdmissionObject { object, warnings })
}

/// The object that validating admission sees after mutating admission: prepared and valid. Adds the client's warnings.
///
/// # Errors
/// The API server rejects it.
pub fn finish(
    kinds: &Kinds,
    sent: Submission<'_>,
    around: &RequestContext<'_>,
    warnings: &mut Vec<String>,
) -> Result<Value, Refused> {
    let object = kinds.prepare(sent, around)?;
    if let Err(refused) = kinds.validate(sent, &object) {
        warnings.extend(kinds.preparation_warnings(sent));
        return Err(refused);
    }
    warnings.extend(kinds.warnings(sent, &object));
    Ok(object)
}

/// Rejects the object if there is an error.
fn conclude(group: &str, kind: &str, object: &Value, mut checking: Checking<'_>) -> Result<(), Refused> {
    if checking.minor >= Minor::V1_37 {
        // Since then declarative validation finds the same as the code before it, and each mistake is reported once.
        let mut seen = BTreeSet::new();
        checking.errors.retain(|error| seen.insert((error.field.clone(), error.body.clone())));
    }
    if !checking.errors.is_empty() {
        let of = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        return Err(Refused::Validation { what: format!("{of} {}", quote(name)), causes: checking.errors });
    }
    checking.unknown.map_or(Ok(()), |why| Err(Refused::NoVerdict(why)))
}

/// The paths of the fields of an object of a built-in kind that its type does not have: the API server drops these with
/// a warning, or rejects the object if the client asks for strict decoding, as kubectl does.
pub fn unknown_fields(minor: Minor, api_version: &str, kind: &str, object: &Value) -> Vec<String> {
    let table = table::Table::of(minor);
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let is_it = |r: &&table::BuiltinResource| r.group == group && r.version == version && r.kind == kind;
    let Some(resource) = table.resources.iter().find(is_it) else { return Vec::new() };
    let mut decoder = decode::Decoder::new(&table);
    let _ = decoder.object(&resource.go_type, object);
    decoder.unknown
}

/// Why an object of a built-in kind cannot be decoded, if it cannot: the path of the value, and the server's text.
pub(crate) fn undecodable(minor: Minor, api_version: &str, kind: &str, object: &Value) -> Option<(String, String)> {
    let table = table::Table::of(minor);
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let is_it = |r: &&table::BuiltinResource| r.group == group && r.version == version && r.kind == kind;
    let resource = table.resources.iter().find(is_it).filter(|resource| !resource.go_type.is_empty())?;
    let mut decoder = decode::Decoder::new(&table);
    let error = decoder.object(&resource.go_type, object).err()?;
    Some((decoder.at, cannot_be_handled(kind, version, &error)))
}

/// The reason why a schema of a CRD cannot be decoded. In fields that also allow another form (`items`,
/// `additionalProperties` and the like), Go decodes the schema separately, and so do the callers of this function.
pub(crate) fn undecodable_schema(minor: Minor, schema: &Value) -> Option<String> {
    decode::Decoder::new(&table::Table::of(minor)).object("apiextensions/v1.JSONSchemaProps", schema).err()
}

/// The text of `transformDecodeError` in `k8s.io/apiserver/pkg/endpoints/handlers`.
pub(crate) fn cannot_be_handled(kind: &str, version: &str, error: &str) -> String {
    format!("{kind} in version {} cannot be handled as a {kind}: {error}", quote(version))
}

impl Kinds {
    fn source<'r>(&self, sent: Submission<'r>) -> Result<(&'r Source, String, &'r str), Refused> {
        let r = sent.resource;
        if sent.subresource.is_empty() {
            return Ok((&r.source, r.api_version(), &r.kind));
        }
        let found = r.subresource(sent.subresource).ok_or_else(|| {
            Refused::NoVerdict(format!("{}/{} is not served: there is no such subresource", r.plural, sent.subresource))
        })?;
        // `NewStorage` of `pkg/registry/core/rest/storage_core.go`.
        if sent.subresource == "resize" && !Gate::InPlacePodVerticalScaling.is_on(self.table.minor) {
            return Err(Refused::NotFound("the server could not find the requested resource".to_owned()));
        }
        Ok((&found.source, found.api_version(), &found.kind))
    }

    /// The object that mutating admission sees: decoded and with defaults. An object that a mutation changed takes the
    /// same way.
    ///
    /// # Errors
    /// The API server cannot decode it, or its answer is unknown.
    pub fn decode(&self, sent: Submission<'_>) -> Result<AdmissionObject, Refused> {
        self.decode_as(sent, sent.old.is_none())
    }

    /// A stored object as admission sees it: decoded, with nothing stripped.
    fn decode_stored(&self, sent: Submission<'_>) -> Result<Value, Refused> {
        self.decode_as(sent, false).map(|received| received.object)
    }

    fn decode_as(&self, sent: Submission<'_>, is_new: bool) -> Result<AdmissionObject, Refused> {
        let (source, api_version, kind) = self.source(sent)?;
        let (mut object, mut warnings) = match source {
            Source::Struct(name) => self.decode_builtin(name, &api_version, kind, sent)?,
            Source::Custom => {
                let custom = self.custom(sent.resource).ok_or_else(|| {
                    Refused::NoVerdict(format!("the CustomResourceDefinition of {kind} is missing: add it"))
                })?;
                custom.decode(&self.table, sent.resource, sent.object)?
            }
            Source::Unknown => {
                return Err(Refused::NoVerdict(format!(
                    "{kind} is served by the aggregator, whose types are not known"
                )));
            }
        };
        if sent.resource.namespaced
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
            && !metadata.contains_key("namespace")
            && !sent.namespace.is_empty()
        {
            metadata.insert("namespace".to_owned(), Value::from(sent.namespace));
        }
        if is_new && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            // `rest.WipeObjectMetaSystemFields`
            for key in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
                metadata.remove(key);
            }
            // Minors whose field says no `omitzero` show it.
            if self.minor < Minor::V1_34 && *source != Source::Custom {
                metadata.insert("creationTimestamp".to_owned(), Value::Null);
            }
        }
        if !sent.resource.deprecated.is_empty() {
            warnings.insert(0, sent.resource.deprecated.clone());
        }
        object.insert("apiVersion".to_owned(), Value::from(api_version));
        object.insert("kind".to_owned(), Value::from(kind));
        Ok(AdmissionObject { object: Value::Object(object), warnings })
    }

    fn decode_builtin(
        &self,
        name: &str,
        api_version: &str,
        kind: &str,
        sent: Submission<'_>,
    ) -> Result<(Map<String, Value>, Vec<String>), Refused> {
        let mut decoder = decode::Decoder::new(&self.table);
        let refused = |error: String| {
            let version = api_version.rsplit('/').next().unwrap_or(api_version);
            Refused::Decode(cannot_be_handled(kind, version, &error))
        };
        let mut object = decoder.object(name, sent.object).map_err(refused)?;
        convert::check(name, &object).map_err(refused)?;
        // sigs.k8s.io/json quotes the path; the decoder of custom resources does not escape it.
        let warnings = decoder.unknown.iter().map(|path| format!("unknown field {}", quote(path))).collect();
        defaults::fill(&self.table, self.minor, name, &mut object);
        convert::convert(&self.table, name, &mut object);
        Ok((encode::encode(&self.table, name, &object), warnings))
    }
}
