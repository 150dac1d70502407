//! The definition of a check of objects other than pods and workloads.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::{
    Level, Lowering, ParameterName, ParameterType, Resolved, Settings, Values, cel, fixture::resolved, pod::merge,
};

/// A check of objects other than pods and workloads: data and a function, all in one file of [`crate::objects`].
pub struct ObjectCheck {
    /// The id that messages, exceptions and documentation use.
    pub id: &'static str,
    /// The title, one line.
    pub title: &'static str,
    /// The settings in a profile that it reads, below `spec`; first the one that turns it on.
    pub settings: &'static [&'static str],
    /// The kinds that it evaluates.
    pub kinds: &'static [ObjectResource],
    /// The fields that it restricts, for documentation: `spec.rules[*].host`.
    pub fields: &'static [&'static str],
    /// CEL of type bool that reads `request`: requests that it does not evaluate.
    pub exempt: Option<&'static str>,
    /// Its fixtures, as YAML (see [`ObjectFixture`]).
    pub fixtures: &'static str,
    /// The rule for the settings; `None` if they allow everything.
    pub compile: fn(&Settings, &mut Lowering<'_>) -> Option<ObjectRule>,
}

/// A kind of Kubernetes or of an extension, and the versions in which a check reads its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectResource {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The versions in which the check reads its objects. A version that is not listed is converted, as long as the API
    /// server serves one of these.
    pub versions: &'static [&'static str],
    /// The kind.
    pub kind: &'static str,
    /// Its plural name.
    pub resource: &'static str,
}

/// The CEL that finds violations of a check in an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectRule {
    /// Lists that are longer than any real object has. If there are some, the others are not evaluated: a loop over such
    /// a list could exceed the budget of the API server (ADR 23).
    pub limits: Vec<ObjectFinding>,
    /// The ways to violate it, in the order in which violations are reported.
    pub findings: Vec<ObjectFinding>,
    /// CEL of fields that the findings do not read. An update that changes one of them is evaluated as well: it could
    /// give the evaluated fields another effect.
    pub reads: Vec<&'static str>,
}

impl ObjectRule {
    /// The rule; `None` if nothing violates it.
    pub fn unless_empty(self) -> Option<Self> {
        (!self.findings.is_empty()).then_some(self)
    }

    /// Adds a way to violate the rule, in objects of these kinds.
    pub fn finding(&mut self, of: &'static [ObjectResource], violated: impl Into<String>, says: impl Into<String>) {
        self.findings.push(ObjectFinding { of, violated: violated.into(), says: says.into() });
    }

    /// Limits the elements of a list that the CEL `list` reads.
    pub fn limit(&mut self, of: &'static [ObjectResource], field: &str, list: &str, most: usize) {
        self.limit_if(of, field, &format!("{list}.size() > {most}"), most);
    }

    /// The same for several lists: the CEL `violated` is true if one of them is too long.
    pub fn limit_if(&mut self, of: &'static [ObjectResource], field: &str, violated: &str, most: usize) {
        let says = cel::quote(&format!("{field} must have at most {most} elements"));
        self.limits.push(ObjectFinding { of, violated: violated.to_owned(), says });
    }

    /// Forbids strings in a field: `forbidden` is CEL of type list(string) with them, and `allowed` describes the others.
    pub fn forbid(
        &mut self,
        of: &'static [ObjectResource],
        (field, what): (&str, &str),
        forbidden: &str,
        allowed: &str,
    ) {
        let begin = cel::quote(&format!("{field}: forbidden {what}: "));
        self.finding(
            of,
            format!("{forbidden}.size() > 0"),
            format!("{begin} + {forbidden}.join(', ') + ', allowed: ' + {allowed}"),
        );
    }
}

/// One way to violate a check. Its expressions read `variables.object`, the object without a static type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectFinding {
    /// The kinds of the objects that it evaluates.
    pub of: &'static [ObjectResource],
    /// CEL of type bool: true if it is violated.
    pub violated: String,
    /// CEL of type string: the field, its value, and the allowed values. May use what `violated` uses.
    pub says: String,
}

/// An object with the verdict that a check must give on it. A check has a list of them as YAML.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectFixture {
    /// A description of the fixture.
    pub name: String,
    /// The settings under test.
    pub settings: Settings,
    /// The values of parameters that the settings refer to.
    #[serde(default)]
    pub parameters: BTreeMap<ParameterName, Json>,
    /// The object, without its name.
    object: Json,
    /// The user of the request; if unset, a tenant.
    #[serde(default)]
    pub user: FixtureUser,
    /// Texts that the violations must contain, in order; none for an object that passes.
    #[serde(default)]
    pub violations: Vec<String>,
    /// Whether the documentation shows it.
    #[serde(default)]
    pub example: bool,
}

/// The user of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixtureUser {
    /// The name.
    pub username: String,
    /// The groups.
    pub groups: Vec<String>,
}

impl Default for FixtureUser {
    fn default() -> Self {
        Self { username: "tenant".to_owned(), groups: vec!["system:authenticated".to_owned()] }
    }
}

impl ObjectFixture {
    /// The object, in the namespace of a tenant.
    pub fn object(&self, namespace: &str) -> Json {
        let mut object = json!({"metadata": {"name": "fixture", "namespace": namespace}});
        merge(&mut object, &self.object);
        object
    }

    /// The values of the parameters.
    pub fn values(&self) -> Values {
        self.parameters.iter().map(|(name, value)| (name.clone(), resolved(value))).collect()
    }

    /// The types of the parameters.
    pub fn types(&self) -> BTreeMap<ParameterName, ParameterType> {
        self.values().into_iter().map(|(name, value): (_, Resolved)| (name, value.kind())).collect()
    }

    /// The spec of a profile with these settings that allows everything else.
    pub fn spec(&self, labels: &Json) -> Json {
        let parameters: Vec<_> = self
            .types()
            .into_iter()
            .map(|(name, kind)| json!({"name": name, "type": kind, "sources": [{"namespaceLabel": name}]}))
            .collect();
        let mut spec = json!({
            "namespaceSelector": {"matchLabels": labels}, "parameters": parameters, "baseline": Level::Privileged,
        });
        merge(&mut spec, &json!(self.settings));
        spec
    }
}
