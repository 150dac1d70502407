//! Tests of the evaluator, in one test binary, which is linked once.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod second_opinion;
mod watch;
