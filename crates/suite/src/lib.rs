//! Tests of admission policies without a cluster: a suite has a cluster made of files, and requests with the answers
//! that it expects from the API server.
//!
//! ```text
//! file --load--> Suite --run--> Outcomes, coverage --mutate--> survivors --report--> human, json, junit, tap
//! ```
//!
//! Suites are YAML of our own ([`format`]), or files of kaptest and `kyverno test` ([`import`]). The verdicts are those
//! of `palisade-apiserver`.
//!
//! This crate is pure: the caller reads files for it, through [`Files`].

mod assemble;
mod cluster;
pub mod coverage;
mod expect;
mod extension;
pub mod format;
pub mod import;
pub mod init;
mod load;
pub mod mutate;
mod patch;
pub mod places;
pub mod report;
mod request;
mod run;
mod test_cluster;

pub use expect::Difference;
pub use extension::{Check, Extension, Made, Replaced, Scaffolded, Text, TextKind, Wrong};
pub use load::{Case, Files, Server, Suite, load};
pub use run::{CaseResult, Explanation, Status, run};
