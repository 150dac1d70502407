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
//!
//! Each module uses only modules before it:
//!
//! 1. What is written in files: `format`, `places`, `patch`, `request`.
//! 2. The cluster: `extension`, `test_cluster`, `cluster`.
//! 3. What is tested, and what comes of it: `suite`, `expect`, `run`, `coverage`, `mutate`, `report`.
//! 4. From files to suites, and new ones: `loader`, `assemble`, `import`, `load`, `init`.

mod assemble;
mod cluster;
pub mod coverage;
mod expect;
mod extension;
pub mod format;
pub mod import;
pub mod init;
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
