//! A patch, and its description for people.

use std::fmt;

use palisade_kube_json::text::truncated;
use serde::Serialize;
use serde_json::Value as Json;

/// The longest warning, in characters: API servers cut those of one answer together at 4096 bytes
/// (`k8s.io/apiserver/pkg/endpoints/filters/warning.go`).
const MAX_WARNING: usize = 1000;

/// The changes of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// The operations, in order.
    pub operations: Vec<PatchOperation>,
    /// Descriptions of the changes.
    pub changes: Vec<Change>,
    /// Additions that are not made, each with its reason.
    pub skipped: Vec<String>,
}

/// An operation of RFC 6902, of the three that a patch needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum PatchOperation {
    /// Sets a field that is unset, or appends to a list.
    Add {
        /// The place, as a JSON pointer.
        path: String,
        /// The value.
        value: Json,
    },
    /// Sets the reference of an image, or an environment variable that the profile always sets.
    Replace {
        /// The place, as a JSON pointer.
        path: String,
        /// The value.
        value: Json,
    },
    /// Removes the working directory of a container.
    Remove {
        /// The place, as a JSON pointer.
        path: String,
    },
}

/// A field that is changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The profile that demands it.
    pub profile: String,
    /// The check that it is for, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The part of the pod: `pod`, `container "main"`, `volume "data"`.
    pub of: String,
    /// The field, below that part.
    pub field: String,
    /// The former value, if it is replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Json>,
    /// The new value; null if the field is removed.
    pub value: Json,
}

impl PatchOperation {
    /// The place, as a JSON pointer.
    pub fn path(&self) -> &str {
        match self {
            Self::Add { path, .. } | Self::Replace { path, .. } | Self::Remove { path } => path,
        }
    }
}

impl Patch {
    /// True if it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Applies the operations to their pod.
    ///
    /// # Errors
    ///
    /// If an operation does not fit, which cannot happen for that pod.
    pub fn apply(&self, pod: &mut Json) -> Result<(), String> {
        let operations = serde_json::to_value(&self.operations)
            .and_then(serde_json::from_value::<json_patch::Patch>)
            .map_err(|error| error.to_string())?;
        json_patch::patch(pod, &operations).map_err(|error| error.to_string())
    }

    /// One line for the author of the pod; `None` if nothing changes or is skipped.
    pub fn warning(&self) -> Option<String> {
        let mut parts = self.skipped.clone();
        parts.extend(self.changed());
        if parts.is_empty() {
            return None;
        }
        let text = parts.join("; ");
        // A header has one line, and so has a warning.
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let start = truncated(&text, MAX_WARNING);
        Some(if start.len() < text.len() { format!("{start} ...") } else { text })
    }

    /// The changes on one line.
    fn changed(&self) -> Option<String> {
        let mut profiles: Vec<_> = self.changes.iter().map(|change| change.profile.as_str()).collect();
        profiles.sort_unstable();
        profiles.dedup();
        let first = self.changes.first()?;
        let mut text = format!("mutated by ToolSecurityProfile {}: {first}", profiles.join(", "));
        let mut of = &first.of;
        for change in &self.changes[1..] {
            text.push_str("; ");
            if change.of == *of {
                text.push_str(&change.what());
            } else {
                text.push_str(&change.to_string());
                of = &change.of;
            }
        }
        Some(text)
    }
}

impl Change {
    /// The field and its value.
    fn what(&self) -> String {
        match &self.before {
            Some(before) if self.value.is_null() => format!("{} {} is removed", self.field, shown(before)),
            Some(before) => format!("{} {} is now {}", self.field, shown(before), shown(&self.value)),
            None => format!("{} {}", self.field, shown(&self.value)),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.of, self.what())
    }
}

/// A value in a form similar to one line of YAML.
fn shown(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Json::Object(fields) => {
            let fields: Vec<_> = fields.iter().map(|(key, value)| format!("{key}: {}", shown(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}
