//! The requests.

use palisade_apiserver::admission::{Cluster, Operation, Request, Review, User};
use serde_json::Value as Json;

use crate::{
    eval::args::{EvalArgs, OperationArg},
    input::{self, Object},
    report::{Failure, Problem},
};

/// A request, and where it comes from.
pub struct Asked {
    /// The file and the request: `pod.yaml: CREATE pods tool-a/web`.
    pub title: String,
    request: Request,
    /// Whether the object is as a client sends it.
    raw: bool,
}

impl Asked {
    /// Sends it to the offline cluster.
    pub fn ask(&self, cluster: &Cluster) -> Review {
        if self.raw { cluster.admit(&self.request) } else { cluster.review(&self.request) }
    }
}

/// Reads the requests.
pub fn read(args: &EvalArgs, cluster: &Cluster) -> Result<Vec<Asked>, Failure> {
    let mut old = Vec::new();
    if let Some(path) = &args.old {
        let source = input::read(path)?;
        for object in input::objects(&source).map_err(|problem| Failure::CouldNotRun(vec![problem]))? {
            old.push(object.json().map_err(|mistake| Failure::CouldNotRun(vec![mistake.problem]))?);
        }
    }
    let (mut asked, mut problems) = (Vec::new(), Vec::new());
    for path in &args.requests {
        let source = input::read(path)?;
        for object in input::objects(&source).map_err(|problem| Failure::CouldNotRun(vec![problem]))? {
            match request(args, cluster, &object, &old) {
                Ok((mut request, raw)) => {
                    identify(args, &mut request.user, raw);
                    asked.push(Asked { title: title(source.name(), &request), request, raw });
                }
                Err(problem) => problems.push(problem),
            }
        }
        if asked.is_empty() && problems.is_empty() {
            problems.push(Problem::new(format!("{}: no object found", source.name())));
        }
    }
    if problems.is_empty() { Ok(asked) } else { Err(Failure::CouldNotRun(problems)) }
}

fn request(args: &EvalArgs, cluster: &Cluster, object: &Object<'_>, old: &[Json]) -> Result<(Request, bool), Problem> {
    let mut json = object.json().map_err(|mistake| mistake.problem)?;
    if object.kind == "AdmissionReview" {
        let request = Request::from_review(&json).map_err(|error| object.problem("request", error))?;
        return Ok((request, false));
    }
    let operation = match args.operation {
        OperationArg::Create => Operation::Create,
        OperationArg::Update => Operation::Update,
        OperationArg::Delete => Operation::Delete,
        OperationArg::Connect => Operation::Connect,
    };
    let name = |object: &Json| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    // A subresource may have a kind of its own, as scale does; the stored object has the kind of the resource.
    let has_own_kind =
        !args.subresource.is_empty() && cluster.kinds().by_kind(&object.api_version, &object.kind).is_none();
    let before = old.iter().find(|one| {
        let namespaces = [&one["metadata"]["namespace"], &json["metadata"]["namespace"]];
        (one["kind"] == json["kind"] || has_own_kind)
            && name(one) == name(&json)
            && (namespaces[0] == namespaces[1] || namespaces.iter().any(|namespace| namespace.is_null()))
    });
    if operation == Operation::Update && before.is_none() {
        let message = format!("no object before the update of {} {:?}", object.kind, name(&json));
        return Err(object.problem("metadata.name", message).help("--old names the file with the object as it is"));
    }
    let mut before = before.cloned();
    let namespaced = cluster.kinds().by_kind(&object.api_version, &object.kind).is_none_or(|kind| kind.namespaced);
    if let Some(namespace) = args.namespace.as_deref().filter(|_| namespaced) {
        for object in before.iter_mut().chain([&mut json]) {
            in_namespace(object, namespace);
        }
    }
    let request = cluster.request(operation, &args.subresource, &json, before.as_ref());
    request.map(|request| (request, true)).map_err(|error| object.problem("kind", error))
}

/// Puts an object that names no namespace into one. If it has no metadata, the API server reports that itself.
fn in_namespace(object: &mut Json, namespace: &str) {
    if object["metadata"]["namespace"].is_null()
        && let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut)
    {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
}

/// Sets the user and groups of a request from the arguments; an object without them comes from `somebody`.
fn identify(args: &EvalArgs, user: &mut User, raw: bool) {
    if let Some(name) = &args.user {
        user.name.clone_from(name);
    } else if raw {
        "somebody".clone_into(&mut user.name);
    }
    if raw || !args.groups.is_empty() {
        user.groups = args.groups.iter().cloned().chain(["system:authenticated".to_owned()]).collect();
    }
}

fn title(file: &str, request: &Request) -> String {
    let mut resource = request.resource.group_resource();
    if !request.subresource.is_empty() {
        resource = format!("{resource}/{}", request.subresource);
    }
    let in_itself = request.kind.kind == "Namespace" || request.namespace.is_empty();
    let namespace = if in_itself { String::new() } else { format!("{}/", request.namespace) };
    format!("{file}: {} {resource} {namespace}{}", request.operation.name(), request.name)
}
