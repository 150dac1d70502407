//! Requests as an API server sends them to webhooks.

use std::collections::BTreeMap;

use palisade_cel::schema::Kind;
use serde_json::Value as Json;

use super::{Operation, Request, ResourceId, User};

impl Request {
    /// Reads an `AdmissionReview` (`admission.k8s.io/v1` or `v1beta1`): its objects are as admission sees them.
    ///
    /// # Errors
    /// Which part is missing.
    pub fn from_review(review: &Json) -> Result<Self, String> {
        let request = &review["request"];
        let operation = request["operation"].as_str().and_then(Operation::parse);
        let operation = operation.ok_or("request.operation is none of CREATE, UPDATE, DELETE and CONNECT")?;
        // As it was sent, if a webhook got it converted.
        let part = |names: [&str; 2]| names.into_iter().map(|name| &request[name]).find(|part| part.is_object());
        let kind = part(["requestKind", "kind"]).ok_or("request.kind is missing")?;
        let resource = part(["requestResource", "resource"]).ok_or("request.resource is missing")?;
        let text = |of: &Json, name: &str| of[name].as_str().unwrap_or_default().to_owned();
        let texts = |of: &Json| -> Vec<String> {
            of.as_array().into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect()
        };
        let object = |name: &str| Some(&request[name]).filter(|object| object.is_object()).cloned();
        let user = &request["userInfo"];
        let extra = user["extra"].as_object().into_iter().flatten();
        let dry_run = request["dryRun"] == true;
        Ok(Self {
            operation,
            kind: Kind { group: text(kind, "group"), version: text(kind, "version"), kind: text(kind, "kind") },
            resource: ResourceId {
                group: text(resource, "group"),
                version: text(resource, "version"),
                resource: text(resource, "resource"),
            },
            subresource: text(request, "subResource"),
            name: text(request, "name"),
            namespace: text(request, "namespace"),
            user: User {
                name: text(user, "username"),
                uid: text(user, "uid"),
                groups: texts(&user["groups"]),
                extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect::<BTreeMap<_, _>>(),
            },
            object: object("object"),
            old_object: object("oldObject"),
            dry_run,
            options: object("options").unwrap_or_else(|| Self::default_options(operation, dry_run)),
        })
    }
}
