//! Tests of the offline check with profiles, pods and workloads, in one test binary, which is linked once. A module has one
//! subject: `cargo test -p palisade-gate --test gate -- exceptions::` runs the tests of exceptions.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod bounds;
mod catalogue;
mod cluster;
mod cost;
mod coverage;
mod custom;
mod defaults;
mod examples;
mod exceptions;
mod exemptions;
mod fast;
mod fields;
mod fixtures;
mod generated;
mod guard;
mod mutating;
mod objects;
mod properties;
mod redirects;
mod standards;
mod support;
mod updates;
mod values;
