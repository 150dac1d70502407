//! Room for recursion.

/// What one level of any recursion over a syntax tree needs at most, with a wide margin, in bytes.
const RED_ZONE: usize = 128 * 1024;
/// What is added when less is left, in bytes.
const GROWTH: usize = 1024 * 1024;

/// Runs one level of a recursion, on a new stack if this one is nearly used up.
///
/// The depth of the recursion is bounded ([`crate::parse::MAX_DEPTH`]), but not how many bytes it takes, and threads of
/// tests and servers have small stacks.
pub(crate) fn with_stack<T>(level: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, GROWTH, level)
}
