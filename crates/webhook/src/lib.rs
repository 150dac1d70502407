//! The webhook: mutates pods if the API server does not support MutatingAdmissionPolicy.
//!
//! ```text
//!                watches                    (pure)
//! API server  <-----------  cluster  -->  profiles (gate)  -->  mutator  <--+
//!     |                                                                     | call, reply
//!     |  POST /mutate/{profile}           server  -->  review  -------------+
//!     +---------------------------------->              (pure)
//!
//! upkeep: maintains the certificate (Secret) and the data for its registration (ConfigMap)
//! ```
//!
//! It mutates by the generation that the controller has put in effect, not by a newer edit of the profile. Enforcement
//! does not depend on it: API servers also validate pods that it did not mutate.
//!
//! Each module uses only modules before it:
//!
//! 1. Tools: `options`, `metrics`, `certificates`, `registration`.
//! 2. The profiles in effect: `mutator`, `profiles`, `cluster`.
//! 3. Server and upkeep: `server`, `upkeep`, `run`.

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
