//! The webhook: fills in what a profile says pods should have, where the API server cannot do it by itself.
//!
//! ```text
//!                                  watches                (pure)
//! API server  <------------------  world   -->  filler  <--+
//!     |                                                    | call, reply
//!     |  POST /mutate/{profile}    server  -->  review  ---+
//!     +------------------------->                (pure)
//!
//! upkeep: certificates (Secret) and registration (MutatingWebhookConfiguration), again and again
//! ```
//!
//! Nothing depends on it: a pod that it was not asked about is judged as it is.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate does I/O: it has a clock, files and an environment"
)]

mod certificates;
mod metrics;
mod options;
mod registration;
mod run;
mod server;
mod upkeep;
mod world;

use palisade_mutation::{filler, review};

pub use options::{Certificates, Options};
pub use run::{Error, Running, run, start};
