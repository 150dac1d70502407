//! The plan of parameters: the parameters that each namespace must have, and the jobs that write and delete them. It
//! does no I/O; the lane is [`crate::params`].

pub mod jobs;
pub mod namespace_plan;
pub mod plan;
pub mod profile_params;
pub mod retained;
