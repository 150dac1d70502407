//! What kube-apiserver does, offline: with objects that it is sent ([`objects`]), with the definitions and policies that
//! it is given ([`create`]), and with requests to a cluster that has them ([`admission`]), in each supported minor.
//!
//! It says what that server says, word for word, or that there is no verdict and why. What a server asks outside of
//! itself is plugged in by the caller: [webhooks](admission::Webhook), an [authorizer](admission::Answers), and a
//! [judge](admission::PodSecurity) of the Pod Security Standards.
//!
//! This crate is pure: no I/O, no clock, no environment.

pub mod admission;
pub mod create;
pub mod objects;
