//! The objects of `spec.generate` in a namespace: whether they are as their templates require, the actions that make
//! them so, and the results for the status. Pure, except for the clock.

pub mod fields;
pub mod outcomes;
pub mod plan;
