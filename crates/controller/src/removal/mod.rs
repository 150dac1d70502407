//! Removal of a profile: its finalizer, and the deletion of its generated objects in an order that denies no request.

pub mod finalizer;
pub mod remove;
