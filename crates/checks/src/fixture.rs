//! Fixtures: pods that a check must pass or reject, in a YAML file beside the check.
//!
//! A file is a list of fixtures. The pod of a fixture is the [minimal pod](crate::pod::minimal) with the fixture's
//! `pod` merged into it. A fixture names the settings it needs; all other settings allow everything, so that a pod that
//! is denied is denied by this check.
//!
//! ```yaml
//! - name: a privileged init container
//!   settings: {privileges: {privileged: false}}
//!   pod: {spec: {initContainers: [{name: a, image: b, securityContext: {privileged: true}}]}}
//!   violations: ['container "a": securityContext.privileged is true, must be false or unset']
//! ```
//!
//! Of each check, two fixtures with the same settings say `example: true`: one that passes and one that does not. The
//! page of the check in `docs/checks` shows them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::{Level, ParameterName, ParameterType, Resolved, Settings, Values, pod};

/// A pod with the verdict that a check must give on it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixture {
    /// A description of the fixture.
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
    /// Whether the page of the check shows it: of each check one that passes, and with the same settings one that
    /// does not.
    #[serde(default)]
    pub example: bool,
    /// Set if the API server itself rejects the pod before any policy runs, to a part of its message.
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
        self.parameters.iter().map(|(name, value)| (name.clone(), resolved(value))).collect()
    }

    /// The spec of a profile with these settings that allows everything else, so that it makes only the fixture's
    /// check. It selects the namespaces with these labels.
    pub fn spec(&self, labels: &Json) -> Json {
        spec(self.types(), &json!(self.settings), labels)
    }

    /// The types of the parameters.
    pub fn types(&self) -> BTreeMap<ParameterName, ParameterType> {
        self.values().into_iter().map(|(name, value)| (name, value.kind())).collect()
    }
}

/// The value of a parameter.
pub(crate) fn resolved(value: &Json) -> Resolved {
    match value {
        Json::Number(number) => Resolved::Integer(number.as_i64().unwrap_or_default()),
        Json::Bool(flag) => Resolved::Boolean(*flag),
        Json::Array(items) => Resolved::StringList(items.iter().filter_map(Json::as_str).map(str::to_owned).collect()),
        other => Resolved::String(other.as_str().unwrap_or_default().to_owned()),
    }
}

/// The spec of a profile that allows everything but what these settings restrict, with parameters from labels.
pub(crate) fn spec(
    parameters: impl IntoIterator<Item = (ParameterName, ParameterType)>,
    settings: &Json,
    labels: &Json,
) -> Json {
    let parameter = |(name, kind)| json!({"name": name, "type": kind, "sources": [{"namespaceLabel": name}]});
    let parameters: Vec<_> = parameters.into_iter().map(parameter).collect();
    let mut spec = json!({
        "namespaceSelector": {"matchLabels": labels}, "parameters": parameters, "baseline": Level::Privileged,
    });
    pod::merge(&mut spec, settings);
    spec
}
