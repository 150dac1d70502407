//! Notes of a migration about fields that it could not carry over as they are.

use std::fmt;

use palisade_kube_json::json::Change as _;
use serde_json::Value as Json;

/// The effect of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Kind {
    /// Pods that were admitted are denied, until they set the fields that were defaulted for them.
    Stricter,
    /// Pods that were denied are admitted.
    Looser,
    /// `spec.mutation` sets the former defaults. A pod is denied for lack of them only if no engine mutates it.
    Defaulted,
    /// Pods are admitted as before, but fields are no longer defaulted, and pods may run differently.
    Default,
    /// The profile does not select exactly the namespaces of the grants, or an admin must choose them.
    Selection,
    /// Good to know; every pod has its former verdict, or one that confines it more.
    Note,
}

/// Something that is not carried over one to one, or is worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The effect of the difference.
    pub kind: Kind,
    /// The field of the migrated object: `spec.runAsUser`.
    pub path: String,
    /// The difference, the pods that it affects and what to do, in one line.
    pub message: String,
    /// The field to set in pods that got it as a default before.
    pub default: Option<FieldDefault>,
}

impl Note {
    /// A note without a default.
    pub fn new(kind: Kind, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, path: path.into(), message: message.into(), default: None }
    }

    /// Adds the field to set in pods.
    #[must_use]
    pub fn with_default(mut self, default: FieldDefault) -> Self {
        self.default = Some(default);
        self
    }

    /// Whether it reports a difference, so that the migration is not one to one.
    pub fn is_difference(&self) -> bool {
        !matches!(self.kind, Kind::Note | Kind::Defaulted)
    }

    /// The recommended action, if pods got defaults.
    pub fn help(&self) -> Option<String> {
        let default = self.default.as_ref()?;
        // Pods may do better without some values, like the group that a range happens to begin with.
        Some(match self.kind {
            Kind::Defaulted => format!("Without a mutation engine, set {default}"),
            Kind::Default => format!("If it is needed, set {default}"),
            _ => format!("Set {default}"),
        })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}: {}", self.kind, self.path, self.message)?;
        self.help().map_or(Ok(()), |help| write!(f, ". {help}"))
    }
}

/// A value that was defaulted if a pod did not set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDefault {
    /// Whether each container gets it, and not the pod's spec.
    pub of_containers: bool,
    /// The path, below the container or the spec.
    pub path: Vec<&'static str>,
    /// The value. If it is a list, missing elements are added.
    pub value: Json,
}

impl FieldDefault {
    /// A value for the pod's spec.
    pub fn pod(path: &[&'static str], value: impl Into<Json>) -> Self {
        Self { of_containers: false, path: path.to_vec(), value: value.into() }
    }

    /// A value for each container.
    pub fn containers(path: &[&'static str], value: impl Into<Json>) -> Self {
        Self { of_containers: true, path: path.to_vec(), value: value.into() }
    }

    /// Sets the value if it is unset.
    pub fn apply(&self, pod: &mut Json) {
        let spec = pod.at_mut(&["spec"]);
        if !self.of_containers {
            return set(spec, &self.path, &self.value);
        }
        for kind in ["initContainers", "containers"] {
            for container in spec.get_mut(kind).and_then(Json::as_array_mut).into_iter().flatten() {
                set(container, &self.path, &self.value);
            }
        }
    }
}

/// Sets the value if it is unset, or adds missing elements to the list.
fn set(object: &mut Json, path: &[&str], value: &Json) {
    match (object.at_mut(path), value) {
        (Json::Array(found), Json::Array(wanted)) => {
            for element in wanted {
                if !found.contains(element) {
                    found.push(element.clone());
                }
            }
        }
        (unset @ Json::Null, value) => *unset = value.clone(),
        _ => {}
    }
}

impl fmt::Display for FieldDefault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, value) = (self.path.join("."), yaml(&self.value));
        if self.of_containers {
            write!(f, "{path}: {value} in each container")
        } else {
            write!(f, "spec.{path}: {value} in the pod")
        }
    }
}

/// A value as one line of YAML.
fn yaml(value: &Json) -> String {
    match value {
        Json::String(text) if !text.contains([':', '#', ',', '{', '[']) => text.clone(),
        Json::Array(elements) => format!("[{}]", elements.iter().map(yaml).collect::<Vec<_>>().join(", ")),
        Json::Object(fields) => {
            let fields: Vec<_> = fields.iter().map(|(key, value)| format!("{key}: {}", yaml(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}
