//! Tests of proofs with the policies that profiles compile to, in one test binary, which is linked once.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod engine;
mod fast;
mod support;
