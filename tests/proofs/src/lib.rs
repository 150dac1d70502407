//! Proofs about the policies that profiles compile to, and a comparison of their formulas with the evaluator of CEL. They are
//! not in `crates/prove`, which does not depend on profiles.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod engine;
mod fast;
mod support;
