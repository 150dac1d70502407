//! Tests of admission policies without a cluster: a suite has a cluster made of files, and requests with the answers
//! that it expects from the API server.
//!
//! ```text
//! file --load--> Suite --run--> Outcomes, coverage --mutate--> survivors --report--> human, json, junit, tap
//! ```
//!
//! Suites are YAML of our own ([`format`]), or files of kaptest and `kyverno test` ([`import`]). The verdicts are those
//! of `palisade-admission`.
//!
//! This crate is pure: the caller reads files for it, through [`Files`].
//!
//! Each module uses only modules before it:
//!
//! 1. The content of files: `format`, `places`, `patch`, `request`.
//! 2. The cluster: `extension`, `test_cluster`, `cluster`.
//! 3. Tests and their results: `expect`, `assertion`, `suite`, `run`, `coverage`, `mutate`, `junit`, `report`.
//! 4. From files to suites, and new ones: `loader`, `assemble`, `import`, `load`, `init`, `create`.
#![warn(missing_docs)]

mod assemble;
mod assertion;
mod cluster;
pub mod coverage;
pub mod create;
mod expect;
mod extension;
pub mod format;
pub mod import;
pub mod init;
pub mod junit;
mod load;
mod loader;
pub mod mutate;
mod patch;
pub mod places;
pub mod report;
mod request;
mod run;
mod suite;
mod test_cluster;

pub use expect::Difference;
pub use extension::{Check, Extension, Made, Replaced, Scaffolded, Text, TextKind, Wrong};
pub use load::load;
pub use loader::Files;
pub use run::{CaseResult, Explanation, Status, run};
pub use suite::{Case, Suite};
pub use test_cluster::Server;
