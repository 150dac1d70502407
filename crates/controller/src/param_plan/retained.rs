//! Parameters that a policy in effect reads, and that a new generation must keep until no policy reads them. Pure.

use std::collections::BTreeSet;

use palisade_api::ParameterType;

/// requests if it cannot read one of its parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RetainedParams {
    /// No parameters except those that the profile declares.
    #[default]
    Nothing,
    /// These parameters in addition, as `name:Type`.
    Only(BTreeSet<String>),
    /// All parameters, because the required ones are unknown.
    Everything,
}

impl RetainedParams {
    /// The parameters that a policy reads, from its annotation.
    pub fn of_annotation(annotation: Option<&String>) -> Self {
        match annotation {
            None => Self::Everything,
            Some(text) => Self::Only(text.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect()),
        }
    }

    /// The parameters of both.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        match (self, other) {
            (Self::Everything, _) | (_, Self::Everything) => Self::Everything,
            (Self::Nothing, other) => other.clone(),
            (this, Self::Nothing) => this,
            (Self::Only(mut this), Self::Only(other)) => {
                this.extend(other.iter().cloned());
                Self::Only(this)
            }
        }
    }

    /// True if it keeps all that `other` keeps.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Everything, _) | (_, Self::Nothing) => true,
            (Self::Only(this), Self::Only(other)) => other.is_subset(this),
            (Self::Nothing, Self::Only(other)) => other.is_empty(),
            (_, Self::Everything) => false,
        }
    }

    /// True if a parameter is retained.
    pub fn has(&self, name: &str, type_: ParameterType) -> bool {
        match self {
            Self::Nothing => false,
            Self::Only(parameters) => parameters.contains(&format!("{name}:{type_}")),
            Self::Everything => true,
        }
    }
}
