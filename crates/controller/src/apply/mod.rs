//! Stage apply: policies and bindings are sent as a dry run, put in effect in a safe order, and restored if another
//! client changes them.

pub mod bundle;
pub mod delete;
pub mod dry_run;
pub mod repair;
pub mod transition;
