//! Captured output, for tests that run many commands within one process.

use std::cell::RefCell;

thread_local! {
    /// The captured standard output and standard error of this thread.
    static KEPT: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// Captures the output of this thread from now on.
pub fn keep() {
    KEPT.replace(Some(Default::default()));
}

/// The captured output since [`keep`], to standard output and to standard error; ends the capture.
pub fn kept() -> (String, String) {
    KEPT.take().unwrap_or_default()
}

/// Whether output is captured.
pub fn is_kept() -> bool {
    KEPT.with_borrow(Option::is_some)
}

/// Adds to the captured output; false if output is not captured. `said` means standard error.
pub fn add(text: &str, said: bool) -> bool {
    KEPT.with_borrow_mut(|kept| match kept {
        Some((out, err)) => {
            if said { err } else { out }.push_str(text);
            true
        }
        None => false,
    })
}
