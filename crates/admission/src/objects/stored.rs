//! Objects as the API server stores them: those that an update finds, and those that are deleted.
//!
//! A client that creates an object cannot set its status, its `uid` or its deletion time: [`super::receive`] strips
//! them. Nothing is stripped from stored objects. The separate type prevents confusion of the two.

use std::ops::Deref;

use serde_json::Value;

/// An object as the API server has it stored, as admission sees it: decoded and with defaults, with its status, its
/// `uid`, its finalizers and the time of its deletion.
///
/// Nothing but [`Kinds::stored`](super::Kinds::stored) makes one, so that an object that a client submits cannot be
/// taken for it:
///
/// ```compile_fail,E0308
/// # use palisade_admission::objects::{AdmissionObject, Submission, Resource};
/// # use serde_json::Value;
/// # fn wrong<'a>(resource: &'a Resource, submitted: &'a AdmissionObject, object: &'a Value) -> Submission<'a> {
/// Submission { resource, subresource: "", namespace: "default", object, old: Some(&submitted.object) }
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    pub(super) value: Value,
    /// The object itself, where `value` is the `Scale` that its subresource shows of it.
    pub(super) parent: Option<Value>,
    /// Whether a manifest stood for it, which names no `uid`.
    pub(super) completed: bool,
}

impl Stored {
    /// The object.
    pub fn into_value(self) -> Value {
        self.value
    }

    /// The object itself; none of a `Scale` that was given without it.
    pub(super) fn parent(&self) -> Option<&Value> {
        self.parent.as_ref()
    }

    /// Whether it was completed from a manifest. Then an update of it is a manifest, too.
    pub(super) fn is_completed(&self) -> bool {
        self.completed
    }
}

impl Deref for Stored {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}
