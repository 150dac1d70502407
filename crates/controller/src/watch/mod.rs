//! The controller's copy of the cluster: watches read it, and all lanes decide by it.

pub mod exception_store;
pub mod json_box;
pub mod object_store;
pub mod observe;
pub mod store;
pub mod watch_cache;
