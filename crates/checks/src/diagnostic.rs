//! Errors in a profile, with their fields.

use std::fmt;

use palisade_kube_json::field_path::FieldPath;

/// An error in a profile: its field, a message, and advice.
///
/// Errors are collected: one pass over a profile reports all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The field.
    pub location: Location,
    /// The message, with the invalid value.
    pub message: String,
    /// Advice, if there is any.
    pub help: Option<String>,
}

/// A field, or a position in its text: `spec.users.runAsUser.ranges[0].min`, `policy.spec.variables[3].expression:1:7`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The object that has the field.
    pub origin: Origin,
    /// The field, as `kubectl explain` names it.
    pub path: FieldPath,
    /// The line and the column in the text of the field, from 1; the column is in characters.
    pub position: Option<(usize, usize)>,
}

/// Whose object a field is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The user's: the profile, or the object that is converted to one.
    Written,
    /// One that is generated from the profile. It has a name in messages: `workloads.policy`.
    Generated(&'static str),
}

impl Diagnostic {
    /// A diagnostic without advice.
    pub fn new(location: impl Into<Location>, message: impl Into<String>) -> Self {
        Self { location: location.into(), message: message.into(), help: None }
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

impl Origin {
    /// A field of this object.
    pub fn at(self, path: impl Into<FieldPath>) -> Location {
        Location { origin: self, path: path.into(), position: None }
    }
}

impl From<Origin> for Location {
    fn from(origin: Origin) -> Self {
        origin.at("")
    }
}

impl From<FieldPath> for Location {
    fn from(path: FieldPath) -> Self {
        Origin::Written.at(path)
    }
}

impl From<String> for Location {
    fn from(path: String) -> Self {
        Origin::Written.at(path)
    }
}

impl From<&str> for Location {
    fn from(path: &str) -> Self {
        Origin::Written.at(path)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin {
            Origin::Generated(name) if self.path.is_empty() => f.write_str(name)?,
            Origin::Generated(name) => write!(f, "{name}.{}", self.path)?,
            Origin::Written => self.path.fmt(f)?,
        }
        match self.position {
            Some((line, column)) => write!(f, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn location_is_displayed_with_its_object_and_position() {
        let policy = Origin::Generated("workloads.policy");
        for (location, expected) in [
            ("spec.users.runAsUser.ranges[0].min".into(), "spec.users.runAsUser.ranges[0].min"),
            (policy.into(), "workloads.policy"),
            (policy.at("spec.variables[3].expression"), "workloads.policy.spec.variables[3].expression"),
            (Location { position: Some((1, 7)), ..policy.at("spec.a") }, "workloads.policy.spec.a:1:7"),
            (Location { position: Some((2, 1)), ..FieldPath::from("spec.a").into() }, "spec.a:2:1"),
        ] {
            assert_eq!(location.to_string(), expected);
        }
        let diagnostic = Diagnostic::new("spec.a", "is wrong").help("mend it");
        assert_eq!(diagnostic.to_string(), "spec.a: is wrong (mend it)");
    }
}
