//! How far `palisade-cel` agrees with kube-apiserver's own CEL code, whose answers `tests/oracle` keeps, and
//! `palisade-admission` with an API server that was asked about the policies and objects of other projects ([`cases`]).
#![allow(clippy::disallowed_methods, reason = "this reads the project's files; it is no part of the product")]

mod bindings;
pub mod cases;
mod compare;
mod lines;
mod report;
mod specification;
pub mod spell;
mod timing;

use std::path::{Path, PathBuf};

pub use compare::{Aspect, Comparison, Difference, Subject};
pub use lines::{COMPLETE, Error, Line, file, goldens};
pub use report::{Found, Report};
pub use specification::Specification;
pub use timing::Timing;

/// The directory `tests/oracle` of the sources that this was built from.
pub fn oracle() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle")
}
