//! The requests.

use clap::ValueEnum as _;
use palisade_admission::requests::{Cluster, Operation, PolicyKind, Request, Review, User};
use serde_json::Value as Json;

use crate::{
    eval::args::{EvalArgs, OperationArg},
    files,
    input::{self, Object},
    output,
    report::{Failure, Problem},
};

/// The kind of an object with a request.
const REVIEW: &str = "AdmissionReview";

/// A request and its origin.
pub struct EvalRequest {
    /// The file and the request: `pod.yaml: CREATE pods tool-a/web`.
    pub title: String,
    request: Request,
    /// Whether the object is from a client.
    raw: bool,
}

/// The API server's answer to a request.
pub struct Answer<'a> {
    /// The file and the request.
    pub title: &'a str,
    pub review: Review,
    /// The policies that match the request, each with the binding through which it matches.
    pub matched: Vec<(PolicyKind, String, String)>,
}

impl EvalRequest {
    /// Sends it to the offline cluster.
    pub fn ask(&self, cluster: &Cluster) -> Answer<'_> {
        let review = if self.raw { cluster.admit(&self.request) } else { cluster.review(&self.request) };
        let traces = cluster.matched(&self.request, &review, self.raw).into_iter();
        let matched = traces
            .filter(|trace| trace.matched != Some(false))
            .filter_map(|trace| Some((trace.kind, trace.policy, trace.binding?)))
            .collect();
        Answer { title: &self.title, review, matched }
    }
}

/// Reads the requests, and the problems of documents that are not requests.
pub fn read(args: &EvalArgs, cluster: &Cluster) -> Result<(Vec<EvalRequest>, Vec<Problem>), Failure> {
    let operation = args.operation();
    if args.old.is_some() && matches!(operation, OperationArg::Create | OperationArg::Connect) {
        let name = operation.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let problem = Problem::new(format!("--old must not be used with --operation {name}"));
        return Err(Failure::CouldNotRun(vec![problem.help("remove --old, or remove --operation to send an UPDATE")]));
    }
    let mut old = Vec::new();
    for path in files::expand(args.old.as_slice())? {
        let source = files::read(&path)?;
        for object in input::objects(&source).map_err(Failure::fatal)? {
            old.push(object.json().map_err(|mistake| Failure::CouldNotRun(vec![mistake.problem]))?);
        }
    }
    let (mut asked, mut problems) = (Vec::new(), Vec::new());
    for path in files::expand(&args.requests)? {
        let source = files::read(&path)?;
        let mut others = Vec::new();
        let objects = palisade_manifest::objects(&source).map_err(|problem| input::of_helm(&source, problem));
        problems.extend(objects.as_ref().err().cloned());
        for object in objects.into_iter().flatten() {
            if object.api_version.starts_with("kustomize.config.k8s.io/") {
                others.push(object.kind);
                continue;
            }
            if let Some(problem) = object.refusal().filter(|_| object.kind != REVIEW) {
                problems.push(problem);
                continue;
            }
            match request(args, cluster, &object, &old) {
                Ok((mut request, raw)) => {
                    identify(args, &mut request.user, raw);
                    asked.push(EvalRequest { title: title(source.name(), &request), request, raw });
                }
                Err(problem) => problems.push(problem),
            }
        }
        output::ignored(&source, &others, "Kubernetes object");
    }
    if asked.is_empty() && problems.is_empty() {
        problems.push(Problem::new(format!("{}: at least one object is required", args.requests.join(", "))));
    }
    Ok((asked, problems))
}

fn request(args: &EvalArgs, cluster: &Cluster, object: &Object<'_>, old: &[Json]) -> Result<(Request, bool), Problem> {
    let mut json = object.json().map_err(|mistake| mistake.problem)?;
    if object.kind == REVIEW {
        let request = Request::from_review(&json).map_err(|error| object.problem("request", error))?;
        if args.operation.is_some() || args.old.is_some() || !args.subresource.is_empty() {
            let problem = object
                .problem("request", "an AdmissionReview already contains the operation, subresource and old object");
            return Err(problem.help("remove --operation, --subresource and --old"));
        }
        return Ok((request, false));
    }
    let operation = match args.operation() {
        OperationArg::Create => Operation::Create,
        OperationArg::Update => Operation::Update,
        OperationArg::Delete => Operation::Delete,
        OperationArg::Connect => Operation::Connect,
    };
    let name = |object: &Json| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    // A subresource may have a separate kind, for example scale; the stored object has the kind of the resource.
    let has_own_kind =
        !args.subresource.is_empty() && cluster.kinds().by_kind(&object.api_version, &object.kind).is_none();
    let before = old.iter().find(|one| {
        let namespaces = [&one["metadata"]["namespace"], &json["metadata"]["namespace"]];
        (one["kind"] == json["kind"] || has_own_kind)
            && name(one) == name(&json)
            && (namespaces[0] == namespaces[1] || namespaces.iter().any(|namespace| namespace.is_null()))
    });
    if before.is_none() && (operation == Operation::Update || args.old.is_some()) {
        let (verb, kind, name) = (operation.name(), &object.kind, name(&json));
        let problem =
            object.problem("metadata.name", format!("the {verb} of {kind} {name:?} requires the stored object"));
        return Err(problem.help("specify a file with the stored object by --old"));
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

/// Sets the namespace of an object without one. If it has no metadata, the API server reports that.
fn in_namespace(object: &mut Json, namespace: &str) {
    if object["metadata"]["namespace"].is_null()
        && let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut)
    {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
}

/// Sets the user and groups of a request from the arguments. The default user is `user`.
fn identify(args: &EvalArgs, user: &mut User, raw: bool) {
    if let Some(name) = &args.user {
        user.name.clone_from(name);
    } else if raw {
        "user".clone_into(&mut user.name);
    }
    if raw || args.user.is_some() || !args.groups.is_empty() {
        user.groups = User::authenticated(&user.name, &args.groups).groups;
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
