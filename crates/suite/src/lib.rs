//! Tests of admission policies without a cluster: a suite is a cluster made of files, and requests with what the API
//! server is to say of them.
//!
//! ```text
//! file --load--> Suite --run--> Outcomes, coverage --mutate--> survivors --report--> human, json, junit, tap
//! ```
//!
//! Suites are read from YAML of our own ([`format`]), and from what kaptest and `kyverno test` read
//! ([`import`]). The verdicts are those of `palisade-apiserver`.
//!
//! This crate is pure: files are read by whoever calls it, through [`Files`].

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
