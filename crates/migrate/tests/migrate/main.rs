//! What PodSecurityPolicies and their grants become.
#![allow(
    clippy::disallowed_methods,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "all of this is tests, some in the order of their source, and some read files"
)]

mod common;
mod fields;
mod grants;
mod plugin;
