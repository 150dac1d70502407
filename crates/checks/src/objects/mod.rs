//! The checks of objects other than pods and workloads.
//!
//! To add a check: write its file and its fixtures, list it in [`ALL`] and give its setting a field and a row in a
//! group of [`settings`](crate::settings).

use crate::ObjectCheck;

pub mod network_hosts;

/// Every check, in the order in which violations are reported.
pub static ALL: &[&ObjectCheck] = &[&network_hosts::CHECK];
