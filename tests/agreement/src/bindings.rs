//! What the variables are bound to while expressions are evaluated.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use palisade_cel::{
    authorizer::{self, Attributes, Authorizer, Decision, Selector, User},
    eval::Activation,
    value::Value,
};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::lines::{Error, files, read};

/// The fixtures below `tests/oracle`, by their names.
pub(crate) fn fixtures(oracle: &Path) -> Result<BTreeMap<String, Json>, Error> {
    let mut out = BTreeMap::new();
    for path in files(&oracle.join("fixtures"), "json")? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let fixture = serde_json::from_str(&read(&path)?);
        out.insert(name, fixture.map_err(|error| Error::Content { path, line: 1, error })?);
    }
    Ok(out)
}

#[derive(Clone, Deserialize, Default)]
struct Script {
    #[serde(default)]
    user: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    decisions: Vec<BTreeMap<String, String>>,
    #[serde(default)]
    resource: BTreeMap<String, String>,
}

impl Authorizer for Script {
    fn authorize(&self, user: &User, attributes: &Attributes) -> Decision {
        let fits = |rule: &&BTreeMap<String, String>| {
            let version = if attributes.path.is_none() { "*" } else { "" };
            [
                ("verb", attributes.verb.as_str()),
                ("group", &attributes.group),
                ("version", version),
                ("resource", &attributes.resource),
                ("subresource", &attributes.subresource),
                ("namespace", &attributes.namespace),
                ("name", &attributes.name),
                ("path", attributes.path.as_deref().unwrap_or_default()),
                ("user", &user.name),
                ("fieldSelector", &text(&attributes.field_selector)),
                ("labelSelector", &text(&attributes.label_selector)),
            ]
            .iter()
            .all(|(key, have)| rule.get(*key).is_none_or(|want| want == have))
        };
        let Some(rule) = self.decisions.iter().find(fits) else { return Decision::default() };
        Decision {
            allowed: rule.get("decision").is_some_and(|decision| decision == "allow"),
            reason: rule.get("reason").cloned().unwrap_or_default(),
            error: rule.get("error").cloned(),
        }
    }
}

/// How `tests/oracle/fixture.go` writes a selector.
fn text(selector: &Selector) -> String {
    match &selector.error {
        Some(error) => format!("error: {error}"),
        None => selector.requirements.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
    }
}

/// Binds what a fixture has, `null` for what it has not.
pub(crate) fn bind(fixture: &Json) -> Activation<'_> {
    let mut activation = Activation::new().with_variables();
    for name in ["object", "oldObject", "params", "request", "namespaceObject"] {
        activation = activation.bind(name, fixture.get(name).map_or(Value::Null, Value::from_json));
    }
    let script = fixture.get("authorizer").and_then(|json| Script::deserialize(json).ok()).unwrap_or_default();
    let user = User { name: script.user.clone(), groups: script.groups.clone(), ..User::default() };
    let part = |name: &str| script.resource.get(name).cloned().unwrap_or_default();
    let resource = Attributes {
        group: part("group"),
        resource: part("resource"),
        subresource: part("subresource"),
        namespace: part("namespace"),
        name: part("name"),
        ..Attributes::default()
    };
    let script: Arc<dyn Authorizer> = Arc::new(script);
    activation
        .bind("authorizer", authorizer::authorizer(user.clone(), Arc::clone(&script)))
        .bind("authorizer.requestResource", authorizer::request_resource(user, script, resource))
}
