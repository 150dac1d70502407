//! The values of `authorizer` in expressions.

use std::sync::{Arc, Mutex, PoisonError};

use palisade_cel::{
    authorizer::{self, Attributes, Authorizer, Decision, User},
    eval::Activation,
    value::Value,
};

use super::Request;

/// Decides authorization checks that expressions make, if the answer is known.
pub trait PartialAuthorizer: Send + Sync {
    /// Whether the user may do it, if that is known.
    fn answer(&self, user: &User, attributes: &Attributes) -> Option<Decision>;
}

/// The answers of every API server: members of `system:masters` may do all (`NewPrivilegedGroups` in apiserver
/// `pkg/authorization/authorizerfactory/builtin.go`). The permissions of other users are unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Privileged;

impl PartialAuthorizer for Privileged {
    fn answer(&self, user: &User, _: &Attributes) -> Option<Decision> {
        let privileged = user.groups.iter().any(|group| group == "system:masters");
        privileged.then(|| Decision { allowed: true, ..Decision::default() })
    }
}

/// Uses a [`PartialAuthorizer`], and records the first question without an answer.
pub(crate) struct RecordingAuthorizer {
    authorizer: Arc<dyn PartialAuthorizer>,
    unanswered: Mutex<Option<String>>,
}

impl RecordingAuthorizer {
    pub fn new(authorizer: Arc<dyn PartialAuthorizer>) -> Self {
        Self { authorizer, unanswered: Mutex::new(None) }
    }

    /// Takes the first question without an answer, in words, if there is one.
    pub fn take_unanswered(&self) -> Option<String> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Default for RecordingAuthorizer {
    fn default() -> Self {
        Self::new(Arc::new(Privileged))
    }
}

impl Authorizer for RecordingAuthorizer {
    fn authorize(&self, user: &User, attributes: &Attributes) -> Decision {
        self.authorizer.answer(user, attributes).unwrap_or_else(|| {
            let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
            unanswered.get_or_insert_with(|| question(user, attributes));
            Decision::default()
        })
    }
}

fn question(user: &User, wanted: &Attributes) -> String {
    let mut text = format!("whether {:?} may {} ", user.name, wanted.verb);
    text += wanted.path.as_deref().unwrap_or(&wanted.resource);
    let parts =
        [(".", &wanted.group), ("/", &wanted.subresource), (" ", &wanted.name), (" in namespace ", &wanted.namespace)];
    for (before, part) in parts.into_iter().filter(|(_, part)| !part.is_empty()) {
        text = text + before + part;
    }
    text
}

/// The variables `authorizer` and `authorizer.requestResource`.
#[derive(Clone, Debug)]
pub(crate) struct Authority {
    pub authorizer: Value<'static>,
    pub request_resource: Value<'static>,
}

impl Authority {
    pub fn bind<'a>(&self, activation: Activation<'a>) -> Activation<'a> {
        activation
            .bind("authorizer", self.authorizer.clone())
            .bind("authorizer.requestResource", self.request_resource.clone())
    }
}

/// The variables `authorizer` and `authorizer.requestResource` for a request.
pub(crate) fn authority(request: &Request, authorizer: &Arc<RecordingAuthorizer>) -> Authority {
    let user = User {
        name: request.user.name.clone(),
        groups: request.user.groups.clone(),
        extra: request.user.extra.clone(),
    };
    let attributes = Attributes {
        group: request.resource.group.clone(),
        resource: request.resource.resource.clone(),
        subresource: request.subresource.clone(),
        namespace: request.namespace.clone(),
        name: request.name.clone(),
        ..Attributes::default()
    };
    Authority {
        authorizer: authorizer::authorizer(user.clone(), Arc::clone(authorizer) as _),
        request_resource: authorizer::request_resource(user, Arc::clone(authorizer) as _, attributes),
    }
}
