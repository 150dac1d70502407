//! The webhook: fills in what a profile says pods should have, where the API server cannot do it by itself.
//!
//! ```text
//!                watches                  (pure)
//! API server  <-----------  world  -->  profiles (gate)  -->  filler  <--+
//!     |                                                                  | call, reply
//!     |  POST /mutate/{profile}           server  -->  review  ----------+
//!     +---------------------------------->              (pure)
//!
//! upkeep: certificates (Secret), and what the controller registers of them (ConfigMap), again and again
//! ```
//!
//! It goes by what the controller has put in force, and not by what an admin has just written. Nothing depends on it: a
//! pod that it was not asked about is judged as it is.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate does I/O: it has a clock, files and an environment"
)]

mod certificates;
mod filler;
mod metrics;
mod options;
mod profiles;
mod registration;
mod run;
mod server;
mod upkeep;
mod world;

use palisade_mutation::review;

pub use options::{Certificates, Options};
pub use run::{Error, Running, run, start};
