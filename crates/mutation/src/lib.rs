//! What is defaulted in pods, as a JSON patch (RFC 6902).
//!
//! [`Plan::new`] takes what the profiles of a namespace change, with the parameters that they have there;
//! [`Plan::patch`] says what that is for one request. A patch adds fields that are unset and replaces references of
//! images, and nothing else: [`PatchOperation`] knows no other operation. Patching twice changes nothing more.
//!
//! Several profiles on one namespace are followed in the order of their names: what the first has defaulted, the next
//! finds set. Of several that redirect images a plan follows the first only. A webhook and a policy know one profile
//! each: there every one redirects, and two that do not leave each other's images alone are told of, by the controller
//! and by `palisade lint` (`redirected-twice`).
//!
//! [`review`] and [`mutate`] are the same for a webhook: `AdmissionReview` in, `AdmissionReview` out.
//!
//! This crate is pure: no I/O, no clock, no environment.

pub mod mutate;
mod patch;
mod plan;
pub mod review;

pub use patch::{Change, Patch, PatchOperation};
pub use plan::{Operation, Plan, Request};
