//! The generations of a profile: each is compiled and checked before it may take effect, and the last good one is saved
//! for restarts. [`target`] decides which of them must be in effect.

pub mod accepted;
pub mod compile;
pub mod last_good;
pub mod refuted;
pub mod revision;
pub mod target;
#[cfg(test)]
mod tests;
pub mod version;
