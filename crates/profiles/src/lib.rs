//! Profiles in the tools of the toolkit: the rules and policies that they bring to `palisade lint`, and the policies
//! and checks that they bring to `palisade test`.
//!
//! This crate is pure: no I/O, no clock, no environment.
#![warn(missing_docs)]

pub mod lint;
pub mod suite;
