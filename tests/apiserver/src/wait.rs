//! Waiting for what happens a little later.

use std::time::{Duration, Instant};

/// Asks until the answer is there, for at most `limit`; says how long it took.
///
/// # Errors
/// The last answer that was not the one, when the time is over.
pub async fn within<T, F, Fut>(limit: Duration, what: &str, mut ask: F) -> Result<(T, Duration), String>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, String>>,
{
    let start = Instant::now();
    loop {
        let last = match ask().await {
            Ok(answer) => return Ok((answer, start.elapsed())),
            Err(last) => last,
        };
        if start.elapsed() > limit {
            return Err(format!("{what}: not within {limit:?}; last: {last}"));
        }
        // The interval between two polls.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// [`within`] two minutes, for what must happen and whose time is not the point: a loaded machine takes its time.
///
/// # Errors
/// The last answer that was not the one, when the time is over.
pub async fn eventually<T, F, Fut>(what: &str, ask: F) -> Result<T, String>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, String>>,
{
    within(Duration::from_mins(2), what, ask).await.map(|(answer, _)| answer)
}
