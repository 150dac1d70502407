//! Tests of profiles in lint and in suites, in one test binary, which is linked once.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod lint;
mod suite;
