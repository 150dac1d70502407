//! The status of a profile: its conditions, the next status, and events about changes.

mod condition;
pub mod conditions;
pub mod events;
#[cfg(test)]
mod tests;
mod update;

pub use self::{
    condition::{Condition, ConditionStatus, rolled_out, with_summary},
    update::{Observations, next},
};
