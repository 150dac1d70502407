//! Tests of the lint rules, in one test binary, which is linked once.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod finalizers;
mod mutations;
mod precision;
mod rules;
