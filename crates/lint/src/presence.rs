//! The fields that every object of a kind has when a validating policy sees it.
//!
//! Schemas do not tell: most fields are optional, and the API server then sets a default or rejects an object without
//! them. So this module takes an object with nothing but the path to a field, and decodes, defaults, prepares and
//! validates it as the API server does. A default may depend on another field (`strategy.rollingUpdate` on
//! `strategy.type`): it counts only if the field is also there with other values beside it and on the path to it.

use std::{cell::RefCell, collections::BTreeMap};

use palisade_admission::{
    create::ErrorType,
    objects::{Kinds, Refused, RequestContext, Resource, Submission},
    requests,
};
use palisade_cel::{
    Minor,
    schema::{Kind, Schemas, unescape},
};
use palisade_kube_json::json::Change as _;
use serde_json::{Map, Value as Json, json};

/// The kinds of which something can be known.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub schemas: &'a Schemas,
    pub kinds: &'a Kinds,
}

/// The results so far.
pub(crate) struct Presence {
    /// By kind, struct and field.
    known: RefCell<BTreeMap<(Kind, String, String), bool>>,
    /// An empty cluster: only its admission plugins matter.
    api_server: requests::Cluster,
}

impl Presence {
    /// Without any results yet.
    pub(crate) fn new(minor: Minor) -> Self {
        Self { known: RefCell::default(), api_server: requests::Cluster::new(minor) }
    }

    /// Whether each object of a kind has a field: of the struct that `Schemas::declare` named by its path the one that
    /// expressions call so. None if nothing is known of it.
    pub(crate) fn always(&self, of: Known<'_>, kind: &Kind, path: &str, field: &str) -> Option<bool> {
        let required = of.schemas.is_required(kind, path, field)?;
        // Every object has them, also of kinds that are not served here.
        let says = path == kind.kind && matches!(field, "apiVersion" | "kind" | "metadata");
        if required || says || is_selected(kind, path, field) {
            return Some(true);
        }
        let key = (kind.clone(), path.to_owned(), field.to_owned());
        if let Some(known) = self.known.borrow().get(&key) {
            return Some(*known);
        }
        let known = shown(of, &self.api_server, kind, path, field).unwrap_or(false);
        self.known.borrow_mut().insert(key, known);
        Some(known)
    }
}

/// Whether these are the labels of a template that a selector must match, which cannot be empty
/// (`pkg/apis/apps/validation`, `pkg/apis/core/validation`: "`selector` does not match template `labels`"), or to which
/// the API server adds a label (`pkg/registry/batch/job/strategy.go`, `generateSelector`).
fn is_selected(kind: &Kind, path: &str, field: &str) -> bool {
    let kinds = ["DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"];
    let within = path.strip_prefix(kind.kind.as_str());
    matches!(kind.group.as_str(), "" | "apps" | "batch")
        && kinds.contains(&&*kind.kind)
        && matches!((within, field), (Some(".spec.template.metadata"), "labels"))
}

/// Tries an object with nothing but the path to the field.
fn shown(of: Known<'_>, api_server: &requests::Cluster, kind: &Kind, path: &str, field: &str) -> Option<bool> {
    let group = if kind.group.is_empty() { String::new() } else { format!("{}/", kind.group) };
    let resource = of.kinds.by_kind(&format!("{group}{}", kind.version), &kind.kind)?;
    let steps: Vec<Step> = path.split('.').skip(1).map(Step::of).collect::<Option<_>>()?;
    let field = unescape(field)?.into_owned();
    let asking = Asking { of, api_server, resource, steps: &steps, field: &field };
    match asking.answer(None)? {
        Answer::Absent => Some(false),
        Answer::There => Some(asking.others(kind).all(|other| {
            // An object that cannot be decoded shows nothing.
            asking.answer(Some(&other)).is_none_or(|answer| !matches!(answer, Answer::Absent))
        })),
    }
}

/// A step from a struct to one in it.
enum Step {
    Field(String),
    Element,
    Entry,
}

impl Step {
    fn of(step: &str) -> Option<Self> {
        Some(match step {
            "@idx" => Self::Element,
            "@elem" => Self::Entry,
            step => Self::Field(unescape(step)?.into_owned()),
        })
    }
}

/// Whether the field is there, or the API server rejects the object because the field is missing.
enum Answer {
    There,
    Absent,
}

/// Another field, in the struct at this depth, and its value.
struct Other {
    steps: usize,
    field: String,
    value: Json,
}

struct Asking<'a> {
    of: Known<'a>,
    api_server: &'a requests::Cluster,
    resource: &'a Resource,
    steps: &'a [Step],
    field: &'a str,
}

impl Asking<'_> {
    fn answer(&self, other: Option<&Other>) -> Option<Answer> {
        let kinds = self.of.kinds;
        let namespace = if self.resource.namespaced { "default" } else { "" };
        let object = self.object(other);
        let sent = Submission { resource: self.resource, subresource: "", namespace, object: &object, old: None };
        let around = RequestContext::default();
        let decoded = kinds.decode(sent).ok()?.object;
        let mutated = self.api_server.plugged(Submission { object: &decoded, ..sent });
        let sent = Submission { object: &mutated, ..sent };
        let prepared = kinds.prepare(sent, &around).ok()?;
        let (at, pointer) = self.place();
        if prepared.pointer(&pointer).and_then(|of| of.get(self.field)).is_some() {
            return Some(Answer::There);
        }
        let demanded = match kinds.validate(sent, &prepared) {
            Err(Refused::Validation { causes, .. }) => {
                causes.iter().any(|cause| cause.error_type == ErrorType::Required && cause.field == at)
            }
            _ => false,
        };
        Some(if demanded { Answer::There } else { Answer::Absent })
    }

    /// The object, with another field.
    fn object(&self, other: Option<&Other>) -> Json {
        let mut value = json!({});
        for steps in (0..=self.steps.len()).rev() {
            if let Some(step) = self.steps.get(steps) {
                value = match step {
                    Step::Field(name) => json!({ name: value }),
                    Step::Element => json!([value]),
                    Step::Entry => json!({ "key": value }),
                };
            }
            if let (Some(other), Some(fields)) = (other.filter(|other| other.steps == steps), value.as_object_mut()) {
                fields.insert(other.field.clone(), other.value.clone());
            }
        }
        *value.at_mut(&["apiVersion"]) = Json::from(self.resource.api_version());
        *value.at_mut(&["kind"]) = Json::from(self.resource.kind.clone());
        *value.at_mut(&["metadata", "name"]) = Json::from("example");
        value
    }

    /// The path of the field, as in causes and as a pointer into its struct.
    fn place(&self) -> (String, String) {
        let (mut at, mut pointer) = (String::new(), String::new());
        for step in self.steps {
            match step {
                Step::Field(name) => {
                    at.push_str(if at.is_empty() { "" } else { "." });
                    at.push_str(name);
                    pointer.push('/');
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                }
                Step::Element => {
                    at.push_str("[0]");
                    pointer.push_str("/0");
                }
                Step::Entry => {
                    at.push_str("[key]");
                    pointer.push_str("/key");
                }
            }
        }
        at.push_str(if at.is_empty() { "" } else { "." });
        at.push_str(self.field);
        (at, pointer)
    }

    /// Other fields that a default may depend on: texts and truth values beside the field and on the way to it.
    fn others(&self, kind: &Kind) -> impl Iterator<Item = Other> {
        let schemas = self.of.schemas;
        let mut found = Vec::new();
        let mut schema = schemas.of_kind(kind);
        for steps in 0..=self.steps.len() {
            let Some(of) = schema.map(|schema| resolved(schemas, schema)) else { break };
            let next = match self.steps.get(steps) {
                Some(Step::Field(name)) => Some(name.as_str()),
                _ => None,
            };
            let fixed = |name: &str| {
                steps == 0 && matches!(name, "apiVersion" | "kind")
                    || Some(name) == next
                    || steps == self.steps.len() && name == self.field
            };
            let nothing = Map::new();
            for (name, property) in
                of["properties"].as_object().unwrap_or(&nothing).iter().filter(|(name, _)| !fixed(name))
            {
                let values = match property["type"].as_str() {
                    // One known type has fewer defaults than unknown ones: a Service without an address.
                    Some("string") if name == "type" => vec![json!("other"), json!("ExternalName")],
                    Some("string") => vec![json!("other")],
                    Some("boolean") => vec![json!(true), json!(false)],
                    _ => vec![],
                };
                found.extend(values.into_iter().map(|value| Other { steps, field: name.clone(), value }));
            }
            schema = match self.steps.get(steps) {
                Some(Step::Field(name)) => of["properties"].get(name),
                Some(Step::Element) => of.get("items"),
                Some(Step::Entry) => of.get("additionalProperties"),
                None => None,
            };
        }
        found.into_iter()
    }
}

/// A schema, or the one that it refers to.
fn resolved<'a>(schemas: &'a Schemas, schema: &'a Json) -> &'a Json {
    let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    reference.and_then(|name| schemas.named(name)).unwrap_or(schema)
}
