//! From policies of other kinds to `ToolSecurityProfiles`.
//!
//! Every field is either carried over, or reported in a [`Note`]: nothing is dropped silently. [`psp`] reads
//! `PodSecurityPolicies`, [`rbac`] reads who may use them where, and [`migrate`] makes profiles of both.
//!
//! This crate is pure: no I/O, no clock, no environment. The same input gives the same output.
#![warn(missing_docs)]

mod cover;
mod limits;
mod note;
mod plan;
mod print;
pub mod psp;
pub mod rbac;

pub use cover::covers;
pub use note::{FieldDefault, Kind, Note};
pub use plan::{ALWAYS, LABEL, Migrated, Options, migrate};
pub use print::concise;
