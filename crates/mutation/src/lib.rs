//! How profiles mutate pods, as a JSON patch (RFC 6902).
//!
//! [`Plan::new`] takes the mutations of a namespace's profiles, with the values of their parameters there;
//! [`Plan::patch`] turns them into a patch for one request. A patch adds unset fields and replaces references of
//! images, and nothing else: [`PatchOperation`] knows no other operation. Patching twice changes nothing more.
//!
//! Several profiles on one namespace apply in the order of their names: the next one finds the defaults of the first
//! one set. If several profiles redirect images, a plan follows only the first. A webhook and a policy know one profile
//! each, so there every profile redirects; the controller and `palisade lint` (`redirected-twice`) report two profiles
//! that redirect each other's images.
//!
//! [`review`] and [`mutate`] are the same for a webhook: `AdmissionReview` in, `AdmissionReview` out.
//!
//! This crate is pure: no I/O, no clock, no environment.

pub mod mutate;
mod patch;
mod plan;
pub mod review;

pub use patch::{Change, Patch, PatchOperation};
pub use plan::{MutationRequest, Plan, PodOperation};
