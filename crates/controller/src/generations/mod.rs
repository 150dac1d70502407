//! The generations of a profile: each is compiled and checked before it may take effect, and the last good one is saved
//! for restarts.

pub mod accepted;
pub mod compile;
pub mod last_good;
pub mod revision;
