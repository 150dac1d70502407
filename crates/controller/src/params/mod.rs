//! Parameters of namespaces: the lane that plans them, and the writes of its jobs.

pub mod lane;
pub mod write;
