//! The controller: keeps the admission policies in the API server in sync with the profiles.
//!
//! ```text
//! observe ----> store ----+--> repairs      restore policies and bindings that another client changed
//!    ^                    |
//!    |                    +--> parameters   resolve -> jobs -> write: the parameters of each namespace
//!    |                    |
//!    |                    +--> reconcile    compile -> check -> try -> (parameters) -> apply -> probe -> report
//!    |                    |           |
//!    |                    +--> rollouts     evaluate -> promote: namespaces to stricter stages, in waves
//!    |                    |           |
//!    |                    +--> exceptions   the state of exception requests
//!    |                                |
//!    +---- our writes ----------------+
//! ```
//!
//! There are five lanes, and none waits for another: each has a separate queue, and processes all due profiles
//! concurrently (the lane of exceptions processes namespaces). Their shared data of a profile is in `state`, behind locks
//! that are never held while awaiting. Therefore repairs wait for no other work. Beside the lanes, `probe` asks each API
//! server what it enforces, `scan` evaluates existing objects, `mutate` maintains the engine that mutates pods (a policy
//! of the API server, otherwise the webhook), and `registration` maintains the entries of the webhook.
//!
//! The controller's copy of the cluster is in one place, `store`, which watches keep up to date. After a restart, the
//! controller reads all objects and writes none that is already correct.
//!
//! One of several replicas is the leader ([`leader`]); the others keep their copy up to date, and start no work.
//!
//! Enforcement never depends on this process: API servers evaluate the policies in the cluster.
//!
//! Each module uses only modules before it:
//!
//! 1. Tools: `call`, `text`, `table`, `packed`, `queue`, `lease`, `options`, `status`, `metrics`, `fence`, `leader`, `events`,
//!    `traces`.
//! 2. Known state: `asked`, `store`, `redirects`, `health`, `accepted`, `compare`, `converge`, `native`.
//! 3. Stages that need no context: `observe`, `compile`, `revision`, `last_good`, `resolve`, `jobs`, `tenancy`, `judge`,
//!    `waves`, `state`, `conditions`, `registration`, `probe`.
//! 4. Shared by all stages: `context`, `pages`.
//! 5. Stages: `finalizer`, `delete`, `trial`, `apply`, `repair`, `write`, `params`, `rollout`, `exceptions`,
//!    `scan`, `mutate`, `remove`, `report`.
//! 6. The driver: `lane`, `progress`, `reconcile`, `run`.
//! 7. The command line: `cleanup`, `verify`, `command`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate does I/O: it has a clock, files and an environment"
)]

mod accepted;
mod apply;
mod asked;
mod call;
mod cleanup;
mod command;
mod compare;
mod compile;
mod conditions;
mod context;
mod converge;
mod delete;
mod events;
mod exceptions;
mod fence;
mod finalizer;
mod health;
mod jobs;
mod judge;
mod lane;
mod last_good;
mod leader;
mod lease;
mod metrics;
mod mutate;
mod native;
mod observe;
mod options;
mod packed;
mod pages;
mod params;
mod probe;
mod progress;
mod queue;
mod reconcile;
mod redirects;
mod registration;
mod remove;
mod repair;
mod report;
mod resolve;
mod revision;
mod rollout;
mod run;
mod scan;
mod state;
mod status;
mod store;
mod table;
mod tenancy;
#[cfg(test)]
mod tests;
mod text;
#[cfg(feature = "traces")]
mod traces;
mod trial;
mod verify;
mod waves;
mod write;

pub use command::main;
pub use context::Access;
pub use lease::Timing;
pub use metrics::example as example_metrics;
pub use options::{ApiServers, Options, PolicyReports, ScanInterval};
pub use run::{Controller, Error, Running, run};
