//! Work on what people and tenants write, such as compiling a profile: on a thread with a large stack, so that a deep
//! expression does not overflow it, which would end the process; and a panic there is an answer and not the end.

use std::{
    any::Any,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

/// The size of the stack. Only pages that are touched take memory.
pub const STACK: usize = 256 << 20;

/// Error of the work.
#[derive(Debug, thiserror::Error)]
pub enum NoResult {
    /// The work panicked, which is a bug in Palisade.
    #[error("a bug in Palisade: {0}")]
    Panicked(String),
    /// The system gives the process no thread. Later it may.
    #[error("no thread could be started: {0}")]
    NoThread(#[source] io::Error),
}

/// Does some work on a thread with a large stack, and waits for it.
///
/// # Errors
/// The work panicked, or no thread could be started.
pub fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, NoResult> {
    thread::scope(|scope| {
        let guarded = || catch_unwind(AssertUnwindSafe(work));
        let worker = thread::Builder::new().name("large-stack".to_owned()).stack_size(STACK);
        let worker = worker.spawn_scoped(scope, guarded).map_err(NoResult::NoThread)?;
        // The outer error is a panic beside the work, such as one of a thread-local that is dropped.
        let done = worker.join().unwrap_or_else(Err);
        done.map_err(|panic| NoResult::Panicked(text(panic.as_ref())))
    })
}

fn text(panic: &(dyn Any + Send)) -> String {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each call takes a kilobyte at least.
    fn deep(depth: usize) -> usize {
        let frame = std::hint::black_box([u8::from(depth > 0); 1024]);
        if depth == 0 {
            usize::from(frame[0])
        } else {
            deep(depth - 1) + usize::from(std::hint::black_box(frame)[7] > 0)
        }
    }

    #[test]
    fn deep_work_has_the_stack_that_it_needs() {
        // 50 MB at least: more than the 2 MB of a thread and the 8 MB of a process.
        assert!(on_large_stack(|| deep(50_000)).expect("a result") > 0);
    }

    #[test]
    fn a_panic_is_an_answer() {
        let kind = "x";
        let messages = [
            on_large_stack(|| -> () { panic!("a mistake in {kind}") }),
            on_large_stack(|| -> () { panic!("plain") }),
            on_large_stack(|| -> () { std::panic::panic_any(7) }),
        ]
        .map(|result| result.expect_err("a panic").to_string());
        let expected = ["a mistake in x", "plain", "a panic without a message"];
        assert_eq!(messages, expected.map(|what| format!("a bug in Palisade: {what}")));
    }

    #[test]
    fn work_may_borrow() {
        let text = "a".to_owned();
        assert_eq!(on_large_stack(|| text.len()).expect("a result"), 1);
    }
}
