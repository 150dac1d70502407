//! A cluster to test in: a real control plane with Palisade installed as its manifests say, and the controller
//! under the rights that they give it.
#![allow(clippy::disallowed_methods, reason = "tests on a real API server need a clock and files")]

pub mod beta;
mod cluster;
mod controller;
mod ended;
mod figures;
mod load;
pub mod mutations;
mod nodes;
mod plain;
mod pods;
mod refusing;
mod requests;
mod wait;
mod webhook;

pub use cluster::{Cluster, root};
pub use controller::{ControllerProcess, run_controller};
pub use ended::{is_lost, known_fault};
pub use figures::{cpu_of, memory_of, peak_of};
pub use load::{Load, Tally};
pub use nodes::{CONTROLLERS, Nodes};
pub use plain::plain_get;
pub use pods::{bare_pod, ephemeral_container, features_of, hostile_pod, remove_unserved, tool_pod};
pub use refusing::refusing;
pub use requests::{Verdict, dry_run_answer, dry_run_once, send};
pub use wait::{eventually, within};
pub use webhook::{Balancer, WEBHOOK, Webhook, fail_open_count, handshake, run_webhook};

/// What a test ends in.
pub type TestResult<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Fails a test with a formatted text unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(format!($($text)+).into());
        }
    };
}
