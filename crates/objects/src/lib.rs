//! Kubernetes objects as JSON: how they are [changed](json) without a panic whatever is in them, how label selectors
//! [match](selector) them, which [exist](existing) and [belong](owners) to which workload, and small [pods](pod) and the
//! [workloads](workload) around them, for whoever tries policies.
//!
//! The lowest crate: the offline API server, its tools and the product all use it, and it knows none of them. It is
//! pure: no I/O, no clock, no environment.

pub mod existing;
pub mod json;
pub mod owners;
pub mod pod;
pub mod selector;
pub mod workload;
