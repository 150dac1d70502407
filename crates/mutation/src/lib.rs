//! Mutation of pods by profiles, as a JSON patch (RFC 6902).
//!
//! [`Plan::new`] takes the mutations of a namespace's profiles, with the values of their parameters there;
//! [`Plan::patch`] turns them into a patch for one request. A patch adds unset fields and elements of lists. It replaces
//! only references of images and variables that the profile always sets, and removes only `workingDir`. Patching is
//! idempotent.
//!
//! Several profiles on one namespace apply in the order of their names: later ones find the defaults of earlier ones
//! set. If several profiles redirect images, a plan uses only the first. A webhook entry and a policy contain one
//! profile each, so there every profile redirects; the controller and `palisade lint` (`redirected-twice`) report two
//! profiles that redirect each other's images.
//!
//! [`review`] and [`mutate`] are the same for a webhook: `AdmissionReview` in, `AdmissionReview` out.
//!
//! This crate is pure: no I/O, no clock, no environment.
#![warn(missing_docs)]

pub mod mutate;
mod patch;
mod plan;
pub mod review;

pub use patch::{Change, Patch, PatchOperation};
pub use plan::{MutationRequest, Plan, PodOperation};
