//! Objects of `spec.generate`: the lane that plans them in each namespace, and its writes.

pub mod lane;
mod write;
