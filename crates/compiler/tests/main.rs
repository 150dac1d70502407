//! Tests of the compiler's output and of the fast path, in one test binary, which is linked once.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod compile;
mod fast;
mod texts;
