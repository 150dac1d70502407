//! From the object that a client sends to the object that policies see.

use palisade_cel::{Minor, schema::Kind};
use serde_json::Value as Json;

use super::{
    Cluster, Evaluation, Mutated, Operation, Outcome, Request, ResourceId, Review, User,
    dispatch::Dispatch,
    mutating::Mutating,
    owners,
    plugins::Attributes,
    refusal::{Stop, failed, stop},
};
use crate::{
    create::{self, Status},
    objects::{self, Kinds, NOT_SHOWN, Refused, RequestContext, Resource, Stored, Submission},
    validation::quote,
};

impl Cluster {
    /// A client's request to create an object, to replace `old` by it, or to delete it (then `object` is the deleted
    /// one). `old` and a deleted object are as they are stored. The request has no user in particular and is not a dry
    /// run; a namespaced object without a namespace goes to `default`.
    ///
    /// # Errors
    /// There is no such kind, or no such subresource; the text says which.
    pub fn request(
        &self,
        operation: Operation,
        subresource: &str,
        object: &Json,
        old: Option<&Json>,
    ) -> Result<Request, String> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        let name = text("/metadata/name");
        // As rules and clients write it: `pods/exec`.
        let (of, subresource) = match subresource.split_once('/') {
            Some((of, subresource)) => (of, subresource),
            None => ("", subresource),
        };
        let resource = self.addressed(&api_version, &kind, of, subresource).or_else(|why| {
            // Many resources take a Scale; which one is meant shows in what is stored.
            let stored = old.and_then(|old| self.kinds().by_kind(old["apiVersion"].as_str()?, old["kind"].as_str()?));
            let is_it = |resource: &&Resource| {
                (of.is_empty() || of == resource.plural) && resource.subresource(subresource).is_some()
            };
            stored.filter(is_it).ok_or(why)
        })?;
        let namespace = match (resource.namespaced, text("/metadata/namespace")) {
            (true, namespace) if namespace.is_empty() => "default".to_owned(),
            (true, namespace) => namespace,
            (false, _) if resource.group.is_empty() && resource.plural == "namespaces" => name.clone(),
            (false, _) => String::new(),
        };
        takes(resource, subresource, operation)?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let (object, old) = match operation {
            Operation::Create | Operation::Connect => (Some(object.clone()), None),
            Operation::Update => (Some(object.clone()), Some(old.unwrap_or(object).clone())),
            Operation::Delete => (None, Some(old.unwrap_or(object).clone())),
        };
        Ok(Request {
            operation,
            kind: Kind { group: group.to_owned(), version: version.to_owned(), kind },
            resource: ResourceId::new(&resource.group, &resource.version, &resource.plural),
            subresource: subresource.to_owned(),
            name,
            namespace,
            user: User::default(),
            object,
            old_object: old,
            dry_run: false,
            options: Request::default_options(operation, false),
        })
    }

    /// The resource that an object of a kind is sent to; `of` is its plural, if that is said.
    fn addressed(&self, api_version: &str, kind: &str, of: &str, subresource: &str) -> Result<&Resource, String> {
        if let Some(resource) = self.kinds().by_kind(api_version, kind) {
            return match subresource {
                _ if !of.is_empty() && of != resource.plural => {
                    Err(format!("{kind} is sent to {}, not to {of}", resource.plural))
                }
                "" => Ok(resource),
                _ if resource.subresource(subresource).is_some() => Ok(resource),
                _ => Err(format!("{} has no subresource {subresource:?}", resource.plural)),
            };
        }
        // What a kind of its own is sent to, as Eviction is to pods.
        let takes = |resource: &&Resource| {
            (of.is_empty() || of == resource.plural)
                && resource
                    .subresource(subresource)
                    .is_some_and(|one| one.api_version() == api_version && one.kind == kind)
        };
        let mut taking = self.kinds().resources().iter().filter(takes);
        match (taking.next(), taking.next()) {
            (Some(resource), None) => Ok(resource),
            (Some(_), Some(_)) => {
                Err(format!("{kind} is sent to the subresource {subresource:?} of several resources"))
            }
            (None, _) => Err(self.no_kind(api_version, kind)),
        }
    }

    fn no_kind(&self, api_version: &str, kind: &str) -> String {
        let subresources = |resource: &Resource| {
            let of = resource.subresources.iter().filter(|one| one.api_version() == api_version && one.kind == kind);
            of.map(|one| format!("{}/{}", resource.plural, one.name)).collect::<Vec<_>>()
        };
        let mut taking: Vec<_> = self.kinds().resources().iter().flat_map(subresources).collect();
        taking.sort();
        taking.dedup();
        match taking.as_slice() {
            [] => format!("there is no kind {kind} in {api_version:?}; is its CustomResourceDefinition missing?"),
            some => format!("{kind} is sent to a subresource: name it, as {}", some[..some.len().min(3)].join(" or ")),
        }
    }

    /// The result of a request: its object, as a client sends it, is decoded, defaulted, mutated and validated as far
    /// as [`objects`] and the admission plugins ([`super::PLUGINS`]) do so; its old object is taken as it is stored
    /// ([`objects::Kinds::stored`]). Then the policies evaluate it.
    pub fn admit(&self, request: &Request) -> Review {
        let (mut warnings, mut evaluations) = (Vec::new(), Vec::new());
        match self.receive(request, &mut warnings, &mut evaluations) {
            Ok((received, _)) if is_under_way(&received) => Review {
                outcome: Outcome::Allowed,
                object: None,
                mutated: None,
                warnings,
                audit_annotations: std::collections::BTreeMap::new(),
                evaluations,
            },
            Ok((received, mutated)) => {
                let mut dispatch = Dispatch::new(self, &received);
                dispatch.warn(&warnings);
                let mut review = dispatch.run();
                evaluations.append(&mut review.evaluations);
                if review.outcome.is_allowed() && names_version(request) {
                    review.outcome =
                        Outcome::Denied(vec![failed("resourceVersion should not be set on objects to be created")]);
                }
                Review { mutated, evaluations, ..review }
            }
            Err(stop) => Review {
                outcome: match stop {
                    Stop::Denied(denials) => Outcome::Denied(denials),
                    Stop::NoVerdict(why) => Outcome::NoVerdict(why),
                },
                object: None,
                mutated: None,
                warnings,
                audit_annotations: std::collections::BTreeMap::new(),
                evaluations,
            },
        }
    }

    /// The verdict of the validating policies on a request with a decoded, defaulted and valid object, as in an
    /// `AdmissionReview`. No other admission plugin runs.
    pub fn review(&self, request: &Request) -> Review {
        Dispatch::new(self, request).policies_alone()
    }

    /// An object as it is stored; `created` is its creation, if it is a manifest.
    pub(super) fn as_stored(&self, created: Submission<'_>, subresource: &str) -> Result<Stored, Refused> {
        self.kinds().stored_with(created, subresource, &RequestContext::default(), &|sent| Some(self.plugged(sent)))
    }

    fn receive(
        &self,
        request: &Request,
        warnings: &mut Vec<String>,
        evaluations: &mut Vec<Evaluation>,
    ) -> Result<(Request, Option<Mutated>), Stop> {
        let ResourceId { group, version, resource } = &request.resource;
        let resource = self
            .kinds()
            .by_plural(group, version, resource)
            .ok_or_else(|| Stop::NoVerdict(format!("there is no resource {}", request.resource.group_resource())))?;
        let around = RequestContext::default();
        let (mut received, mut mutated) = (request.clone(), None);
        let sent = |object, old| Submission {
            resource,
            subresource: &request.subresource,
            namespace: if resource.namespaced { &request.namespace } else { "" },
            object,
            old,
        };
        let stored = request.old_object.as_ref().map(|old| {
            let created = Submission { subresource: "", ..sent(old, None) };
            self.as_stored(created, &request.subresource).map_err(stop)
        });
        let stored = stored.transpose()?;
        received.old_object = stored.clone().map(Stored::into_value);
        warnings.extend(left_behind(request));
        let attributes = Attributes { cluster: self, request, old: stored.as_deref() };
        if request.object.is_none() {
            // Of what is deleted no plugin is shown an object.
            attributes.mutate(&Json::Null).map_err(stop)?;
            attributes.mutate_last(&Json::Null).map_err(stop)?;
        }
        if let Some(object) = &request.object {
            if let Some(old) = &stored {
                same_object(request, object, old)?;
            }
            let sent = sent(object, stored.as_ref());
            let mut decoded = self.kinds().decode(sent).map_err(stop)?;
            warnings.extend(decoded.warnings);
            warnings.extend(owners::once(&mut decoded.object, false));
            let connects = request.operation == Operation::Connect;
            let plugins = |object: &Json| {
                if connects {
                    return Ok(object.clone());
                }
                let object = Kinds::applied(Submission { object, ..sent }, &|sent| Some(self.plugged(sent)));
                attributes.mutate(&object).map_err(stop)
            };
            let before = plugins(&decoded.object)?;
            received.object = Some(before.clone());
            received.object = Mutating::new(self, received.clone(), sent, evaluations).run(plugins, warnings)?;
            if let Some(object) = &mut received.object {
                attributes.mutate_last(object).map_err(stop)?;
                if !connects {
                    warnings.extend(owners::once(object, true));
                    same_namespace(request, sent, object)?;
                }
            }
            if let Some(after) = received.object.as_ref().filter(|after| **after != before) {
                mutated = Some(Mutated { before, after: after.clone() });
            }
            if let (Some(object), false) = (&received.object, connects) {
                let sent = Submission { object, ..sent };
                definition(self.minor(), request, object, stored.as_deref()).map_err(stop)?;
                received.object = Some(objects::finish(self.kinds(), sent, &around, warnings).map_err(stop)?);
            }
        }
        Ok((received, mutated))
    }
}

/// Whether a resource, or its subresource, is asked for this.
///
/// # Errors
/// The API server has no such method, and the text says so.
fn takes(resource: &Resource, subresource: &str, operation: Operation) -> Result<(), String> {
    let found = resource.subresource(subresource);
    let verbs = found.map_or(&resource.verbs, |found| &found.verbs);
    // A POST to these is a connection, and its object the options.
    let connects = found.is_some_and(|found| found.kind.ends_with("Options"));
    let has = |verb: &str| verbs.is_empty() || verbs.iter().any(|one| one == verb);
    let takes = match operation {
        Operation::Connect => connects && has("create"),
        Operation::Create => !connects && has("create"),
        Operation::Update => has("update") || has("patch"),
        Operation::Delete => has("delete"),
    };
    if takes {
        return Ok(());
    }
    let of =
        if subresource.is_empty() { resource.plural.clone() } else { format!("{}/{subresource}", resource.plural) };
    Err(format!("the API server does not allow {} of {of}: it has the verbs {}", operation.name(), verbs.join(", ")))
}

/// Whether a creation says which version of the object it is about, at which the storage fails (`store.Create` in apiserver
/// `pkg/storage/etcd3`). A dry run does not get there.
fn names_version(request: &Request) -> bool {
    let version = request.object.as_ref().and_then(|object| object.pointer("/metadata/resourceVersion")?.as_str());
    let creates = request.operation == Operation::Create && request.subresource.is_empty() && !request.dry_run;
    creates && version.is_some_and(|version| !version.is_empty())
}

/// Rejects an object that a mutation has put into another namespace (`EnsureObjectNamespaceMatchesRequestNamespace` in
/// apiserver `pkg/registry/rest/meta.go`).
fn same_namespace(request: &Request, sent: Submission<'_>, object: &Json) -> Result<(), Stop> {
    let namespace = object.pointer("/metadata/namespace").and_then(Json::as_str).unwrap_or_default();
    let is_other = ![namespace, sent.namespace].contains(&"") && namespace != sent.namespace;
    if request.subresource.is_empty() && is_other {
        let text = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(stop(Refused::Decode(text.to_owned())));
    }
    Ok(())
}

/// Rejects a definition of a custom resource that the API server would reject. [`create`] finds the errors in it.
fn definition(minor: Minor, request: &Request, object: &Json, old: Option<&Json>) -> Result<(), Refused> {
    let ResourceId { group, resource, .. } = &request.resource;
    let is_definition = (group.as_str(), resource.as_str()) == ("apiextensions.k8s.io", "customresourcedefinitions");
    if !is_definition || !request.subresource.is_empty() {
        return Ok(());
    }
    match create::create(minor, object, old) {
        Ok(_) => Ok(()),
        Err(create::Refused::NoVerdict(why)) => Err(Refused::NoVerdict(why)),
        Err(create::Refused::Status(Status { code: 422, causes, .. })) => {
            let name = quote(object.pointer("/metadata/name").and_then(Json::as_str).unwrap_or_default());
            let what = format!("CustomResourceDefinition.apiextensions.k8s.io {name}");
            Err(Refused::Validation { what, causes })
        }
        Err(create::Refused::Status(Status { message, .. })) => Err(Refused::Decode(message)),
    }
}

/// The API server's warning when a job is deleted (`REST.Delete` in `pkg/registry/batch/job/storage`).
fn left_behind(request: &Request) -> Option<String> {
    let ResourceId { group, resource, .. } = &request.resource;
    let is_job = (request.operation, group.as_str(), resource.as_str()) == (Operation::Delete, "batch", "jobs");
    let says = |key: &str| !request.options[key].is_null();
    (is_job && !says("propagationPolicy") && !says("orphanDependents")).then(|| {
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or \
         set propagationPolicy=Orphan to suppress this warning"
            .to_owned()
    })
}

/// Whether what is deleted is already on its way out, so that the API server answers without asking anybody
/// (`rest.BeforeDelete` for pods, `REST.Delete` in `pkg/registry/core/namespace/storage`).
fn is_under_way(request: &Request) -> bool {
    let (Operation::Delete, true, Some(old)) =
        (request.operation, request.resource.group.is_empty(), &request.old_object)
    else {
        return false;
    };
    let metadata = &old["metadata"];
    if metadata["deletionTimestamp"].is_null() || !request.subresource.is_empty() {
        return false;
    }
    match request.resource.resource.as_str() {
        "pods" => {
            let left = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
            // One that asks for less time is a new deletion.
            let asked = request.options["gracePeriodSeconds"].as_i64();
            left != 0 && asked.is_none_or(|asked| asked >= left)
        }
        "namespaces" => old["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty()),
        _ => false,
    }
}

/// Rejects a change of an object that has another `uid` (`Preconditions` of apiserver `pkg/storage`): the one that the
/// client means is gone.
fn same_object(request: &Request, object: &Json, old: &Stored) -> Result<(), Stop> {
    let uid = |of: &Json| of.pointer("/metadata/uid").and_then(Json::as_str).unwrap_or_default().to_owned();
    let (wanted, found) = (uid(object), uid(old));
    if wanted.is_empty() || wanted == found {
        return Ok(());
    }
    Err(stop(Refused::Conflict(format!(
        "Operation cannot be fulfilled on {} {}: StorageError: invalid object, Code: 4, Key: {NOT_SHOWN}, ResourceVersion: \
         0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}",
        request.resource.group_resource(),
        quote(&request.name),
    ))))
}
