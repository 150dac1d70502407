//! kube-apiserver, offline: how it decodes and validates objects that a client sends ([`objects`]), how it judges
//! definitions and policies ([`create`]), and how it admits requests to a cluster that has them ([`admission`]), in
//! each supported minor.
//!
//! It answers word for word as that server does, or gives no verdict and the reason. The caller plugs in what a server
//! asks others: [webhooks](admission::Webhook), an [authorizer](admission::Answers), and a
//! [judge](admission::PodSecurity) of the Pod Security Standards.
//!
//! This crate is pure: no I/O, no clock, no environment.
//!
//! Each module uses only modules before it:
//!
//! 1. How mistakes read, and the checks of names and metadata: `validation`.
//! 2. What a server makes of an object: `objects`.
//! 3. What it says of definitions and policies: `create`.
//! 4. What it answers to a request: `admission`.

pub mod admission;
pub mod create;
pub mod objects;
mod validation;
