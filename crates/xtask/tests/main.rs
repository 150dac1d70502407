//! Tests of the whole project: its files, documents, CRDs and dependencies, in one test binary, which is linked once. A module
//! has one subject: `cargo test -p xtask --test project -- compatibility::` compares the CRDs with the last release.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests that read the project's files")]

mod catalogue;
mod circles;
mod compatibility;
mod privilege;
mod published;
mod purity;
mod tidy;
