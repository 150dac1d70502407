//! How long an API server is waited for.

use std::time::Duration;

/// How long one answer may take. A question is asked again and again, so that a slow answer is not the last word.
pub const ANSWER: Duration = Duration::from_secs(2);

/// What is said of an answer that did not come.
pub fn no_answer() -> String {
    format!("no answer within {} s", ANSWER.as_secs())
}
