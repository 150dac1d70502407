//! Profiles where the tools of the toolkit meet them: what `palisade lint` says of them, and what
//! they are to `palisade test`.
//!
//! This crate is pure: no I/O, no clock, no environment.

pub mod lint;
pub mod suite;
