//! The controller: keeps what the API server enforces equal to what the profiles say.
//!
//! ```text
//! observe ----> world ----+--> repairs      what somebody else changed of the policies in force is restored
//!    ^                    |
//!    |                    +--> parameters   resolve -> writer: the parameters of each namespace
//!    |                    |
//!    |                    +--> passes       compile -> check -> try -> (parameters) -> apply -> probe -> report
//!    |                                |
//!    +---- our writes ----------------+
//! ```
//!
//! There are three lanes, and none waits for another: each has a queue of its own, and looks at as many profiles at a
//! time as are due. What they share of a profile is in `state`, behind locks that are never held while anything is
//! awaited. Repairs come first by that alone: nothing stands before them. Beside the lanes, `probe` asks each API
//! server what it does, and `mutate` keeps what mutates pods: a policy of the API server, or else the webhook does it. And
//! `registration` keeps the entries of the webhook.
//!
//! Each stage is a module. What the controller knows of the cluster is in one place, `world`, which watches fill. A
//! restart reads everything and writes nothing that is already right.
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
mod conditions;
mod context;
mod converge;
mod events;
mod health;
mod lane;
mod memory;
mod metrics;
mod mutate;
mod native;
mod observe;
mod options;
mod params;
mod probe;
mod queue;
mod reconcile;
mod redirects;
mod registration;
mod remove;
mod repair;
mod report;
mod resolve;
mod revision;
mod run;
mod state;
mod status;
mod table;
#[cfg(test)]
mod tests;
mod trial;
mod world;
mod writer;

pub use options::Options;
pub use probe::ApiServers;
pub use run::{Access, Controller, Error, Running, run};
