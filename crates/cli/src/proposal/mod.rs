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

pub use cases::{Case, Cases, Found, Place, evaluated};
pub use change::{Change, applied, merge_patch};
pub use search::{Left, Owned, Step, Suggestions, Trial, search};
pub use table::{is_of_the_node, is_written, text};
