//! Policies of both kinds, compiled, and their bindings.

pub(super) mod mutating;
pub(super) mod validating;
