//! Kubernetes objects as JSON: panic-free [edits](json), label [selectors](selector), helpers for [existing](existing)
//! objects and their [owners](owners), fixtures of small [pods](pod) and [workloads](workload) for tests of policies,
//! and bounded [strings](text) for messages.
//!
//! The lowest crate: the offline API server, its tools and the product use it, and it depends on none of them. It is
//! pure: no I/O, no clock, no environment.
#![warn(missing_docs)]

pub mod existing;
pub mod json;
pub mod owners;
pub mod pod;
pub mod selector;
pub mod text;
pub mod workload;
