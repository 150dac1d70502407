//! Tests of the webhook through real sockets, in one test binary, which is linked once.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod clients;
mod common;
mod malformed;
mod ports;
