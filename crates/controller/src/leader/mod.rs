//! Leader election, and the fences that prevent writes by a former leader.

pub mod election;
pub mod fence;
pub mod lease;
