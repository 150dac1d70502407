//! An object that is linted.

use std::ops::Range;

use palisade_cel::Position;
use palisade_manifest::Object;
use serde_json::Value as Json;

use crate::silence;

/// The kind of definitions of kinds.
pub(crate) const DEFINITION: &str = "CustomResourceDefinition";

/// An object of the input, or one that is generated from it.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    /// Its place, or the place of the object that it is generated from.
    pub object: &'a Object<'a>,
    /// Whether it is generated, and not in the input.
    pub generated: bool,
    /// Its kind.
    pub kind: String,
    /// Its content.
    pub json: Json,
}

impl Item<'_> {
    /// The same once more.
    pub fn copy(&self) -> Self {
        Self { object: self.object, generated: self.generated, kind: self.kind.clone(), json: self.json.clone() }
    }

    /// `apiVersion`.
    pub fn api_version(&self) -> &str {
        self.json["apiVersion"].as_str().unwrap_or_default()
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.json["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Whether it is a definition of a kind.
    pub fn is_definition(&self) -> bool {
        self.kind == DEFINITION
    }

    /// Kind and name.
    pub fn label(&self) -> String {
        format!("{}/{}", self.kind, self.name())
    }

    /// Whether an annotation turns a rule off.
    pub fn silences(&self, rule: &str) -> bool {
        let annotation = |json: &Json| {
            let ids = json["metadata"]["annotations"][silence::IGNORE_ANNOTATION].as_str().unwrap_or_default();
            silence::ids(ids).any(|id| id == rule || id == "*")
        };
        annotation(&self.json) || self.generated && self.object.json().is_ok_and(|made_of| annotation(&made_of))
    }

    /// The bytes of a place, and the message for it.
    pub fn place(&self, path: &str, position: Position, message: String) -> (Range<usize>, String) {
        if self.generated {
            let at = if position == Position::NONE { String::new() } else { format!(":{position}") };
            let message = format!("in the generated {}, {path}{at}: {message}", self.label());
            return (self.object.node.place("metadata.name"), message);
        }
        let in_file = if self.is_definition() { in_definition(path) } else { path.to_owned() };
        let place = match position {
            Position::NONE => self.object.place(&in_file),
            Position { line, column } => self.object.place_in_text(&in_file, line, column),
        };
        (place, message)
    }
}

/// The place in a file of the error in a definition: the API server keeps what all versions share in one place,
/// and the webhook of a conversion in another one.
fn in_definition(path: &str) -> String {
    for (kept, written) in [
        ("spec.validation.", "spec.versions[0].schema."),
        ("spec.subresources.", "spec.versions[0].subresources."),
        ("spec.additionalPrinterColumns", "spec.versions[0].additionalPrinterColumns"),
        ("spec.selectableFields", "spec.versions[0].selectableFields"),
        ("spec.conversion.webhookClientConfig", "spec.conversion.webhook.clientConfig"),
        ("spec.conversion.conversionReviewVersions", "spec.conversion.webhook.conversionReviewVersions"),
    ] {
        if let Some(rest) = path.strip_prefix(kept) {
            return format!("{written}{rest}").replace(".JSONPath", ".jsonPath");
        }
    }
    if path == "spec.version" { "spec.versions[0].name".to_owned() } else { path.replace(".JSONPath", ".jsonPath") }
}
