//! kube-apiserver, offline: how it decodes and validates objects that a client sends ([`objects`]), how it evaluates
//! definitions and policies ([`create`]), and how it admits requests to a cluster that has them ([`requests`]), in
//! each supported minor.
//!
//! It answers word for word as that server does, or gives no verdict and the reason. The caller plugs in what a server
//! asks others: [webhooks](requests::Webhook), an [authorizer](requests::PartialAuthorizer), and a
//! [judge](requests::PodSecurity) of the Pod Security Standards.
//!
//! This crate is pure: no I/O, no clock, no environment.
//!
//! Each module uses only modules before it:
//!
//! 1. The texts of errors, and the checks of names and metadata: `validation`.
//! 2. The decoding, completion and validation of objects: `objects`.
//! 3. The validation of CRDs and policies: `create`.
//! 4. The admission of requests: `requests`.
#![warn(missing_docs)]

pub mod create;
pub mod objects;
pub mod requests;
mod validation;

k8s_openapi::k8s_if_le_1_35! {
    compile_error!("MutatingAdmissionPolicy is in admissionregistration.k8s.io/v1 from 1.36 on: enable the feature `v1_36` or a later one of k8s-openapi");
}
