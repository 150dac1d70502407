//! The definition of a check of objects other than pods and workloads.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::{
    Lowering, ParameterName, ParameterType, Resolved, Settings, Values, cel,
    fixture::{self, resolved},
    pod::merge,
    settings::ObjectKind,
};

/// A check of objects other than pods and workloads: data and a function, all in one file of [`crate::objects`].
pub struct ObjectCheck {
    /// The id that messages, exceptions and documentation use.
    pub id: &'static str,
    /// The title, one line.
    pub title: &'static str,
    /// The settings in a profile that it reads, below `spec`; first the one that turns it on.
    pub settings: &'static [&'static str],
    /// The kinds that it evaluates; none if its settings name the kinds.
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
    /// Its plural name, or that of the resource with the subresource.
    pub resource: &'static str,
    /// The subresource that takes the kind, for example `exec`; empty for the resource itself.
    pub subresource: &'static str,
    /// The operations that the check evaluates, of [`WRITES`], [`CHANGES`], [`CREATION`] and [`CONNECTION`].
    pub operations: &'static [&'static str],
}

/// The operations on an object that is stored.
pub const WRITES: &[&str] = &["CREATE", "UPDATE"];
/// The operation on a subresource that changes a stored object.
pub const CHANGES: &[&str] = &["UPDATE"];
/// The operation on a subresource that takes objects and stores none.
pub const CREATION: &[&str] = &["CREATE"];
/// The operation of a client that connects. The object is the options of the connection, without metadata.
pub const CONNECTION: &[&str] = &["CONNECT"];

impl ObjectResource {
    /// The resource as in rules of policies: `services`, or `services/proxy`.
    pub fn path(&self) -> String {
        match self.subresource {
            "" => self.resource.to_owned(),
            subresource => format!("{}/{subresource}", self.resource),
        }
    }

    /// Whether requests for it are connections.
    pub fn is_connection(&self) -> bool {
        self.operations == CONNECTION
    }

    /// Whether existing objects of it can be listed and evaluated.
    pub fn is_listed(&self) -> bool {
        self.subresource.is_empty() && !is_confidential(self.group, self.resource)
    }
}

/// Whether permission to list objects is permission to read credentials. The scan lists such objects only for the custom
/// checks that name the kind.
pub fn is_confidential(group: &str, resource: &str) -> bool {
    (group, resource) == ("", "secrets")
}

/// The CEL that finds violations of a check in an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectRule {
    /// Lists that are longer than any real object has. If there are some, the others are not evaluated: a loop over such
    /// a list could exceed the budget of the API server (ADR 23).
    pub limits: Vec<ObjectLimit>,
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
    pub fn finding(&mut self, of: impl Into<Kinds>, violated: impl Into<String>, says: impl Into<String>) {
        self.findings.push(ObjectFinding { of: of.into(), violated: violated.into(), says: says.into() });
    }

    /// Limits the elements of a list that the CEL `list` reads.
    pub fn limit(&mut self, of: impl Into<Kinds>, field: &str, list: &str, most: usize) {
        self.limit_if(of, field, most, |most| format!("{list}.size() > {most}"));
    }

    /// The same for several lists: the CEL is true if one of them has more elements than a number.
    pub fn limit_if(&mut self, of: impl Into<Kinds>, field: &str, most: usize, exceeds: impl Fn(usize) -> String) {
        let says = cel::quote(&format!("{field} must have at most {most} elements"));
        let exceeded = ObjectFinding { of: of.into(), violated: exceeds(most), says };
        self.limits.push(ObjectLimit { exceeded, is_long: exceeds(most / SHARES) });
    }

    /// All findings, with those of the limits.
    pub fn all(&self) -> impl Iterator<Item = &ObjectFinding> {
        self.limits.iter().map(|limit| &limit.exceeded).chain(&self.findings)
    }

    /// Forbids strings in a field: `forbidden` is CEL of type list(string) with them, and `allowed` describes the others.
    pub fn forbid(&mut self, of: impl Into<Kinds>, (field, what): (&str, &str), forbidden: &str, allowed: &str) {
        let begin = cel::quote(&format!("{field}: forbidden {what}: "));
        self.finding(
            of,
            format!("{forbidden}.size() > 0"),
            format!("{begin} + {forbidden}.join(', ') + ', allowed: ' + {allowed}"),
        );
    }
}

/// The checks that share the budget of the match condition, if they evaluate one kind.
pub const SHARES: usize = 8;

/// A limit of the elements of lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectLimit {
    /// The violation of the limit.
    pub exceeded: ObjectFinding,
    /// CEL of type bool: whether a list has more than its share of the limit, one of [`SHARES`]. Checks whose lists have
    /// no more can be evaluated together at the cost of one with lists at the limit.
    pub is_long: String,
}

/// The kinds of the objects that a finding evaluates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// Kinds of the check.
    OfCheck(&'static [ObjectResource]),
    /// Kinds that the settings name.
    Named(Vec<ObjectKind>),
}

impl From<&'static [ObjectResource]> for Kinds {
    fn from(kinds: &'static [ObjectResource]) -> Self {
        Self::OfCheck(kinds)
    }
}

impl<const N: usize> From<&'static [ObjectResource; N]> for Kinds {
    fn from(kinds: &'static [ObjectResource; N]) -> Self {
        Self::OfCheck(kinds)
    }
}

impl From<&[ObjectKind]> for Kinds {
    fn from(kinds: &[ObjectKind]) -> Self {
        Self::Named(kinds.to_vec())
    }
}

/// One way to violate a check. Its expressions read `variables.object`, the object without a static type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectFinding {
    /// The kinds of the objects that it evaluates.
    pub of: Kinds,
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
    /// The object, without its name. For a connection, the options, and in `metadata.name` the pod or Service.
    object: Json,
    /// The subresource to which the object is sent. With `status`, the request updates a stored object: the same without
    /// its status. If empty, the request creates the object, or the kind has one subresource that takes it.
    #[serde(default)]
    pub subresource: String,
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

/// A request that creates the object of a fixture, updates a stored object to it, or connects with it as options.
#[derive(Clone, Debug, PartialEq)]
pub struct FixtureRequest {
    /// The API group of the resource; empty for the core group.
    pub group: String,
    /// The version of the resource in the path of the request.
    pub version: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource that takes the object; empty for the resource itself.
    pub subresource: &'static str,
    /// The operations that the check evaluates, of [`WRITES`], [`CHANGES`], [`CREATION`] and [`CONNECTION`].
    pub operations: &'static [&'static str],
    /// The stored object that the request updates; `None` for another operation.
    pub stored: Option<Json>,
    /// The name in the path of the request: that of the object, or of the pod or Service to connect to.
    pub name: String,
    /// The object; without metadata, if it has the options of a connection.
    pub object: Json,
}

impl FixtureRequest {
    /// A request with an object of a kind.
    pub fn new(of: &ObjectResource, name: &str, object: Json) -> Self {
        // The version of a subresource's kind is in the object, and that of the resource in the path.
        let stated = object.get("apiVersion").and_then(Json::as_str).and_then(|text| text.rsplit('/').next());
        let version = stated.filter(|_| of.subresource.is_empty()).or(of.versions.first().copied());
        Self {
            group: of.group.to_owned(),
            version: version.unwrap_or_default().to_owned(),
            resource: of.resource.to_owned(),
            subresource: of.subresource,
            operations: of.operations,
            stored: None,
            name: name.to_owned(),
            object,
        }
    }

    /// Whether it is a connection.
    pub fn is_connection(&self) -> bool {
        self.operations == CONNECTION
    }
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

    /// The request of the fixture, if its object is of a kind of the check. Where the settings name the kinds, it has a
    /// regular plural.
    pub fn request(&self, check: &ObjectCheck, namespace: &str) -> Option<FixtureRequest> {
        let mut object = self.object(namespace);
        let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str).unwrap_or_default().to_owned();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        if check.kinds.is_empty() {
            let api_version = text("/apiVersion");
            let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
            return Some(FixtureRequest {
                group: group.to_owned(),
                version: version.to_owned(),
                resource: format!("{}s", kind.to_lowercase()),
                subresource: "",
                operations: WRITES,
                stored: None,
                name,
                object,
            });
        }
        let is_sent_to = |of: &&ObjectResource| match &*self.subresource {
            "" => of.operations != CHANGES,
            subresource => of.subresource == subresource,
        };
        let of = check.kinds.iter().filter(is_sent_to).find(|of| of.kind == kind)?;
        if of.is_connection() {
            without(&mut object, "metadata");
        }
        let stored = (of.operations == CHANGES).then(|| {
            let mut stored = object.clone();
            without(&mut stored, "status");
            stored
        });
        Some(FixtureRequest { stored, ..FixtureRequest::new(of, &name, object) })
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
        fixture::spec(self.types(), &json!(self.settings), labels)
    }
}

fn without(object: &mut Json, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(field);
    }
}
