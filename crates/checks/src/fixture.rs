//! Fixtures: pods that a check must pass or refuse, in a YAML file beside the check.
//!
//! A file is a list of fixtures. The pod of a fixture is the [minimal pod](crate::pod::minimal) with the
//! fixture's `pod` merged into it. A fixture names the settings it needs; all other settings allow
//! everything, so that what is refused is refused by this check.
//!
//! ```yaml
//! - name: a privileged init container
//!   settings: {privileges: {privileged: false}}
//!   pod: {spec: {initContainers: [{name: a, image: b, securityContext: {privileged: true}}]}}
//!   violations: ['container "a": securityContext.privileged is true, must be false or unset']
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::{ParameterName, ParameterType, Resolved, Settings, Values, pod};

/// A pod with the verdict that a check must give on it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixture {
    /// What is special about it, in words.
    pub name: String,
    /// The settings under test.
    pub settings: Settings,
    /// The values of parameters that the settings refer to.
    #[serde(default)]
    pub parameters: BTreeMap<ParameterName, Json>,
    /// Merged into the minimal pod.
    #[serde(default)]
    pod: Json,
    /// Texts that the violations must contain, in order; none for a pod that passes.
    #[serde(default)]
    pub violations: Vec<String>,
    /// Set where the API server itself refuses the pod before any policy is asked, with part of its message.
    #[serde(default)]
    pub invalid: Option<String>,
}

impl Fixture {
    /// The pod.
    pub fn pod(&self) -> Json {
        let mut pod = pod::minimal("fixture");
        if !self.pod.is_null() {
            pod::merge(&mut pod, &self.pod);
        }
        pod
    }

    /// The values of the parameters.
    pub fn values(&self) -> Values {
        let resolved = |value: &Json| match value {
            Json::Number(number) => Resolved::Integer(number.as_i64().unwrap_or_default()),
            Json::Bool(flag) => Resolved::Boolean(*flag),
            Json::Array(items) => {
                Resolved::StringList(items.iter().filter_map(Json::as_str).map(str::to_owned).collect())
            }
            other => Resolved::String(other.as_str().unwrap_or_default().to_owned()),
        };
        self.parameters.iter().map(|(name, value)| (name.clone(), resolved(value))).collect()
    }

    /// The types of the parameters.
    pub fn types(&self) -> BTreeMap<ParameterName, ParameterType> {
        let kind = |value: Resolved| match value {
            Resolved::Integer(_) => ParameterType::Integer,
            Resolved::String(_) => ParameterType::String,
            Resolved::Boolean(_) => ParameterType::Boolean,
            Resolved::StringList(_) => ParameterType::StringList,
        };
        self.values().into_iter().map(|(name, value)| (name, kind(value))).collect()
    }
}
