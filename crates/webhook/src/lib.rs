//! The webhook: mutates pods as profiles say, where the API server cannot do it by itself.
//!
//! ```text
//!                watches                    (pure)
//! API server  <-----------  cluster  -->  profiles (gate)  -->  mutator  <--+
//!     |                                                                     | call, reply
//!     |  POST /mutate/{profile}           server  -->  review  -------------+
//!     +---------------------------------->              (pure)
//!
//! upkeep: keeps the certificate (Secret) and what the controller registers of it (ConfigMap) up to date
//! ```
//!
//! It mutates by the generation that the controller has put in force, not by what an admin has just written. Nothing
//! depends on it: API servers validate a pod that it did not mutate as it is.
//!
//! Each module uses only modules before it:
//!
//! 1. Tools: `options`, `metrics`, `certificates`, `registration`.
//! 2. What is in force: `mutator`, `profiles`, `cluster`.
//! 3. What it serves and maintains: `server`, `upkeep`, `run`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate does I/O: it has a clock, files and an environment"
)]

mod certificates;
mod cluster;
mod metrics;
mod mutator;
mod options;
mod profiles;
mod registration;
mod run;
mod server;
mod upkeep;

use palisade_mutation::review;

pub use metrics::example as example_metrics;
pub use options::{Certificates, Options};
pub use run::{Error, Running, run, start};
