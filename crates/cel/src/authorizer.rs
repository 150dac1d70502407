//! What answers `authorizer` in expressions (apiserver `pkg/cel/library/authz.go`).

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::value::{Authorization, Kind, ResourceCheck, Value};

/// Answers authorization checks, as an API server's authorizer does.
pub trait Authorizer: Send + Sync {
    /// Whether the user may do it.
    fn authorize(&self, user: &User, attributes: &Attributes) -> Decision;
}

/// Who wants to do something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What the authenticator adds.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What is wanted: either a path or a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `get`, `create` and so on.
    pub verb: String,
    /// The path, of a request that is not for a resource.
    pub path: Option<String>,
    /// The API group; the version is `*`.
    pub group: String,
    /// The resource in plural.
    pub resource: String,
    /// The subresource, or nothing.
    pub subresource: String,
    /// The namespace, or nothing.
    pub namespace: String,
    /// The name, or nothing.
    pub name: String,
    /// The field selector as the expression gives it.
    pub field_selector: String,
    /// The label selector as the expression gives it.
    pub label_selector: String,
}

/// What an authorizer says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed. No opinion is no permission.
    pub allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong, if something did.
    pub error: Option<String>,
}

impl fmt::Debug for dyn Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorizer")
    }
}

/// The variable `authorizer`: checks on behalf of a user.
pub fn authorizer(user: User, authorizer: Arc<dyn Authorizer>) -> Value<'static> {
    Kind::Authorizer(Authorization { user: Arc::new(user), authorizer }).into()
}

/// The variable `authorizer.requestResource`: checks of the resource that the request is for. Of its attributes, verb
/// and path do not matter.
pub fn request_resource(user: User, authorizer: Arc<dyn Authorizer>, attributes: Attributes) -> Value<'static> {
    let by = Authorization { user: Arc::new(user), authorizer };
    Kind::ResourceCheck(ResourceCheck { by, attributes }).into()
}
