//! The values of `authorizer` in expressions (apiserver `pkg/cel/library/authz.go`).

use std::sync::Arc;

pub use crate::library::authorization::{Attributes, Authorizer, Decision, Operator, Requirement, Selector, User};
use crate::value::{Authorization, Kind, ResourceCheck, Value};

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
