//! From the fields of a case to a request to the API server.

use std::collections::BTreeMap;

use palisade_admission::{
    objects::{Kinds, Resource},
    requests::{Operation, Request, ResourceId, User},
};
use palisade_cel::schema::Kind;
use serde_json::Value as Json;

use crate::format;

/// The fields of a case that make a request, with all defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestFields {
    pub object: Option<Json>,
    pub old: Option<Json>,
    pub operation: Option<format::Operation>,
    pub subresource: String,
    pub namespace: Option<String>,
    pub user: User,
    pub dry_run: bool,
}

/// The user that a case has if it names none.
pub(crate) const USER: &str = "test-user";

impl RequestFields {
    /// The request.
    ///
    /// # Errors
    /// Why there is none.
    pub fn request(&self, kinds: &Kinds) -> Result<Request, String> {
        let main = self.object.as_ref().or(self.old.as_ref()).ok_or("there is neither object nor old")?;
        let operation = self.operation.unwrap_or(match (&self.object, &self.old) {
            (Some(_), Some(_)) => format::Operation::Update,
            (None, Some(_)) => format::Operation::Delete,
            _ => format::Operation::Create,
        });
        let operation = match operation {
            format::Operation::Create => Operation::Create,
            format::Operation::Update => Operation::Update,
            format::Operation::Delete => Operation::Delete,
            format::Operation::Connect => Operation::Connect,
        };
        let text = |pointer: &str| main.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        if api_version.is_empty() || kind.is_empty() {
            return Err("the object has no apiVersion and kind".to_owned());
        }
        let resource = resource_of(kinds, api_version, kind, &self.subresource)?;
        let subresource = self.subresource.rsplit('/').next().unwrap_or_default();
        if !subresource.is_empty() && resource.subresource(subresource).is_none() {
            let known: Vec<_> = resource.subresources.iter().map(|one| one.name.as_str()).collect();
            return Err(format!("{} has no subresource {subresource:?}, but {}", resource.plural, known.join(", ")));
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let (mut object, mut old) = (self.object.clone(), self.old.clone());
        let mut namespace = String::new();
        if resource.namespaced {
            let of_object = text("/metadata/namespace");
            let fallback = self.namespace.as_deref().unwrap_or("default");
            if of_object.is_empty() { fallback } else { of_object }.clone_into(&mut namespace);
            for one in [&mut object, &mut old].into_iter().flatten() {
                set_namespace(one, &namespace);
            }
        } else if kind == "Namespace" && group.is_empty() {
            text("/metadata/name").clone_into(&mut namespace);
        }
        Ok(Request {
            operation,
            kind: Kind { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() },
            resource: ResourceId::new(&resource.group, &resource.version, &resource.plural),
            subresource: subresource.to_owned(),
            name: text("/metadata/name").to_owned(),
            namespace,
            user: self.user.clone(),
            options: Request::default_options(operation, self.dry_run),
            object: if operation == Operation::Delete { None } else { object },
            old_object: if operation == Operation::Create { None } else { old },
            dry_run: self.dry_run,
        })
    }
}

/// Sets the namespace of an object, unless it has no metadata to set it in.
pub(crate) fn set_namespace(object: &mut Json, namespace: &str) {
    let Json::Object(fields) = object else { return };
    let metadata = fields.entry("metadata").or_insert_with(|| serde_json::json!({}));
    if let Json::Object(metadata) = metadata {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
}

/// The request of an AdmissionReview (`admission.k8s.io/v1`).
///
/// # Errors
/// The error in it.
pub(crate) fn of_review(review: &Json) -> Result<Request, String> {
    let request = review.get("request").ok_or("this is not an AdmissionReview: it has no request")?;
    let text = |pointer: &str| request.pointer(pointer).and_then(Json::as_str).unwrap_or_default().to_owned();
    let object = |field: &str| request.get(field).filter(|object| object.is_object()).cloned();
    let operation = Operation::parse(&text("/operation")).ok_or("request.operation is not an operation")?;
    let addressed = |new: &str, old: &str, part: &str| {
        let found = text(&format!("/{new}/{part}"));
        if request.get(new).is_some() { found } else { text(&format!("/{old}/{part}")) }
    };
    let kind = |part| addressed("requestKind", "kind", part);
    let resource = |part| addressed("requestResource", "resource", part);
    if kind("kind").is_empty() || resource("resource").is_empty() {
        return Err("request.kind and request.resource are missing".to_owned());
    }
    let dry_run = request.get("dryRun") == Some(&Json::Bool(true));
    Ok(Request {
        operation,
        kind: Kind { group: kind("group"), version: kind("version"), kind: kind("kind") },
        resource: ResourceId::new(&resource("group"), &resource("version"), &resource("resource")),
        subresource: text("/subResource"),
        name: text("/name"),
        namespace: text("/namespace"),
        user: User {
            name: text("/userInfo/username"),
            uid: text("/userInfo/uid"),
            groups: decode(request.pointer("/userInfo/groups"))?,
            extra: decode(request.pointer("/userInfo/extra"))?,
        },
        object: object("object"),
        old_object: object("oldObject"),
        options: object("options").unwrap_or_else(|| Request::default_options(operation, dry_run)),
        dry_run,
    })
}

fn decode<T: serde::de::DeserializeOwned + Default>(json: Option<&Json>) -> Result<T, String> {
    let json = json.filter(|json| !json.is_null());
    json.map_or(Ok(T::default()), |json| serde_json::from_value(json.clone()).map_err(|error| error.to_string()))
}

/// The resource of a request: that of the kind, or the one named with the subresource, as in `deployments/scale`.
fn resource_of<'k>(kinds: &'k Kinds, api_version: &str, kind: &str, subresource: &str) -> Result<&'k Resource, String> {
    if let Some((plural, name)) = subresource.split_once('/') {
        let served = |one: &&Resource| one.by_default && one.plural == plural && one.subresource(name).is_some();
        return kinds.resources().iter().find(served).ok_or_else(|| format!("there is no subresource {subresource}"));
    }
    let unknown = || {
        format!(
            "the API server has no kind {kind} in {api_version}; if it is a custom kind, add its CustomResourceDefinition to resources"
        )
    };
    kinds.by_kind(api_version, kind).ok_or_else(unknown)
}

/// The Namespace for a name without a file.
pub(crate) fn bare_namespace(name: &str) -> Json {
    serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// The user with the fields of a case.
pub(crate) fn user(
    name: Option<String>,
    uid: Option<String>,
    groups: Option<Vec<String>>,
    extra: Option<BTreeMap<String, Vec<String>>>,
) -> User {
    let name = name.unwrap_or_else(|| USER.to_owned());
    let user = User::authenticated(&name, &[]);
    User { uid: uid.unwrap_or_default(), groups: groups.unwrap_or(user.groups), extra: extra.unwrap_or_default(), name }
}
