//! The controller: keeps what the API server enforces equal to what the profiles say.
//!
//! ```text
//!                 (pure)                                         (pure)
//! observe ---> resolve <--- compile -> check     probe ------> status
//!    ^            |                      |         ^              |
//!    |            +-------> apply <------+         |              v
//!    +---- our writes ------- | -------------------+           report
//! ```
//!
//! Beside it, `mutate` keeps what mutates pods: a policy of the API server, or else the webhook does it.
//!
//! `reconcile` is the driver; each stage is a module. What the controller knows of the cluster is in one place,
//! `world`, which watches fill. A restart reads everything and writes nothing that is already right.
//!
//! Enforcement never depends on this process: the API server judges pods by the objects that are left in it.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate does I/O: it has a clock, files and an environment"
)]

mod apply;
mod call;
mod compile;
mod converge;
mod events;
mod health;
mod memory;
mod metrics;
mod mutate;
mod native;
mod observe;
mod options;
mod probe;
mod queue;
mod reconcile;
mod redirects;
mod remove;
mod report;
mod resolve;
mod revision;
mod run;
mod status;
mod table;
mod world;

pub use options::Options;
pub use probe::ApiServers;
pub use run::{Access, Controller, Error, Running, run};
