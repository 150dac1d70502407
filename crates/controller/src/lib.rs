//! The controller: keeps the admission policies in the API server in sync with the profiles.
//!
//! ```text
//! observe ----> store ----+--> repairs      restore policies and bindings that another client changed
//!    ^                    |
//!    |                    +--> parameters   resolve -> jobs -> write: the parameters of each namespace
//!    |                    |
//!    |                    +--> reconcile    compile -> check -> dry run -> (parameters) -> apply -> probe -> report
//!    |                    |           |
//!    |                    +--> rollouts     evaluate -> promote: namespaces to stricter stages, in waves
//!    |                    |           |
//!    |                    +--> exceptions   the state of exception requests
//!    |                    |           |
//!    |                    +--> objects      resolve -> plan -> write: the objects of `spec.generate` in a namespace
//!    |                                |
//!    +---- our writes ----------------+
//! ```
//!
//! There are six lanes, and none waits for another: each has a separate queue, and processes all due profiles
//! concurrently (the lanes of exceptions and of objects process namespaces). Their shared data of a profile is in `context::state`,
//! behind locks that are never held while awaiting. Therefore repairs wait for no other work. Beside the lanes, `probe`
//! asks each API server what it enforces, `scan` evaluates existing objects, `mutation` maintains the engine that
//! mutates pods (a policy of the API server, otherwise the webhook), and `registration` maintains the entries of the
//! webhook.
//!
//! `generations::target` decides which generation of a profile must be in effect.
//!
//! The controller's copy of the cluster is in one place, `watch::store`, which watches keep up to date. After a
//! restart, the controller reads all objects and writes none that is already correct.
//!
//! One of several replicas is the leader ([`leader`]); the others keep their copy up to date, and start no work.
//!
//! Enforcement never depends on this process: API servers evaluate the policies in the cluster.
//!
//! Each module uses only modules before it:
//!
//! 1. Tools: `api_request`, `message`, `object_kind`, `object_name`, `queue`.
//! 2. Known state: `watch`, `generations`, `generated`, `param_plan`.
//! 3. Reports and process: `pacing`, `status`, `metrics`, `leader`, `options`, `traces`.
//! 4. Work that needs no context: `evaluation`, `waves`, `object_plan`, `registration`, `probe`.
//! 5. Shared by all stages: `context`.
//! 6. Stages: `apply`, `params`, `tenant_objects`, `mutation`, `removal`, `rollout`, `exceptions`, `scan`.
//! 7. The driver: `reconcile`, `lanes`.
//! 8. The command line: `command`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate does I/O: it has a clock, files and an environment"
)]

mod api_request;
mod apply;
mod command;
mod context;
mod evaluation;
mod exceptions;
mod generated;
mod generations;
mod lanes;
mod leader;
mod message;
mod metrics;
mod mutation;
mod object_kind;
mod object_name;
mod object_plan;
mod options;
mod pacing;
mod param_plan;
mod params;
mod probe;
mod queue;
mod reconcile;
mod registration;
mod removal;
mod rollout;
mod scan;
mod status;
mod tenant_objects;
#[cfg(test)]
mod tests;
#[cfg(feature = "traces")]
mod traces;
mod watch;
mod waves;

pub use command::main;
pub use context::Access;
pub use lanes::run::{Controller, Error, Running, run};
pub use leader::lease::Timing;
pub use metrics::example as example_metrics;
pub use object_kind::ObjectKind;
pub use options::{ApiServers, Options, PolicyReports, ScanInterval};
