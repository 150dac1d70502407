//! The smallest profile changes that admit existing workloads.
//!
//! ```text
//! objects --> cases: those that violate a profile --> table: changes for each violation --> search: tried, and ranked
//! ```
//!
//! Each suggestion was tried: the changed profiles are compiled and checked, and the objects are evaluated again.

mod cases;
mod change;
mod search;
mod table;
#[cfg(test)]
mod tests;

pub use cases::{Cases, Found};
pub use change::{applied, merge_patch};
pub use search::{Left, Owned, Step, Suggestions, Trial, search};
