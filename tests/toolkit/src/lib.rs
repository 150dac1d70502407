//! The examples of `crates/README.md`: Cargo compiles and runs them as the doctests of this crate.
#![cfg(doctest)]
#![doc = include_str!("../../../crates/README.md")]
