//! The built-in admission plugins of kube-apiserver: one file each, and [`table`] with their order.
//!
//! A plugin mutates the object of a request, validates it, or both (`k8s.io/apiserver/pkg/admission/interfaces.go`).
//! All mutating parts run before mutating policies and webhooks, and again if those changed something; all validating
//! parts run once the object is final and valid, around the validating policies. The first plugin that denies ends the
//! request.
//!
//! # Objects that are not in the files
//!
//! Plugins look up objects, and the files rarely have all of them. The rules are the same for all plugins:
//!
//! - A Namespace that is in no file exists, without labels, and so does the `ServiceAccount` `default` of each
//!   namespace. The two `PriorityClasses` of the system exist. A Node that is in no file has no topology labels.
//! - An object that a request names and no file has is missing if the files have others of its kind (and namespace),
//!   and unknown if they have none. If it is missing, the request is denied as by the API server; if it is unknown,
//!   there is no verdict.
//! - Objects that apply by themselves (`LimitRange`, `ResourceQuota`, a default class, a webhook) exist only if a file
//!   has them.
#![allow(clippy::unnecessary_wraps, reason = "all plugins have the same form, also those that never refuse")]

mod certificate_approval;
mod certificate_signing;
mod certificate_subject;
mod cluster_trust_bundles;
mod default_class;
mod default_ingress_class;
mod default_storage_class;
mod limit_ranger;
mod namespace_lifecycle;
mod node_declared_features;
mod pod_resize;
mod pod_security;
mod pod_topology_labels;
mod priority;
mod resource_quota;
mod resources;
mod runtime_class;
mod selection;
mod service_account;
mod signers;
mod storage_protection;
mod table;
mod taint_nodes;
mod tolerations;
mod volume_resize;
mod webhooks;

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::{Cluster, Operation, Request, ResourceId, refusal::forbidden};
use crate::objects::{Refused, Submission};

pub use selection::UnknownPlugin;
pub use table::{ALL, Plugin};
pub(crate) use table::{MUTATING_POLICIES, MUTATING_WEBHOOKS, VALIDATING_POLICIES};

type Object = Map<String, Json>;

/// Changes the object of a request, or rejects the request.
type Mutate = fn(&Attributes<'_>, &mut Json) -> Result<(), Refused>;

/// Rejects a request, or adds remarks. Deletions have no object.
type Validate = fn(&Attributes<'_>, Option<&Json>, &mut PluginRemarks) -> Result<(), Refused>;

/// The remarks of plugins on a request that they admit.
#[derive(Clone, Debug, Default)]
pub(crate) struct PluginRemarks {
    /// The warnings for the client.
    pub warnings: Vec<String>,
    /// The annotations of the audit event.
    pub annotations: BTreeMap<String, String>,
    /// Why there is no verdict, unless something else denies the request.
    pub unjudged: Vec<String>,
}

/// When plugins run: before the policies, or after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Before,
    After,
}

/// A request as plugins see it.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub cluster: &'a Cluster,
    /// The request. Its objects may be as the client sent them: plugins take those that they are given.
    pub request: &'a Request,
    /// The object as it is stored.
    pub old: Option<&'a Json>,
}

/// An object that a request names.
enum Found<'a> {
    Object(&'a Json),
    /// The files have others of its kind, and not this one.
    Missing,
    /// The files have none of its kind.
    Unknown,
}

impl<'a> Attributes<'a> {
    /// Whether the request is for this resource of the API group and this subresource; empty for the resource itself.
    fn is(&self, group: &str, resource: &str, subresource: &str) -> bool {
        let ids = &self.request.resource;
        ids.group == group && ids.resource == resource && self.request.subresource == subresource
    }

    fn creates(&self) -> bool {
        self.request.operation == Operation::Create
    }

    fn updates(&self) -> bool {
        self.request.operation == Operation::Update
    }

    fn namespace(&self) -> &'a str {
        &self.request.namespace
    }

    /// The refusal that `admission.NewForbidden` makes of a reason.
    fn forbidden(&self, why: impl AsRef<str>) -> Refused {
        Refused::Forbidden(forbidden(self.request, why.as_ref()))
    }

    /// All objects of a kind in the files; of one namespace, unless that is empty.
    fn all(&self, group: &str, kind: &str, namespace: &str) -> impl Iterator<Item = &'a Json> {
        let namespace = namespace.to_owned();
        let stored = self.cluster.stored(group, kind);
        stored.filter(move |one| namespace.is_empty() || one.namespace == namespace).map(|one| &one.object)
    }

    /// The object of a kind with this name; in a namespace, unless that is empty.
    fn find(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Found<'a> {
        let mut found = Found::Unknown;
        for object in self.all(group, kind, namespace) {
            if object["metadata"]["name"] == name {
                return Found::Object(object);
            }
            found = Found::Missing;
        }
        found
    }

    /// The message for an object that a request names and that nothing is known of.
    fn unknown(plugin: &str, kind: &str, name: &str, depends: &str) -> Refused {
        Refused::NoVerdict(format!(
            "admission plugin {plugin}: the request names the {kind} {name:?}, and no file has a {kind}: the API server \
             denies the request if it does not exist{depends}; add the {kind} to the cluster's files"
        ))
    }

    /// The object of a request after all mutating plugins, before mutating policies and webhooks.
    ///
    /// # Errors
    /// A plugin denies the request, or its answer is unknown.
    pub fn mutate(&self, object: &Json) -> Result<Json, Refused> {
        let mut object = object.clone();
        self.run(Phase::Before, MUTATING_POLICIES, |plugin| match plugin.mutate {
            Some(mutate) => mutate(self, &mut object),
            None => Ok(()),
        })?;
        Ok(object)
    }

    /// Runs the mutating plugins that come after the mutating policies.
    ///
    /// # Errors
    /// As of [`Self::mutate`].
    pub fn mutate_last(&self, object: &Json) -> Result<(), Refused> {
        let mut object = object.clone();
        self.run(Phase::After, MUTATING_POLICIES, |plugin| match plugin.mutate {
            Some(mutate) => mutate(self, &mut object),
            None => Ok(()),
        })
    }

    /// Runs the validating plugins before or after the validating policies. A missing verdict is among the remarks,
    /// because a later plugin may certainly deny the request.
    ///
    /// # Errors
    /// A plugin denies the request.
    pub fn validate(&self, phase: Phase, object: Option<&Json>, remarks: &mut PluginRemarks) -> Result<(), Refused> {
        self.run(phase, VALIDATING_POLICIES, |plugin| match plugin.validate.map(|check| check(self, object, remarks)) {
            Some(Err(Refused::NoVerdict(why))) => {
                remarks.unjudged.push(why);
                Ok(())
            }
            Some(result) => result,
            None => Ok(()),
        })
    }

    /// Does something with each plugin that runs, before or after one of them.
    fn run(
        &self,
        phase: Phase,
        policies: &str,
        mut act: impl FnMut(&'static Plugin) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let mut passed = Phase::Before;
        for plugin in ALL {
            if plugin.name == policies {
                passed = Phase::After;
            } else if passed == phase && self.cluster.plugins().runs(plugin, self.cluster.minor()) {
                act(plugin)?;
            }
        }
        Ok(())
    }
}

/// The elements of a list; none of what is not a list.
fn items(list: &Json) -> impl Iterator<Item = &Json> {
    list.as_array().into_iter().flatten()
}

impl Cluster {
    /// A new object after the mutating plugins, as far as their results are known. Nothing denies an object that
    /// already exists.
    pub fn plugged(&self, sent: Submission<'_>) -> Json {
        let ids = ResourceId::new(&sent.resource.group, &sent.resource.version, &sent.resource.plural);
        let request = Request::creation(ids, &sent.resource.kind, sent.namespace, sent.object);
        let attributes = Attributes { cluster: self, request: &request, old: None };
        let mut object = sent.object.clone();
        for plugin in ALL.iter().filter(|plugin| self.plugins().runs(plugin, self.minor())) {
            let Some(mutate) = plugin.mutate else { continue };
            let mut changed = object.clone();
            if mutate(&attributes, &mut changed).is_ok() {
                object = changed;
            }
        }
        object
    }
}
