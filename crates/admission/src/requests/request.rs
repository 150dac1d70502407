//! A request, as policies see it.

use std::collections::BTreeMap;

use palisade_cel::schema::Kind;
use palisade_kube_json::json::Change as _;
use serde_json::{Map, Value as Json, json};

/// The operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change of an object.
    Update,
    /// The end of an object.
    Delete,
    /// A connection to an object: `pods/exec`, `services/proxy`.
    Connect,
}

impl Operation {
    /// As policies and `request.operation` write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }

    /// Reads what policies write.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Create, Self::Update, Self::Delete, Self::Connect].into_iter().find(|one| one.name() == text)
    }
}

/// A resource of an API, as in the path of a request (`GroupVersionResource`).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId {
    /// Its API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name.
    pub resource: String,
}

impl ResourceId {
    /// From its parts.
    pub fn new(group: &str, version: &str, resource: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), resource: resource.to_owned() }
    }

    /// The resource without its version, as errors name it: `deployments.apps`.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.resource.clone() } else { format!("{}.{}", self.resource, self.group) }
    }
}

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The identifier of the user, which is unique even if another user gets the same name later; mostly empty.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// The additional information from the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// An authenticated user, in these groups and in those that the API server adds (`GetExtra` and `MakeGroupNames` in
    /// apiserver `pkg/authentication/serviceaccount/util.go`, `pkg/authentication/user/user.go`).
    pub fn authenticated(name: &str, groups: &[String]) -> Self {
        let mut groups = groups.to_vec();
        let own = match name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':')) {
            _ if name == "system:anonymous" => vec!["system:unauthenticated".to_owned()],
            Some((namespace, _)) => vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
            None => vec!["system:authenticated".to_owned()],
        };
        for group in own {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        Self { name: name.to_owned(), groups, ..Self::default() }
    }
}

/// A request at the point where kube-apiserver asks its validating policies: the object is decoded, defaulted and valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The operation.
    pub operation: Operation,
    /// The kind of `object` as it was sent: of `pods/exec` `v1/PodExecOptions`, of `deployments/scale`
    /// `autoscaling/v1/Scale`.
    pub kind: Kind,
    /// The resource as it was addressed.
    pub resource: ResourceId,
    /// `status`, `exec` or the like; empty for the object itself.
    pub subresource: String,
    /// The name; empty if the API server is to generate it.
    pub name: String,
    /// The namespace; empty if the object has none. For a Namespace it is its own name.
    pub namespace: String,
    /// The user.
    pub user: User,
    /// The object as it would be; none when it is deleted.
    pub object: Option<Json>,
    /// The object as it is; none when it is created, or connected to.
    pub old_object: Option<Json>,
    /// Whether it is a dry run.
    pub dry_run: bool,
    /// `CreateOptions` and the like, as `request.options`; null for a connection.
    pub options: Json,
}

impl Request {
    /// The options that a client without wishes sends (`meta.k8s.io/v1`); null for a connection.
    pub fn default_options(operation: Operation, dry_run: bool) -> Json {
        let kind = match operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
            Operation::Connect => return Json::Null,
        };
        let mut options = json!({"apiVersion": "meta.k8s.io/v1", "kind": kind});
        if dry_run {
            *options.at_mut(&["dryRun"]) = json!(["All"]);
        }
        options
    }

    /// The creation of an object that already exists, by no user in particular and with the object itself.
    pub(crate) fn creation(resource: ResourceId, kind: &str, namespace: &str, object: &Json) -> Self {
        let name = object.pointer("/metadata/name").and_then(Json::as_str).unwrap_or_default();
        Self {
            operation: Operation::Create,
            kind: Kind { group: resource.group.clone(), version: resource.version.clone(), kind: kind.to_owned() },
            resource,
            subresource: String::new(),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            user: User::default(),
            object: None,
            old_object: None,
            dry_run: false,
            options: Self::default_options(Operation::Create, false),
        }
    }

    /// The name in the text of a denial: that of the request, of the object, or what the name is generated from
    /// (apiserver `pkg/admission/errors.go`, `extractResourceName`).
    pub(crate) fn shown_name(&self) -> &str {
        let metadata = self.object.as_ref().and_then(|object| object.get("metadata"));
        let field = |name| metadata.and_then(|metadata| metadata.get(name)?.as_str());
        [Some(self.name.as_str()), field("name"), field("generateName")]
            .into_iter()
            .flatten()
            .find(|name| !name.is_empty())
            .unwrap_or("Unknown")
    }

    /// The variable `request`, given the kind and resource as which a policy matched the request
    /// (`CreateAdmissionRequest` in apiserver `pkg/admission/plugin/cel/condition.go`). Empty fields are absent where
    /// the type's JSON leaves them out.
    pub(crate) fn variable(&self, kind: &Kind, resource: &ResourceId) -> Json {
        let of_kind = |kind: &Kind| json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
        let of_resource =
            |one: &ResourceId| json!({"group": one.group, "version": one.version, "resource": one.resource});
        let mut fields = Map::new();
        fields.insert("uid".into(), "".into());
        fields.insert("kind".into(), of_kind(kind));
        fields.insert("resource".into(), of_resource(resource));
        fields.insert("requestKind".into(), of_kind(&self.kind));
        fields.insert("requestResource".into(), of_resource(&self.resource));
        fields.insert("operation".into(), self.operation.name().into());
        fields.insert("userInfo".into(), self.user.variable());
        fields.insert("object".into(), Json::Null);
        fields.insert("oldObject".into(), Json::Null);
        fields.insert("dryRun".into(), self.dry_run.into());
        fields.insert("options".into(), self.options.clone());
        for (field, text) in [
            ("subResource", &self.subresource),
            ("requestSubResource", &self.subresource),
            ("name", &self.name),
            ("namespace", &self.namespace),
        ] {
            if !text.is_empty() {
                fields.insert(field.into(), text.as_str().into());
            }
        }
        Json::Object(fields)
    }
}

impl User {
    fn variable(&self) -> Json {
        let mut fields = Map::new();
        for (field, text) in [("username", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                fields.insert(field.into(), text.as_str().into());
            }
        }
        if !self.groups.is_empty() {
            fields.insert("groups".into(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            fields.insert("extra".into(), json!(self.extra));
        }
        Json::Object(fields)
    }
}
