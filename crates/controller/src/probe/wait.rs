//! How long a probe waits for an API server.

use std::time::Duration;

/// How long one answer may take. Questions are repeated, so that a slow answer is not final.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The message for a missing answer.
pub fn no_answer() -> String {
    format!("no answer within {} s", ANSWER_TIMEOUT.as_secs())
}
